"""Role judge, job compile: the real TPU compiler on an exported artefact, in a process without user code."""

from __future__ import annotations

import gzip
import os
import re
import time
from collections.abc import Callable
from typing import Any

import jax
from jax import export
from jax.experimental import topologies
from kernelwright.v1 import worker_pb2

from kernelwright_worker import toolchain
from kernelwright_worker.dump_flags import dump_flags
from kernelwright_worker.frontend.errors import code_error

_WANTED = re.compile(
    r"-final_bundles\.txt$|-static-per-bundle-utilization\.txt$|TLP-hlo\.txt$|-registers-and-allocations\.txt$"
)
_UNWANTED = re.compile(r"schedule-analysis")
_WIDE = ("float64", "int64", "uint64", "complex128")  # types that jax has only when 64 bits are switched on
_GZIP_LEVEL = 3  # dumps are megabytes of repetitive text: more effort costs more time than the pipe does


def topology_device(chip: str) -> Any:
    """A device of the chip to compile for. Loads libtpu, which reads its flags then and never again."""
    topology = topologies.get_topology_desc(platform="tpu", topology_name=toolchain.chip(chip).topology)
    return topology.devices[0]


def run(job: worker_pb2.CompileJob) -> worker_pb2.CompileResult:
    """Carries out the job; compiler errors are part of the result."""
    result = worker_pb2.CompileResult(versions=toolchain.versions())
    folder = os.path.join(os.environ["TMPDIR"], "dumps")
    if job.want_dumps:
        os.makedirs(folder, exist_ok=True)
        os.environ["LIBTPU_INIT_ARGS"] = dump_flags(folder)
    try:
        exported = export.deserialize(bytearray(job.artefact.exported))
    except Exception as error:
        result.error.CopyFrom(code_error("export", error))
        return result
    # A process without user code knows nothing of the user's setting, and would narrow the arguments.
    if any(str(a.dtype) in _WIDE for a in exported.in_avals):
        jax.config.update("jax_enable_x64", True)
    try:
        device = topology_device(job.artefact.chip)
        sharding = jax.sharding.SingleDeviceSharding(device)
        avals = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in exported.in_avals]
        function = _call_of(exported)
        jitted = jax.jit(function) if avals else jax.jit(function, out_shardings=sharding)
        lowered = jitted.trace(*avals).lower(lowering_platforms=("tpu",))
    except Exception as error:
        result.error.CopyFrom(code_error("lower", error))
        return result
    started = time.monotonic()
    try:
        compiled = lowered.compile()
    except Exception as error:
        result.compile_milliseconds = int((time.monotonic() - started) * 1000)
        result.error.CopyFrom(code_error("compile", error))
        return result
    result.compile_milliseconds = int((time.monotonic() - started) * 1000)
    _analyse(compiled, result)
    if job.want_dumps:
        result.dumps.extend(_collect(folder))
    return result


def _call_of(exported: Any) -> Any:
    def call(*leaves: Any) -> Any:
        return exported.call(*leaves)

    call.__name__ = call.__qualname__ = exported.fun_name
    return call


def _analyse(compiled: Any, result: worker_pb2.CompileResult) -> None:
    cost = _or_none(compiled.cost_analysis) or {}
    if isinstance(cost, list):
        cost = cost[0] if cost else {}
    result.flops = max(0.0, float(cost.get("flops", 0.0)))
    result.bytes_accessed = max(0.0, float(cost.get("bytes accessed", 0.0)))
    memory = _or_none(compiled.memory_analysis)
    if memory is not None:
        result.argument_bytes = memory.argument_size_in_bytes
        result.output_bytes = memory.output_size_in_bytes
        result.temporary_bytes = memory.temp_size_in_bytes
    text = _or_none(compiled.as_text) or ""
    if text:
        result.hlo_gzip = gzip.compress(text.encode(), _GZIP_LEVEL)


def _or_none(ask: Callable[[], Any]) -> Any:
    """The compiled program is there; that the compiler cannot describe it is not an error of the kernel.

    libtpu 0.0.52 fails to print programs with some asynchronous copies (a grouped product, on v6e).
    """
    try:
        return ask()
    except (RuntimeError, NotImplementedError) as error:
        print(f"the compiler cannot tell {getattr(ask, '__name__', 'this')}: {error}")
        return None


def _collect(folder: str) -> list[worker_pb2.Dump]:
    dumps: list[worker_pb2.Dump] = []
    for name in sorted(os.listdir(folder)):
        if not _WANTED.search(name) or _UNWANTED.search(name):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            dumps.append(worker_pb2.Dump(name=name, gzip=gzip.compress(file.read(), _GZIP_LEVEL)))
    return dumps
