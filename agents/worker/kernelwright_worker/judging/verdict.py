"""Turns what candidate and reference answered into verdicts of single gates."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from kernelwright.v1 import worker_pb2

from kernelwright_worker.judging import compare, tensors
from kernelwright_worker.judging.gates import Gates
from kernelwright_worker.judging.programs import Summary

# What the interpreter says when a kernel leaves its memory or comes back to a block; the last line has the
# place.
_MEMORY_ERROR = re.compile(r"Out-of-bounds|Revisited block|out of bounds|IndexError")


def program_gates(gates: Gates, candidate: Summary, reference: Summary) -> None:
    """G20 (the part that a jaxpr shows), G46, and of G42 what only a program shows."""
    allowed = reference.accumulator_bits or 32
    narrow = candidate.accumulator_bits is not None and candidate.accumulator_bits < allowed
    if candidate.kernels == 0:
        gates.fail("G20", "there is no pallas_call in it")
    if candidate.interpreted:
        gates.fail("G20", "a pallas_call has interpret switched on: it would not run on the TPU")
    if candidate.callbacks:
        gates.fail("G20", f"it calls back to the host: {', '.join(sorted(set(candidate.callbacks)))}")
    if candidate.large_constants:
        size = max(candidate.large_constants)
        gates.fail("G20", f"it captures a constant of {size} bytes; 65536 are allowed")
    if narrow:
        place = f" at {candidate.accumulator_place}" if candidate.accumulator_place else ""
        reason = f"it accumulates in {candidate.accumulator_bits} bits{place}; the reference keeps {allowed}"
        gates.fail("G20", reason)
        gates.fail("G46", reason)
    for name, theirs, ours in (
        ("a product's result has", candidate.product_bits, reference.product_bits),
        ("a product's operands have", candidate.product_operand_bits, reference.product_operand_bits),
    ):
        if theirs is not None and ours is not None and theirs < ours:
            gates.fail("G46", f"{name} {theirs} bits; the reference's have {ours}")
    theirs, ours = candidate.product_precision, reference.product_precision
    if theirs is not None and ours is not None and theirs < ours:
        gates.fail("G46", "a product has a lower precision than the reference asks for")
    if candidate.donations:
        gates.fail("G42", "it donates an argument: the caller's buffer would be gone after the call")
    if candidate.written_inputs:
        gates.fail("G42", f"a kernel stores to its input: {', '.join(candidate.written_inputs)}")
    gates.passed("G20")
    gates.passed("G46")


def structure_gate(gates: Gates, candidate: worker_pb2.RoleReply, reference: worker_pb2.RoleReply) -> None:
    """G45: tree, shapes and types of the outputs."""
    if candidate.output_tree != reference.output_tree:
        gates.fail("G45", f"returns {candidate.output_tree}, the reference {reference.output_tree}")
        return
    for index, (ours, theirs) in enumerate(zip(reference.outputs, candidate.outputs, strict=True)):
        if ours.type.dims != theirs.type.dims or ours.type.dtype != theirs.type.dtype:
            gates.fail("G45", f"output {index} is {_type(theirs)}, the reference's {_type(ours)}")
            return
    gates.passed("G45")


def weak_type_gate(gates: Gates, candidate: worker_pb2.RoleReply, reference: worker_pb2.RoleReply) -> None:
    """The part of G45 that only a program shows."""
    if candidate.output_tree != reference.output_tree:
        gates.fail("G45", f"returns {candidate.output_tree}, the reference {reference.output_tree}")
    elif list(candidate.weak_types) != list(reference.weak_types):
        gates.fail(
            "G45",
            f"weak types of its outputs are {list(candidate.weak_types)}, not {list(reference.weak_types)}",
        )


def run_gates(gates: Gates, reply: worker_pb2.RoleReply, where: str) -> None:
    """G31, G42 and G52 after one run of the candidate."""
    if reply.HasField("error"):
        last = _last_line(reply.error.message)
        if _MEMORY_ERROR.search(last):
            gates.fail("G31", f"{last} ({where})")
        gates.fail("G43", f"raises {reply.error.type} instead of a result ({where}): {last}")
    if reply.races:
        gates.fail("G31", f"a race between cores, first seen at {reply.race_place or 'a kernel'} ({where})")
    if reply.inputs_changed:
        gates.fail("G42", f"an input has changed after the call ({where})")
    if reply.leftovers:
        gates.fail("G52", f"left alive after the call: {reply.leftovers}")


def comparisons(
    candidate: worker_pb2.RoleReply,
    native: worker_pb2.RoleReply,
    truth: worker_pb2.RoleReply,
    other: worker_pb2.RoleReply,
    tolerance: worker_pb2.Tolerance,
    labels: worker_pb2.Comparison,
) -> tuple[list[worker_pb2.Comparison], bool]:
    """Compares all outputs; returns also whether NaN stands where the reference has numbers."""
    found: list[worker_pb2.Comparison] = []
    uninitialised = False
    for index, output in enumerate(candidate.outputs):
        native_array = tensors.decode(native.outputs[index])
        difference = compare.compare(
            tensors.decode(output),
            native_array,
            _same_shape(truth.outputs, index, native_array),
            native_array if other is native else _same_shape(other.outputs, index, native_array),
            factor=tolerance.reference_factor or 2.0,
            floor=tolerance.floor_relative,
            nan_counts=not labels.distribution.endswith("infinities"),
        )
        uninitialised = uninitialised or difference.uninitialised
        entry = worker_pb2.Comparison()
        entry.CopyFrom(labels)
        entry.output = index
        entry.candidate_error = difference.candidate_error
        entry.reference_error = difference.reference_error
        entry.limit = difference.limit
        setattr(entry, "pass", difference.passed)
        entry.detail = difference.detail
        found.append(entry)
    return found, uninitialised


def nan_places(reply: worker_pb2.RoleReply) -> list[tensors.Array]:
    """Where the floating outputs are NaN, one mask per output."""
    found: list[tensors.Array] = []
    for output in reply.outputs:
        array = tensors.decode(output)
        floats = not tensors.is_key(output.type) and tensors.is_float(array.dtype)
        found.append(np.isnan(array.astype(np.float32)) if floats else np.zeros(array.shape, np.bool_))
    return found


def passed(comparison: worker_pb2.Comparison) -> bool:
    """`pass` is a word of Python's."""
    return bool(getattr(comparison, "pass"))


def _same_shape(outputs: Sequence[worker_pb2.Tensor], index: int, native: tensors.Array) -> tensors.Array:
    """The wider reference's output, or the native one where widening changed the shape (bit casts do)."""
    if index < len(outputs):
        array = tensors.decode(outputs[index])
        if array.shape == native.shape:
            return array
    return native


def _type(tensor: worker_pb2.Tensor) -> str:
    return f"{tensor.type.dtype}[{','.join(map(str, tensor.type.dims))}]"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no text"
