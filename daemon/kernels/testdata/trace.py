"""Traces functions for the tests of daemon/kernels; used only to record testdata/traces (see tuning_test.cc).

Each line of standard input is JSON: {"text": source, "function": name, "inputs": [INPUT, ...]}; an INPUT
is [dtype, dims] or {"static": value}. Each line of output is {"traced": bool, "error": text, "calls": [...]}.
"""

from __future__ import annotations

import hashlib
import json
import sys
import types
from typing import Any

import jax
import jax.numpy as jnp
from jax._src.pallas import core as pallas_core

recorded: list[tuple[Any, Any]] = []
real_get_grid_mapping = pallas_core.get_grid_mapping


def get_grid_mapping(*args: Any, **kwargs: Any) -> Any:
    result = real_get_grid_mapping(*args, **kwargs)
    recorded.append(result)
    return result


pallas_core.get_grid_mapping = get_grid_mapping


def graph_json(jaxpr: Any) -> dict[str, Any]:
    ids: dict[Any, int] = {}

    def number(var: Any) -> int:
        return ids.setdefault(var, len(ids) + 1)

    def operand(atom: Any) -> Any:
        if hasattr(atom, "val"):
            try:
                return {"literal": int(atom.val)}
            except (TypeError, ValueError):
                return {"literal": None}
        return number(atom)

    inputs = [number(v) for v in (*jaxpr.constvars, *jaxpr.invars)]
    operations = []
    for eqn in jaxpr.eqns:
        regions = []
        for value in eqn.params.values():
            for sub in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(sub, "jaxpr", sub)
                if hasattr(inner, "eqns"):
                    regions.append(graph_json(inner))
        operations.append(
            {
                "op": eqn.primitive.name,
                "in": [operand(a) for a in eqn.invars],
                "out": [[number(v), str(getattr(v.aval, "dtype", ""))] for v in eqn.outvars],
                "regions": regions,
            }
        )
    return {"in": inputs, "operations": operations, "out": [operand(a) for a in jaxpr.outvars]}


def block_dim(dim: Any) -> list[Any]:
    kind = type(dim).__name__
    if dim is None or kind == "Squeezed":
        return ["squeezed", 1]
    if kind == "Element":
        return ["element", int(dim.block_size)]
    if kind == "BoundedSlice":
        return ["bounded", int(dim.block_size)]
    return ["blocked", int(getattr(dim, "block_size", dim))]


def space_of(aval: Any) -> str:
    space = getattr(aval, "memory_space", None)
    return "vmem" if space is None else str(space).lower().split(".")[-1]


def mapping_json(mapping: Any, scratch_avals: Any) -> dict[str, Any]:
    blocks = []
    for index, block in enumerate(mapping.block_mappings):
        space = space_of(block.block_aval)
        in_place = space in ("any", "hbm")
        blocks.append(
            {
                "origin": str(block.origin),
                "output": index >= mapping.num_inputs,
                "array": [str(block.array_aval.dtype), list(block.array_aval.shape)],
                "block": [block_dim(d) for d in block.block_shape],
                "space": space,
                "index_map": None if in_place else graph_json(block.index_map_jaxpr.jaxpr),
            }
        )
    return {
        "grid": [g if isinstance(g, int) else -1 for g in mapping.grid],
        "prefetch": mapping.num_index_operands,
        "blocks": blocks,
        "scratch": [
            [str(getattr(a, "dtype", "semaphore")), list(getattr(a, "shape", ())), space_of(a)]
            for a in scratch_avals
        ],
    }


def calls_of(jaxpr: Any, out: list[dict[str, Any]]) -> None:
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "pallas_call":
            mapping = eqn.params["grid_mapping"]
            kernel = eqn.params["jaxpr"]
            first_scratch = len(kernel.invars) - mapping.num_scratch_operands
            call = mapping_json(mapping, [v.aval for v in kernel.invars[first_scratch:]])
            text = kernel.pretty_print(source_info=False)
            call["kernel"] = hashlib.sha256(text.encode()).hexdigest()[:16]
            params = eqn.params.get("compiler_params")
            params = params.get("mosaic_tpu", params) if isinstance(params, dict) else params
            semantics = getattr(params, "dimension_semantics", None) or ()
            call["semantics"] = [str(s).lower().split(".")[-1] for s in semantics]
            call["limit"] = getattr(params, "vmem_limit_bytes", None)
            out.append(call)
            continue
        for value in eqn.params.values():
            for sub in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(sub, "jaxpr", sub)
                if hasattr(inner, "eqns"):
                    calls_of(inner, out)


def handle(request: dict[str, Any]) -> dict[str, Any]:
    recorded.clear()
    module = types.ModuleType("user")
    try:
        exec(compile(request["text"], "user.py", "exec"), module.__dict__)
        function = getattr(module, request["function"])
        arguments = []
        statics = []
        for index, spec in enumerate(request["inputs"]):
            if isinstance(spec, dict):
                arguments.append(spec["static"])
                statics.append(index)
            else:
                arguments.append(jax.ShapeDtypeStruct(spec[1], jnp.dtype(spec[0])))
        jaxpr = jax.make_jaxpr(function, static_argnums=tuple(statics))(*arguments)
    except Exception as error:  # the user's code may raise anything
        calls = []
        for avals, mapping in recorded:
            count = mapping.num_scratch_operands
            calls.append(mapping_json(mapping, avals[len(avals) - count :] if count else []) | {"kernel": ""})
        return {"traced": False, "error": f"{type(error).__name__}: {error}"[:200], "calls": calls}
    calls = []
    calls_of(jaxpr.jaxpr, calls)
    return {"traced": True, "error": "", "calls": calls}


for line in sys.stdin:
    print(json.dumps(handle(json.loads(line)), separators=(",", ":")), flush=True)
