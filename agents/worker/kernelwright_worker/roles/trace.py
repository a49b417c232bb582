"""Role candidate, job trace: imports a user's function, traces it with abstract shapes, and exports it per
chip.

The process sees no data, no seed and no clock. What leaves it is a description and serialized StableHLO.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
from jax import export
from kernelwright.v1 import ir_pb2, worker_pb2

from kernelwright_worker import toolchain
from kernelwright_worker.frontend import hooks, inputs, program
from kernelwright_worker.frontend.chip_context import abstract_device
from kernelwright_worker.frontend.closure import Closure
from kernelwright_worker.frontend.errors import code_error
from kernelwright_worker.frontend.overlay import Overlay
from kernelwright_worker.frontend.resolve import resolve
from kernelwright_worker.frontend.types import tensor_type

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class StageFailed(Exception):
    """User code failed; `error` says at which stage."""

    def __init__(self, error: worker_pb2.CodeError) -> None:
        super().__init__(error.message)
        self.error = error


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Turns any exception inside, of user code or caused by it, into StageFailed."""
    try:
        yield
    except StageFailed:
        raise
    except MemoryError:
        raise
    except OSError as error:
        if error.errno in NO_SPACE:
            raise  # a limit of the job, not an error of the code
        raise StageFailed(code_error(name, error)) from error
    except BaseException as error:  # sys.exit and KeyboardInterrupt of user code too: it must not end the job
        raise StageFailed(code_error(name, error)) from error


def load(source: worker_pb2.Source) -> tuple[Overlay, Any, Callable[..., Any]]:
    """Imports a source; returns its overlay, module and function. Raises StageFailed."""
    overlay = Overlay(source.file, {f.path: f.text for f in source.files})
    overlay.install()
    with stage("import"):
        module = overlay.load_entry()
    with stage("resolve"):
        function = resolve(module, source.function)
    return overlay, module, function


def prepare(
    module: Any, function: Callable[..., Any], specs: list[worker_pb2.InputSpec]
) -> tuple[inputs.Call, str]:
    """Makes the call with its inputs; returns also where they came from. Raises StageFailed."""
    with stage("inputs"):
        origin = "given"
        if not specs:
            specs, origin = inputs.from_module(module, function)
        return inputs.Call(function, specs), origin


def named(call: inputs.Call, function_name: str) -> Callable[..., Any]:
    """The call under the user's name, which compiler texts then show."""

    def invoke(*leaves: Any) -> Any:
        return call(*leaves)

    invoke.__name__ = invoke.__qualname__ = function_name.rpartition(".")[2]
    return invoke


def run(job: worker_pb2.TraceJob) -> worker_pb2.TraceResult:
    """Carries out the job; errors of user code are part of the result."""
    result = worker_pb2.TraceResult(versions=toolchain.versions())
    overlay = Overlay(job.source.file, {f.path: f.text for f in job.source.files})
    closure = Closure(overlay)
    try:
        _trace(job, result, overlay, closure)
    except StageFailed as failed:
        result.error.CopyFrom(failed.error)
    result.closure.extend(closure.files())
    return result


def _trace(
    job: worker_pb2.TraceJob, result: worker_pb2.TraceResult, overlay: Overlay, closure: Closure
) -> None:
    chips = list(job.chips) or ["v6e"]
    overlay.install()
    with stage("import"):
        module = overlay.load_entry()
    with stage("resolve"):
        function = resolve(module, job.source.function)
    call, result.inputs_origin = prepare(module, function, list(job.inputs))
    result.inputs.extend(call.specs)
    invoke = named(call, job.source.function)
    with stage("inputs"):
        leaves = call.abstract()
        for chip in chips:
            toolchain.chip(chip)
    calls: list[ir_pb2.PallasCall] = []
    try:
        with stage("trace"), abstract_device(chips[0]), hooks.record_calls(calls), closure:
            traced = jax.jit(invoke).trace(*leaves)
    finally:
        result.calls_seen.extend(calls)
    closed = traced.jaxpr
    result.outputs.extend(tensor_type(a) for a in closed.out_avals)
    result.output_tree = str(jax.tree_util.tree_structure(traced.out_info))
    if job.want_program:
        result.program.CopyFrom(program.convert(closed))
        for value, spec in zip(
            result.program.main.inputs, filter(inputs.is_traced, call.specs), strict=False
        ):
            value.name = spec.path
    if job.want_artefacts:
        result.artefacts.extend(_export(invoke, leaves, chip) for chip in chips)


def _export(invoke: Callable[..., Any], leaves: list[Any], chip: str) -> worker_pb2.Artefact:
    artefact = worker_pb2.Artefact(chip=chip)
    try:
        with stage("lower"), abstract_device(chip):
            exported = export.export(jax.jit(invoke), platforms=["tpu"])(*leaves)
        with stage("export"):
            artefact.exported = bytes(exported.serialize())
        artefact.sha256 = hashlib.sha256(artefact.exported).hexdigest()
    except StageFailed as failed:
        artefact.error.CopyFrom(failed.error)
    return artefact
