"""Converts a traced function to the program graph: regions, effects, source spans, constants, kernels."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import jax
import numpy as np
from jax.extend import core as jax_core
from kernelwright.v1 import ir_pb2

from kernelwright_worker import toolchain
from kernelwright_worker.frontend import attributes, spans
from kernelwright_worker.frontend.types import dimension, memory_space, tensor_type

MAX_CONSTANT_BYTES = 64 << 10
_PALLAS_HANDLED = frozenset(
    ["jaxpr", "grid_mapping", "input_output_aliases", "compiler_params", "out_avals", "name", "mesh"]
)
_SOURCE = re.compile(r"^(?P<name>.*) at (?P<file>.*):(?P<line>\d+)$")


def convert(closed: Any) -> ir_pb2.Program:
    """Converts a ClosedJaxpr."""
    program = ir_pb2.Program(front_end="jax", versions=toolchain.versions())
    program.main.CopyFrom(_Converter().graph(closed.jaxpr, closed.consts))
    return program


def convert_call(params: dict[str, Any]) -> ir_pb2.PallasCall:
    """Converts the parameters of a kernel call, the body too when `params` has it."""
    return _Converter().pallas_call(params)


def _is_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns") and hasattr(value, "invars") or isinstance(value, jax_core.ClosedJaxpr)


class _Converter:
    """Numbers values; an id is unique within one program."""

    def __init__(self) -> None:
        self._last_id = 0
        self._enclosing: list[ir_pb2.SourceSpan] = []

    def graph(self, jaxpr: Any, consts: Any = ()) -> ir_pb2.Graph:
        """Converts a body. `consts` are the values of its constant variables, where it has any."""
        ids: dict[Any, int] = {}
        info = jaxpr.debug_info
        graph = ir_pb2.Graph(name=function_name(info))
        if len(consts) == len(jaxpr.constvars):
            for variable, value in zip(jaxpr.constvars, consts, strict=True):
                graph.constants.append(self._constant(self._new_id(ids, variable), variable.aval, value))
        else:  # constants that the enclosing operation passes as operands
            graph.inputs.extend(self._define(ids, v) for v in jaxpr.constvars)
        names = list(getattr(info, "arg_names", None) or [])
        for position, variable in enumerate(jaxpr.invars):
            name = names[position] if position < len(names) and len(names) == len(jaxpr.invars) else ""
            graph.inputs.append(self._define(ids, variable, name or ""))
        for equation in jaxpr.eqns:
            operation = graph.operations.add()
            self._operation(operation, equation, ids, graph)
        graph.outputs.extend(self._operand(v, ids, graph) for v in jaxpr.outvars)
        return graph

    def _operation(
        self, operation: ir_pb2.Operation, equation: Any, ids: dict[Any, int], graph: ir_pb2.Graph
    ) -> None:
        operation.name = equation.primitive.name
        operation.inputs.extend(self._operand(v, ids, graph) for v in equation.invars)
        # A body that was traced on its own knows no callers: functions of jax.numpy, kernels. Theirs are
        # added, so that the spans of an operation always lead to the user's code.
        own = spans.of_jax(equation.source_info.traceback)
        operation.spans.extend(own + [s for s in self._enclosing if s not in own])
        outer, self._enclosing = self._enclosing, list(operation.spans)
        is_kernel = operation.name == "pallas_call" and "grid_mapping" in equation.params
        regions: set[str] = set(_PALLAS_HANDLED) if is_kernel else set()
        if is_kernel:
            operation.pallas.CopyFrom(self.pallas_call(equation.params))
        else:
            regions |= self._regions(operation, equation.params)
        operation.attributes.extend(
            attributes.attributes(equation.params, len(equation.invars), frozenset(regions))
        )
        if is_kernel:
            operation.pallas.spans.extend(operation.spans)
        self._enclosing = outer
        operation.effects.extend(sorted(_effect(e, equation.invars) for e in equation.effects))
        operation.outputs.extend(self._define(ids, v) for v in equation.outvars)

    def _regions(self, operation: ir_pb2.Operation, params: dict[str, Any]) -> set[str]:
        names: set[str] = set()
        for name in sorted(params):
            value = params[name]
            several = isinstance(value, (tuple, list)) and bool(value) and all(_is_jaxpr(v) for v in value)
            if not several and not _is_jaxpr(value):
                continue
            names.add(name)
            for position, body in enumerate(value if several else [value]):
                closed = isinstance(body, jax_core.ClosedJaxpr)
                operation.regions.append(
                    self.graph(body.jaxpr if closed else body, body.consts if closed else ())
                )
                operation.region_names.append(f"{name}[{position}]" if several else name)
        return names

    def pallas_call(self, params: dict[str, Any]) -> ir_pb2.PallasCall:
        """Converts a kernel call."""
        mapping = params["grid_mapping"]
        info = params["debug_info"] if "debug_info" in params else params["jaxpr"].debug_info
        call = ir_pb2.PallasCall(
            name=params.get("name") or function_name(info),
            grid=[dimension(d) for d in mapping.grid],
            num_scalar_prefetch=mapping.num_index_operands,
            scratch=[tensor_type(a) for a in mapping.scratch_avals],
            aliases=[ir_pb2.Alias(operand=i, output=o) for i, o in params.get("input_output_aliases") or ()],
        )
        compiler = params.get("compiler_params")
        call.dimension_semantics.extend(
            _word(s) for s in getattr(compiler, "dimension_semantics", None) or ()
        )
        limit = getattr(compiler, "vmem_limit_bytes", None)
        if limit is not None:
            call.vmem_limit_bytes = int(limit)
        for position, block in enumerate(mapping.block_mappings):
            call.blocks.append(self._block(block, position >= mapping.num_inputs, bool(mapping.grid)))
        source = _SOURCE.match(getattr(info, "func_src_info", None) or "")
        if source:
            line = int(source["line"])
            call.kernel_span.CopyFrom(
                ir_pb2.SourceSpan(file=source["file"], line=line, end_line=line, function=source["name"])
            )
        if "jaxpr" in params:
            call.kernel.CopyFrom(self.graph(params["jaxpr"]))
        return call

    def _block(self, block: Any, is_output: bool, has_grid: bool) -> ir_pb2.BlockMapping:
        space = memory_space(getattr(block.transformed_block_aval, "memory_space", None))
        pipeline = getattr(block, "pipeline_mode", None)
        found = ir_pb2.BlockMapping(
            origin=str(block.origin),
            is_output=is_output,
            array=tensor_type(block.array_aval),
            block=[_block_dim(d) for d in block.block_shape],
            memory_space=space,
            buffers=int(getattr(pipeline, "buffer_count", 2) if pipeline is not None else 2),
        )
        found.array.memory_space = ""
        if has_grid and space in ("vmem", "smem"):  # elsewhere the kernel sees the whole operand
            closed = block.index_map_jaxpr
            found.index_map.CopyFrom(self.graph(closed.jaxpr, closed.consts))
        return found

    def _define(self, ids: dict[Any, int], variable: Any, name: str = "") -> ir_pb2.GraphValue:
        if type(variable).__name__ == "DropVar":
            return ir_pb2.GraphValue(id=0, type=tensor_type(variable.aval))
        return ir_pb2.GraphValue(id=self._new_id(ids, variable), type=tensor_type(variable.aval), name=name)

    def _new_id(self, ids: dict[Any, int], variable: Any) -> int:
        self._last_id += 1
        ids[variable] = self._last_id
        return self._last_id

    def _operand(self, atom: Any, ids: dict[Any, int], graph: ir_pb2.Graph) -> ir_pb2.Operand:
        if not hasattr(atom, "val"):
            return ir_pb2.Operand(value=ids[atom]) if atom in ids else ir_pb2.Operand(dropped=True)
        kind = tensor_type(atom.aval)
        value = atom.val
        if np.ndim(value) or kind.dtype.startswith("key"):
            self._last_id += 1
            graph.constants.append(self._constant(self._last_id, atom.aval, value))
            return ir_pb2.Operand(value=self._last_id)
        if kind.dtype == "bool":
            return ir_pb2.Operand(bool_literal=bool(value), literal_type=kind)
        if kind.dtype.startswith(("int", "uint")):
            number = int(value)
            wrapped = number - (1 << 64) if number >= 1 << 63 else number
            return ir_pb2.Operand(int_literal=wrapped, literal_type=kind)
        try:
            return ir_pb2.Operand(float_literal=float(value), literal_type=kind)
        except (TypeError, ValueError):
            return ir_pb2.Operand(dropped=True, literal_type=kind)

    def _constant(self, number: int, aval: Any, value: Any) -> ir_pb2.GraphConstant:
        found = ir_pb2.GraphConstant(value=number, type=tensor_type(aval))
        if found.type.is_ref:
            return found
        if found.type.dtype.startswith("key"):
            value = jax.random.key_data(value)
        data = np.ascontiguousarray(np.asarray(value)).tobytes()
        found.size_bytes = len(data)
        found.sha256 = hashlib.sha256(data).hexdigest()
        if len(data) <= MAX_CONSTANT_BYTES:
            found.data = data
        return found


def function_name(info: Any) -> str:
    """Name of the function that a body came from."""
    return (getattr(info, "func_src_info", None) or "").split(" at ")[0]


def _word(value: Any) -> str:
    return str(getattr(value, "value", value)).lower().rpartition(".")[2]


def _block_dim(dim: Any) -> ir_pb2.BlockDim:
    kinds = {
        "Squeezed": ir_pb2.BlockDim.SQUEEZED,
        "Element": ir_pb2.BlockDim.ELEMENT,
        "BoundedSlice": ir_pb2.BlockDim.BOUNDED_SLICE,
    }
    name = type(dim).__name__
    if dim is None or name == "Squeezed":
        return ir_pb2.BlockDim(kind=ir_pb2.BlockDim.SQUEEZED, size=1)
    size = dimension(getattr(dim, "block_size", dim))
    return ir_pb2.BlockDim(kind=kinds.get(name, ir_pb2.BlockDim.BLOCKED), size=size)


def _effect(effect: Any, operands: Any) -> str:
    name = type(effect).__name__
    position = getattr(effect, "input", None)
    if position is None:
        position = getattr(effect, "input_index", None)
    if position is not None:
        if not isinstance(position, int):
            position = next((i for i, v in enumerate(operands) if v is position), -1)
        return f"{name.removesuffix('Effect').lower()}({position})"
    lowered = name.lower()
    if "callback" in lowered or "io" in lowered.split("effect")[0]:
        return "callback"
    if "debug" in lowered or "print" in lowered:
        return "debug"
    return name.removesuffix("Effect").lower()
