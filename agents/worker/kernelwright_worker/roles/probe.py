"""Role judge, job probe: which chips this machine can compile for, shown with a small kernel."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from kernelwright.v1 import worker_pb2

from kernelwright_worker.frontend.chip_context import abstract_device
from kernelwright_worker.roles.compile import topology_device

_SHAPE = (16, 128)


def _double(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] * 2


def _kernel(x: Any) -> Any:
    return pl.pallas_call(_double, out_shape=jax.ShapeDtypeStruct(_SHAPE, jnp.float32))(x)


def run(job: worker_pb2.ProbeJob) -> worker_pb2.ProbeResult:
    """Carries out the job."""
    result = worker_pb2.ProbeResult()
    for chip in job.chips:
        answer = result.chips.add(chip=chip)
        started = time.monotonic()
        try:
            sharding = jax.sharding.SingleDeviceSharding(topology_device(chip))
            aval = jax.ShapeDtypeStruct(_SHAPE, jnp.float32, sharding=sharding)
            with abstract_device(chip):
                lowered = jax.jit(_kernel).trace(aval).lower(lowering_platforms=("tpu",))
            lowered.compile()
            answer.compiles = True
        except Exception as error:
            answer.detail = f"{type(error).__name__}: {error}"
        answer.milliseconds = int((time.monotonic() - started) * 1000)
    return result
