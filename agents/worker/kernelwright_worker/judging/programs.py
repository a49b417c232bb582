"""Reads program graphs for the gates: callbacks, captured constants, precision of products and of
accumulations.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from kernelwright.v1 import ir_pb2

MAX_CONSTANT_BYTES = 64 << 10
_CALLBACKS = ("callback", "infeed", "outfeed", "outside_call", "host_call")
_FLOAT_BITS = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16}
_ADDITIVE = {"add", "add_any", "sub", "dot_general"}
_TRANSPARENT = {
    "convert_element_type",
    "reshape",
    "broadcast_in_dim",
    "squeeze",
    "mul",
    "copy",
    "select_n",
    "reduce_sum",
}
# What changes the form of a value and not what it says.
_CARRYING = {"convert_element_type", "reshape", "transpose", "squeeze", "broadcast_in_dim", "copy"}
_MAX_DEPTH = 24
# Precision of a product, by name; absent means the device's default, which rounds float32 operands to
# bfloat16.
_PRECISION = {
    "": 0,
    "DEFAULT": 0,
    "BF16_BF16_F32": 0,
    "HIGH": 1,
    "BF16_BF16_F32_X3": 1,
    "HIGHEST": 2,
    "F32_F32_F32": 2,
}


@dataclasses.dataclass
class Summary:
    """What the gates compare between two programs. A width is None when nothing of that kind is there."""

    kernels: int = 0
    interpreted: int = 0
    largest_uncut: int = 0  # elements of the largest operand that a kernel copies from by itself
    donations: int = 0
    written_inputs: list[str] = dataclasses.field(default_factory=list)
    callbacks: list[str] = dataclasses.field(default_factory=list)
    large_constants: list[int] = dataclasses.field(default_factory=list)
    accumulator_bits: int | None = None
    accumulator_place: str = ""
    product_bits: int | None = None
    product_operand_bits: int | None = None
    product_precision: int | None = None


def summarize(program: ir_pb2.Program) -> Summary:
    """Reads a whole program, bodies of kernels included."""
    found = Summary()
    _graph(program.main, found)
    return found


def float_bits(dtype: str) -> int | None:
    """Width of a floating type; None for others."""
    if dtype.startswith("float8"):
        return 8
    if dtype.startswith("float4"):
        return 4
    return _FLOAT_BITS.get(dtype)


def _written_inputs(call: ir_pb2.PallasCall) -> list[str]:
    """Names of input references that the kernel stores to, aliased ones left out, and those in SMEM, which
    are copies: kernels that ship with jax keep counters there.
    """
    aliased = {a.operand for a in call.aliases}
    spaces = ["smem"] * call.num_scalar_prefetch + [b.memory_space for b in call.blocks if not b.is_output]
    watched = {
        value.id: value.name or f"input {position}"
        for position, (value, space) in enumerate(zip(call.kernel.inputs, spaces, strict=False))
        if position not in aliased and space != "smem"
    }
    found: dict[str, None] = {}
    _stores(call.kernel, watched, found)
    return list(found)


def _stores(graph: ir_pb2.Graph, watched: dict[int, str], found: dict[str, None]) -> None:
    for operation in graph.operations:
        names = [watched.get(o.value, "") for o in operation.inputs]
        if operation.name in ("swap", "masked_swap", "addupdate") and names and names[0]:
            # A load is a swap too, of a value that nobody stores: it has its result used and no effect of
            # writing.
            if any(e.startswith(("write", "accum")) for e in operation.effects):
                found[names[0]] = None
        for region in operation.regions:
            # Bodies take the last of their operation's operands, after a branch's index or a condition's
            # constants.
            inner = names[len(names) - len(region.inputs) :] if len(region.inputs) <= len(names) else []
            _stores(region, {v.id: n for v, n in zip(region.inputs, inner, strict=False) if n}, found)


def _least(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return left if right is None else right
    return min(left, right)


def _graph(graph: ir_pb2.Graph, found: Summary) -> None:
    found.large_constants += [c.size_bytes for c in graph.constants if c.size_bytes > MAX_CONSTANT_BYTES]
    producers = {v.id: operation for operation in graph.operations for v in operation.outputs if v.id}
    types = {v.id: v.type for v in graph.inputs}
    types |= {c.value: c.type for c in graph.constants}
    for operation in graph.operations:
        types |= {v.id: v.type for v in operation.outputs}
    for operation in graph.operations:
        _operation(operation, found, producers, types)
        for region in operation.regions:
            _graph(region, found)
        if operation.HasField("pallas"):
            _graph(operation.pallas.kernel, found)


def _operation(
    operation: ir_pb2.Operation,
    found: Summary,
    producers: dict[int, ir_pb2.Operation],
    types: dict[int, ir_pb2.TensorType],
) -> None:
    name = operation.name
    if any(c in name for c in _CALLBACKS):
        found.callbacks.append(name)
    found.donations += any(a.name == "donated_invars" and "True" in a.text for a in operation.attributes)
    if operation.HasField("pallas"):
        found.kernels += 1
        found.written_inputs += _written_inputs(operation.pallas)
        uncut = [math.prod(b.array.dims) for b in operation.pallas.blocks if b.memory_space in ("any", "hbm")]
        found.largest_uncut = max(found.largest_uncut, *uncut, 0)
        found.interpreted += any(
            a.name == "interpret" and (a.bool_value or a.text) for a in operation.attributes
        )
    if name == "dot_general":
        _product(operation, found, types, producers)
    if name in ("swap", "addupdate", "masked_swap") and len(operation.inputs) >= 2:
        reference = operation.inputs[0].value
        value = operation.inputs[1].value
        if name == "addupdate" or _adds_to(value, reference, producers):
            _accumulator(types.get(reference), operation, found)
    if name in ("scan", "while"):
        for region, skip in _loop_bodies(operation):
            _carries(region, skip, operation, found)


def _product(
    operation: ir_pb2.Operation,
    found: Summary,
    types: dict[int, ir_pb2.TensorType],
    producers: dict[int, ir_pb2.Operation],
) -> None:
    widths = [_information_bits(o.value, types, producers) for o in operation.inputs[:2] if o.value in types]
    known = [w for w in widths if w is not None]
    if not known or len(known) < len(widths):
        return
    found.product_operand_bits = _least(found.product_operand_bits, min(known))
    # The unit itself sums in float32; what a program can lose is the result that it keeps between steps.
    found.product_bits = _least(found.product_bits, float_bits(operation.outputs[0].type.dtype))
    if max(known) <= 16:
        return  # one pass of the unit multiplies 16 bits exactly, whatever precision is asked for
    text = next((a.text for a in operation.attributes if a.name == "precision"), "")
    levels = [_PRECISION.get(p, 0) for p in text.strip("()").split(",")]
    found.product_precision = _least(found.product_precision, min(levels))


def _information_bits(
    value: int, types: dict[int, ir_pb2.TensorType], producers: dict[int, ir_pb2.Operation], depth: int = 0
) -> int | None:
    """Width of what a value can hold: bfloat16 that was widened has 16 bits still."""
    kind = types.get(value)
    bits = float_bits(kind.dtype) if kind is not None else None
    producer = producers.get(value)
    if bits is None or producer is None or producer.name not in _CARRYING or depth == _MAX_DEPTH:
        return bits
    before = _information_bits(producer.inputs[0].value, types, producers, depth + 1)
    return bits if before is None else min(bits, before)


def _accumulator(kind: ir_pb2.TensorType | None, operation: ir_pb2.Operation, found: Summary) -> None:
    bits = float_bits(kind.dtype) if kind is not None else None
    if bits is None:
        return
    if found.accumulator_bits is None or bits < found.accumulator_bits:
        found.accumulator_bits = bits
        if operation.spans:
            found.accumulator_place = f"{operation.spans[0].file}:{operation.spans[0].line}"


def _adds_to(value: int, reference: int, producers: dict[int, ir_pb2.Operation]) -> bool:
    """Whether a value is a sum that holds what was loaded from the reference it is stored to."""
    pending = [(value, False, 0)]
    seen: set[tuple[int, bool]] = set()
    while pending:
        current, added, depth = pending.pop()
        operation = producers.get(current)
        if operation is None or depth > _MAX_DEPTH or (current, added) in seen:
            continue
        seen.add((current, added))
        if (
            operation.name in ("get", "masked_load")
            and operation.inputs
            and operation.inputs[0].value == reference
        ):
            if added:
                return True
        elif operation.name in _ADDITIVE | _TRANSPARENT:
            adds = added or operation.name in ("add", "add_any", "sub")
            pending += [(o.value, adds, depth + 1) for o in operation.inputs if o.value]
    return False


def _loop_bodies(operation: ir_pb2.Operation) -> Iterator[tuple[ir_pb2.Graph, int]]:
    """Bodies with the number of leading inputs that are constants, not carries."""
    numbers = {a.name: a.int_value for a in operation.attributes}
    for name, region in zip(operation.region_names, operation.regions, strict=True):
        if name == "jaxpr":
            yield region, numbers.get("num_consts", 0)
        elif name == "body_jaxpr":
            yield region, numbers.get("body_nconsts", 0)


def _carries(graph: ir_pb2.Graph, skip: int, loop: ir_pb2.Operation, found: Summary) -> None:
    producers = {v.id: operation for operation in graph.operations for v in operation.outputs if v.id}
    numbers = {a.name: a.int_value for a in loop.attributes}
    count = numbers.get("num_carry", len(graph.outputs))
    for value, output in list(zip(graph.inputs[skip:], graph.outputs, strict=False))[:count]:
        if float_bits(value.type.dtype) is not None and _sums(output.value, value.id, producers):
            _accumulator(value.type, loop, found)


def _sums(value: int, carried: int, producers: dict[int, ir_pb2.Operation]) -> bool:
    pending = [(value, False, 0)]
    seen: set[tuple[int, bool]] = set()
    while pending:
        current, added, depth = pending.pop()
        if current == carried and added:
            return True
        operation = producers.get(current)
        if operation is None or depth > _MAX_DEPTH or (current, added) in seen:
            continue
        seen.add((current, added))
        if operation.name in _ADDITIVE | _TRANSPARENT:
            adds = added or operation.name in ("add", "add_any", "sub")
            pending += [(o.value, adds, depth + 1) for o in operation.inputs if o.value]
    return False
