"""Makes jax believe that it traces and lowers for a TPU that this machine does not have."""

from __future__ import annotations

import contextlib
from typing import Any

from jax._src import mesh

from kernelwright_worker import toolchain


def abstract_device(chip: str) -> contextlib.AbstractContextManager[Any]:
    """Context in which lowering asks for the chip's properties and gets them. Raises ValueError for unknown
    chips.

    Without it one-dimensional blocks, some reshapes and iota fail with "Unsupported TPU device kind: cpu".
    """
    known = toolchain.chip(chip)
    device = mesh.AbstractDevice(device_kind=known.device_kind, num_cores=known.num_cores, platform="tpu")
    context: contextlib.AbstractContextManager[Any] = mesh.use_abstract_mesh(
        mesh.AbstractMesh((), (), abstract_device=device)
    )
    return context
