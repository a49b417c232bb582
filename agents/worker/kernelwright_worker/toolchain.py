"""Imports of the fork server, versions, and chips as the compiler knows them."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import sys
import warnings

import kernelwright_worker

# Versions that the tests run with; others work as far as they go, and the daemon says "untested".
OLDEST_JAX = (0, 8, 0)


@dataclasses.dataclass(frozen=True)
class Chip:
    """A TPU generation: topology to compile for, and what jax must believe about the device while tracing."""

    topology: str
    device_kind: str
    num_cores: int


CHIPS = {
    "v4": Chip("v4:2x2x1", "TPU v4", 1),
    "v5e": Chip("v5e:1x1", "TPU v5 lite", 1),
    "v5p": Chip("v5p:2x2x1", "TPU v5", 2),
    "v6e": Chip("v6e:1x1", "TPU v6 lite", 1),
    "tpu7x": Chip("tpu7x:2x2x1", "TPU7x", 1),
}


def chip(name: str) -> Chip:
    """Looks a chip up. Raises ValueError with the known names."""
    if name not in CHIPS:
        raise ValueError(f"unknown chip {name!r}: known are {', '.join(CHIPS)}")
    return CHIPS[name]


def preload() -> None:
    """Imports everything that a job needs, once, with a single thread. Raises what the imports raise."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    for name in (
        "jax",
        "jax.numpy",
        "jax.export",
        "jax.experimental.topologies",
        "jax.experimental.pallas",
        "jax.experimental.pallas.tpu",
        "numpy",
        "ml_dtypes",
        "flatbuffers",
        "jax._src.export.serialization",
        "jax._src.pallas.mosaic.lowering",
        "jax._src.pallas.mosaic.interpret.interpret_pallas_call",
        "kernelwright_worker.roles.dispatch",
    ):
        importlib.import_module(name)


def versions() -> dict[str, str]:
    """Versions of what takes part in a verdict; a package that is missing has no entry."""
    found = {"python": ".".join(map(str, sys.version_info[:3])), "worker": kernelwright_worker.__version__}
    for package in ("jax", "jaxlib", "libtpu", "numpy"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def problem() -> str:
    """What keeps this interpreter from working, with the remedy; empty when nothing does."""
    found = versions()
    pip = f"`{sys.executable} -m pip install"
    if "libtpu" not in found:
        return f"libtpu, the TPU compiler, is not installed for {sys.executable}: run {pip} 'jax[tpu]'`"
    numbers = tuple(int(p) for p in found["jax"].split(".")[:3] if p.isdigit())
    if numbers < OLDEST_JAX:
        oldest = ".".join(map(str, OLDEST_JAX))
        return f"jax {found['jax']} is too old, {oldest} is the oldest that works: run {pip} -U 'jax[tpu]'`"
    return ""
