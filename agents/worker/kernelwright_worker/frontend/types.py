"""Types of jax as messages."""

from __future__ import annotations

from typing import Any

from kernelwright.v1 import ir_pb2


def tensor_type(aval: Any) -> ir_pb2.TensorType:
    """Type of a value or of a reference."""
    inner = getattr(aval, "inner_aval", None)
    if inner is not None:
        found = tensor_type(inner)
        found.is_ref = True
        found.memory_space = memory_space(getattr(aval, "memory_space", None))
        return found
    return ir_pb2.TensorType(
        dtype=dtype_name(getattr(aval, "dtype", None)),
        dims=[dimension(d) for d in getattr(aval, "shape", ())],
        weak_type=bool(getattr(aval, "weak_type", False)),
    )


def dtype_name(dtype: Any) -> str:
    """NumPy's name of a type; that of jax for keys and semaphores; "token" for a value without a type."""
    return "token" if dtype is None else str(getattr(dtype, "name", dtype))


def dimension(size: Any) -> int:
    """A size, -1 when it is not a number yet."""
    return int(size) if isinstance(size, int) or hasattr(size, "__index__") else -1


def memory_space(space: Any) -> str:
    """Name of a reference's memory; what is left to the compiler is VMEM."""
    text = str(getattr(space, "value", space)).lower() if space is not None else ""
    return "vmem" if text in ("", "default", "none") else text
