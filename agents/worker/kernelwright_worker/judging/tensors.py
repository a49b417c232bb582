"""Arrays as messages and back, bit by bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from kernelwright.v1 import ir_pb2, worker_pb2

KEY_WORDS = (2,)  # raw data of jax's default key
Array = np.ndarray[Any, np.dtype[Any]]


def is_key(kind: ir_pb2.TensorType) -> bool:
    """Whether a type is that of PRNG keys; their tensors hold the raw words, in a trailing axis."""
    return kind.dtype.startswith("key")


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy type of a name, those of ml_dtypes included. Raises TypeError for others."""
    try:
        known: np.dtype[Any] = np.dtype(name)
        return known
    except TypeError:
        found = getattr(ml_dtypes, name, None)
        if found is None:
            raise TypeError(f"unknown element type {name!r}") from None
        of_ml_dtypes: np.dtype[Any] = np.dtype(found)
        return of_ml_dtypes


def encode(array: Array, dtype: str = "") -> worker_pb2.Tensor:
    """An array as a message; `dtype` overrides the name for keys."""
    name = dtype or array.dtype.name
    data = np.ascontiguousarray(array)
    if data.dtype.byteorder == ">":
        data = data.astype(data.dtype.newbyteorder("<"))
    kind = ir_pb2.TensorType(dtype=name, dims=array.shape)
    return worker_pb2.Tensor(type=kind, data=data.tobytes())


def decode(tensor: worker_pb2.Tensor) -> Array:
    """The array of a message; a key's raw words. Raises ValueError when data and type do not fit."""
    dtype = np.dtype(np.uint32) if is_key(tensor.type) else numpy_dtype(tensor.type.dtype)
    return np.frombuffer(tensor.data, dtype).reshape(tuple(tensor.type.dims))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a type has fractions: NumPy's own floats and those of ml_dtypes."""
    if dtype.kind == "f":
        return True
    try:
        ml_dtypes.finfo(dtype)
    except (ValueError, TypeError):
        return False
    return True
