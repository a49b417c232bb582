"""Draws the inputs of a check. Seeds come from the daemon at the run's start; the drawn processes never see
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from kernelwright.v1 import worker_pb2

from kernelwright_worker.judging import tensors
from kernelwright_worker.judging.tensors import Array

Generator = np.random.Generator
_LARGE, _TINY = 2.0**10, 2.0**-125
_INTEGERS_BELOW = 8  # integers without a stated range are mostly ids or lengths: small ones fit any table


def _normal(random: Generator, shape: tuple[int, ...]) -> Array:
    # In float32 and cast afterwards: normals drawn in bfloat16 take few distinct values and have a bias.
    return random.standard_normal(shape, np.float32)


def _uniform(random: Generator, shape: tuple[int, ...]) -> Array:
    return random.random(shape, np.float32)


def _equal_rows(random: Generator, shape: tuple[int, ...]) -> Array:
    if len(shape) < 2:
        return np.full(shape, random.standard_normal(), np.float32)
    return np.broadcast_to(_normal(random, shape[-1:]), shape).copy()


def _large(random: Generator, shape: tuple[int, ...]) -> Array:
    return _normal(random, shape) * np.float32(_LARGE)


def _tiny(random: Generator, shape: tuple[int, ...]) -> Array:
    return _normal(random, shape) * np.float32(_TINY)


def _negative_zero(random: Generator, shape: tuple[int, ...]) -> Array:
    return np.where(random.random(shape) < 0.5, np.float32(-0.0), np.float32(0.0)).astype(np.float32)


def _one_hot(random: Generator, shape: tuple[int, ...]) -> Array:
    values = np.zeros(shape, np.float32)
    if not shape:
        return np.ones(shape, np.float32)
    rows = values.reshape(-1, shape[-1]) if shape[-1] else values.reshape(0, 1)
    rows[np.arange(len(rows)), random.integers(0, max(shape[-1], 1), len(rows))] = 1
    return values


def _infinities(random: Generator, shape: tuple[int, ...]) -> Array:
    values = _normal(random, shape)
    flat = values.reshape(-1)
    if flat.size:
        places = random.integers(0, flat.size, 2)
        flat[places[0]], flat[places[1]] = np.inf, -np.inf
    return values


# Order is that of the checks: what finds most comes first.
DISTRIBUTIONS: dict[str, Callable[[Generator, tuple[int, ...]], Array]] = {
    "normal": _normal,
    "adversarial:equal-rows": _equal_rows,
    "adversarial:large": _large,
    "adversarial:one-hot": _one_hot,
    "adversarial:tiny": _tiny,
    "adversarial:negative-zero": _negative_zero,
    "adversarial:infinities": _infinities,
    "user": _uniform,
}


def draw(
    specs: Sequence[worker_pb2.InputSpec], distribution: str, seed: int, place: int
) -> list[worker_pb2.Tensor]:
    """Values of all traced inputs, in order. `place` tells one shape from another under the same seed."""
    drawn: list[worker_pb2.Tensor] = []
    for position, spec in enumerate(specs):
        kind = spec.WhichOneof("kind")
        order = list(DISTRIBUTIONS).index(distribution)
        random = np.random.default_rng([seed, place, order, position])
        if kind == "prng_key":
            words = random.integers(0, 2**32, tensors.KEY_WORDS, np.uint32)
            drawn.append(tensors.encode(words, "key<fry>"))
        elif kind == "tensor":
            drawn.append(tensors.encode(_values(spec.tensor, DISTRIBUTIONS[distribution], random)))
    return drawn


def has_floats(specs: Sequence[worker_pb2.InputSpec]) -> bool:
    """Whether any input has values that a distribution can shape."""
    return any(
        s.WhichOneof("kind") == "tensor" and tensors.is_float(tensors.numpy_dtype(s.tensor.type.dtype))
        for s in specs
    )


def perturb(values: Sequence[worker_pb2.Tensor], seed: int) -> list[worker_pb2.Tensor]:
    """Moves every float32 and float64 by at most one unit in its last place.

    What the reference then answers differently is its own sensitivity: no implementation can be asked to do
    better.
    """
    moved: list[worker_pb2.Tensor] = []
    for position, tensor in enumerate(values):
        array = tensors.decode(tensor) if not tensors.is_key(tensor.type) else None
        if array is None or array.dtype.kind != "f" or array.dtype.itemsize < 4:
            moved.append(tensor)
            continue
        random = np.random.default_rng([seed, position])
        towards = np.where(random.random(array.shape) < 0.5, np.inf, -np.inf).astype(array.dtype)
        moved.append(
            tensors.encode(np.where(np.isfinite(array) & (array != 0), np.nextafter(array, towards), array))
        )
    return moved


def _values(spec: worker_pb2.TensorInput, draw_floats: Callable[..., Array], random: Generator) -> Array:
    dtype: np.dtype[Any] = tensors.numpy_dtype(spec.type.dtype)
    shape = tuple(spec.type.dims)
    if dtype == np.bool_:
        return random.random(shape) < 0.5
    if tensors.is_float(dtype):
        with np.errstate(over="ignore", invalid="ignore"):
            return draw_floats(random, shape).astype(dtype)
    if dtype.kind == "c":
        return (draw_floats(random, shape) + 1j * draw_floats(random, shape)).astype(dtype)
    if dtype.kind in "iu" or dtype.itemsize == 1:
        low, high = (spec.low, spec.high) if spec.has_range else _default_range(dtype)
        return random.integers(low, high, shape, np.int64, endpoint=True).astype(dtype)
    raise ValueError(f"inputs of type {dtype.name} cannot be drawn")


def _default_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype.name in ("int8", "uint8"):
        limits = np.iinfo(dtype)
        return int(limits.min), int(limits.max)
    return (-8, 7) if dtype.name == "int4" else (0, _INTEGERS_BELOW - 1)
