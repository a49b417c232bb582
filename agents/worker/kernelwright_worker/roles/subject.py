"""Roles candidate and oracle of a judge job: runs the user's function on arrays that the judge sends.

It learns neither seeds nor limits nor who compares. One process serves all runs of a job; a failed run leaves
no interpreter state behind.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from kernelwright.v1 import worker_pb2

from kernelwright_worker import framing
from kernelwright_worker.frontend import interpreter, leftovers, program
from kernelwright_worker.frontend.chip_context import abstract_device
from kernelwright_worker.judging import tensors
from kernelwright_worker.roles.trace import StageFailed, load, named, prepare, stage


def serve(job: worker_pb2.JudgeJob, role: str, channel: socket.socket) -> None:
    """Answers requests until the judge closes the channel."""
    del role  # both roles do the same: what differs is whose text they were given
    subject = Subject(job)
    decoder = framing.FrameDecoder()
    while (message := _next(channel, decoder)) is not None:
        request = worker_pb2.RoleRequest.FromString(message)
        reply = subject.answer(request)
        reply.nonce = request.nonce
        channel.sendall(framing.encode_frame(reply.SerializeToString()))


def _next(channel: socket.socket, decoder: framing.FrameDecoder) -> bytes | None:
    try:
        return framing.receive_message(channel, decoder)
    except ConnectionResetError:
        return None  # the judge has its verdict and did not wait for the last reply


class Subject:
    """A loaded function and the runs that were compiled for it."""

    def __init__(self, job: worker_pb2.JudgeJob) -> None:
        self._chip = job.chip or "v6e"
        self._source = job.candidate
        self._known = leftovers.threads()
        self._compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._load_error: worker_pb2.CodeError | None = None
        try:
            _overlay, self._module, self._function = load(self._source)
        except StageFailed as failed:
            self._load_error = failed.error

    def answer(self, request: worker_pb2.RoleRequest) -> worker_pb2.RoleReply:
        """Carries out a request; errors of user code are part of the reply."""
        reply = worker_pb2.RoleReply()
        if self._load_error is not None:
            reply.error.CopyFrom(self._load_error)
            return reply
        try:
            if request.want_program:
                self._describe(request, reply)
            else:
                self._run(request, reply)
        except StageFailed as failed:
            reply.error.CopyFrom(failed.error)
        reply.leftovers = leftovers.find(self._known)
        return reply

    def _describe(self, request: worker_pb2.RoleRequest, reply: worker_pb2.RoleReply) -> None:
        call, _origin = prepare(self._module, self._function, list(request.inputs))
        with stage("trace"), abstract_device(self._chip):
            traced = jax.jit(named(call, self._source.function)).trace(*call.abstract())
        reply.program.CopyFrom(program.convert(traced.jaxpr))
        reply.output_tree = str(jax.tree_util.tree_structure(traced.out_info))
        reply.weak_types.extend(bool(getattr(a, "weak_type", False)) for a in traced.jaxpr.out_avals)

    def _run(self, request: worker_pb2.RoleRequest, reply: worker_pb2.RoleReply) -> None:
        call, _origin = prepare(self._module, self._function, list(request.inputs))
        raw = [tensors.decode(t) for t in request.tensors]
        with stage("inputs"):
            leaves = [_leaf(t, a, request.widen) for t, a in zip(request.tensors, raw, strict=True)]
        before = [_bits(leaf) for leaf in leaves]
        detectors = interpreter.Detectors()
        with stage("run"):
            result = self._execute(request, call, leaves, detectors)
            flat, tree = jax.tree_util.tree_flatten(result)
            reply.output_tree = str(tree)
            for value in flat:
                reply.outputs.append(_encode(value))
                reply.weak_types.append(bool(getattr(value, "weak_type", False)))
        reply.kernels = detectors.kernels
        reply.races = detectors.races
        reply.race_place = detectors.place
        reply.inputs_changed = any(
            leaf.is_deleted() or _bits(leaf) != old for leaf, old in zip(leaves, before, strict=True)
        )

    def _execute(
        self, request: worker_pb2.RoleRequest, call: Any, leaves: list[Any], detectors: interpreter.Detectors
    ) -> Any:
        shapes = tuple((a.shape, str(a.dtype)) for a in leaves)
        seed = request.interpreter_seed
        memory: Literal["nan", "zero"] = "zero" if request.zero_memory else "nan"
        key = (request.interpret_tpu, seed, memory, request.ghost_kernel, shapes)
        if request.ghost_kernel:
            interpreter.forget_compiled()  # a function that was traced before would not be asked again
        if key not in self._compiled:
            if not request.interpret_tpu:
                interpreter.forget_compiled()  # a jitted function of a library keeps how it was traced before
            self._compiled[key] = jax.jit(named(call, self._source.function))
        function = self._compiled[key]

        def invoke() -> Any:
            with abstract_device(self._chip):
                return jax.block_until_ready(function(*leaves))

        try:
            if request.ghost_kernel:
                with interpreter.interpreted(seed, detectors):
                    with interpreter.ghost(request.ghost_kernel):
                        return invoke()
            if request.interpret_tpu:
                with interpreter.interpreted(seed, detectors, memory):
                    return invoke()
            with interpreter.plainly_interpreted():
                return invoke()
        except BaseException:
            self._compiled.pop(key, None)
            interpreter.forget_compiled()
            raise
        finally:
            if request.ghost_kernel:
                self._compiled.clear()
                interpreter.forget_compiled()


def _leaf(tensor: worker_pb2.Tensor, array: tensors.Array, widen: bool) -> Any:
    if tensors.is_key(tensor.type):
        return jax.random.wrap_key_data(jnp.asarray(array))
    if widen and tensors.is_float(array.dtype) and array.dtype.itemsize < 4:
        return jnp.asarray(array.astype(np.float32))
    return jnp.array(array)


def _bits(leaf: Any) -> bytes:
    value = jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
    return np.asarray(value).tobytes()


def _encode(value: Any) -> worker_pb2.Tensor:
    if hasattr(value, "dtype") and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return tensors.encode(np.asarray(jax.random.key_data(value)), str(value.dtype))
    return tensors.encode(np.asarray(value))
