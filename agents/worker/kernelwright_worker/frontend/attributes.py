"""Parameters of jax operations as attributes: numbers as numbers, tuples as lists, the rest in words."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from kernelwright.v1 import ir_pb2

from kernelwright_worker.frontend.types import dtype_name

_ADDRESS = re.compile(r" at 0x[0-9a-f]+|0x[0-9a-f]{6,}|id=\d+")
_MAX_TEXT = 4096
_TREES = ("tree", "args_tree")
_INT64 = 1 << 63


def attributes(
    params: Mapping[str, Any], operand_count: int, skipped: frozenset[str]
) -> list[ir_pb2.Attribute]:
    """Attributes sorted by name. None and functions are left out, also the names in `skipped`."""
    found: list[ir_pb2.Attribute] = []
    for name in sorted(params):
        value = params[name]
        if name in skipped or value is None:
            continue
        if name in _TREES and isinstance(value, jax.tree_util.PyTreeDef):
            found.append(ir_pb2.Attribute(name="arguments", text=_arguments(value, operand_count)))
        else:
            found += _attribute(name, value)
    return sorted(found, key=lambda a: a.name)


def _attribute(name: str, value: Any) -> Iterator[ir_pb2.Attribute]:
    if isinstance(value, (bool, np.bool_)):
        yield ir_pb2.Attribute(name=name, bool_value=bool(value))
    elif isinstance(value, enum.Enum):
        yield ir_pb2.Attribute(name=name, text=value.name)
    elif isinstance(value, (int, np.integer)) and -_INT64 <= int(value) < _INT64:
        yield ir_pb2.Attribute(name=name, int_value=int(value))
    elif isinstance(value, (float, np.floating)):
        yield ir_pb2.Attribute(name=name, float_value=float(value))
    elif isinstance(value, (tuple, list)) and _all_integers(value):
        flat = list(_flat(value))
        yield ir_pb2.Attribute(name=name, ints=ir_pb2.IntList(values=flat))
        if any(isinstance(v, (tuple, list)) for v in value):
            yield ir_pb2.Attribute(name=name + ".structure", text=_nested(value))
    elif not (callable(value) and not isinstance(value, type)):
        yield ir_pb2.Attribute(name=name, text=_words(value))


def _all_integers(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_all_integers(v) for v in value)
    return (
        isinstance(value, (int, np.integer))
        and not isinstance(value, bool)
        and -_INT64 <= int(value) < _INT64
    )


def _flat(value: Any) -> Iterator[int]:
    if isinstance(value, (tuple, list)):
        for inner in value:
            yield from _flat(inner)
    else:
        yield int(value)


def _nested(value: Any) -> str:
    return f"({','.join(_nested(v) for v in value)})" if isinstance(value, (tuple, list)) else str(int(value))


def _words(value: Any) -> str:
    if isinstance(value, (np.dtype, type)) or jax.dtypes.issubdtype(
        getattr(value, "dtype", None), np.generic
    ):
        return dtype_name(np.dtype(value)) if _is_dtype(value) else _clean(str(value))
    if isinstance(value, (tuple, list)):
        return f"({','.join(_words(v) for v in value)})"
    if isinstance(value, enum.Enum):
        return value.name
    return _clean(str(value))


def _is_dtype(value: Any) -> bool:
    try:
        np.dtype(value)
    except TypeError:
        return False
    return True


def _clean(text: str) -> str:
    return _ADDRESS.sub("", text)[:_MAX_TEXT]


# ---- how loads, stores and copies index their references


def _arguments(tree: Any, operand_count: int) -> str:
    """Arguments of an operation on references, `$n` standing for operand n: `$0, [0:512:1, $1:8:1]`.

    A slice reads start:size:stride.
    """
    if tree.num_leaves > operand_count:
        return _clean(str(tree))
    # Operations keep references outside the tree (get, swap: then the value) or inside (dma_start).
    first = operand_count - tree.num_leaves
    leaves = [_Operand(first + i) for i in range(tree.num_leaves)]
    try:
        return _argument(jax.tree_util.tree_unflatten(tree, leaves))[:_MAX_TEXT]
    except Exception:  # a node class that refuses placeholders; the printed tree still says it
        return _clean(str(tree))


@dataclasses.dataclass(frozen=True)
class _Operand:
    position: int


def _argument(value: Any) -> str:
    if isinstance(value, _Operand):
        return f"${value.position}"
    kind = type(value).__name__
    if kind == "NDIndexer":
        return f"[{', '.join(_argument(i) for i in value.indices)}]"
    if kind == "Slice":
        return f"{_argument(value.start)}:{_argument(value.size)}:{_argument(value.stride)}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_argument(v) for v in value)})"
    return _clean(str(value))
