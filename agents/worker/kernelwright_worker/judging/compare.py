"""Compares a candidate's output with the reference's, on the scale of the reference's own error.

The truth is the reference in wider types. A candidate may be wrong by `factor` times what the reference
itself is wrong in its own types, or by a floor that the type of the output makes unavoidable. Errors count
relative to the scale of their row, so that a small row cannot hide behind a large one.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from kernelwright_worker.judging import tensors
from kernelwright_worker.judging.tensors import Array

# A few units in the last place of the type. float32 allows for another order of a long sum, and is a hundred
# times below what a product with bfloat16 operands costs.
FLOORS = {"float64": 1e-12, "float32": 2e-5, "float16": 2.0**-10, "bfloat16": 2.0**-8}
_NARROW_FLOOR = 2.0**-3  # 8 bits and less
_ROW_FLOOR = 1e-5  # rows this far below the largest one are noise of it
_TINY = 1e-30


@dataclasses.dataclass(frozen=True)
class Difference:
    """Outcome of a comparison."""

    candidate_error: float
    reference_error: float
    limit: float
    passed: bool
    uninitialised: bool  # NaN where the reference has a number
    detail: str


def floor_of(dtype: np.dtype[Any]) -> float:
    """Error that rounding to a type makes unavoidable, relative to a row's scale."""
    return FLOORS.get(dtype.name, _NARROW_FLOOR)


def compare(
    candidate: Array,
    native: Array,
    truth: Array,
    other: Array,
    *,
    factor: float,
    floor: float,
    nan_counts: bool = True,
) -> Difference:
    """Compares one output.

    `native` is the reference in its own types, `truth` in wider ones, `other` under inputs moved by one unit
    in the last place (or `native` again). All have one shape. `nan_counts`: where the reference has NaN, so
    must the candidate; otherwise NaN means that the reference defines no result there, and that its finite
    results elsewhere may hang on how it happens to cut its blocks: an attention that skips masked blocks
    never meets an infinity in them, with other blocks it is 0 * inf. There NaN is allowed, a wrong number
    is not.
    """
    if not tensors.is_float(native.dtype) and native.dtype.kind not in "fc":
        return _exact(candidate, native, truth)
    common = np.dtype(np.complex128 if native.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        return _relative(
            candidate.astype(common),
            native.astype(common),
            truth.astype(common),
            other.astype(common),
            factor,
            floor or floor_of(native.dtype),
            nan_counts,
        )


def _exact(candidate: Array, native: Array, truth: Array) -> Difference:
    # An index of a maximum may differ where the wider reference decides differently: either answer is right.
    wrong = (candidate != native) & (candidate != truth.astype(native.dtype))
    count = int(np.count_nonzero(wrong))
    if not count:
        return Difference(0.0, 0.0, 0.0, True, False, "")
    place = np.unravel_index(int(np.argmax(wrong)), wrong.shape) if wrong.ndim else ()
    detail = f"{count} of {wrong.size} elements differ, first at {_place(place)}: "
    detail += f"{candidate[place]} for {native[place]}"
    return Difference(count / wrong.size, 0.0, 0.0, False, False, detail)


def _relative(
    candidate: Any, native: Any, truth: Any, other: Any, factor: float, floor: float, nan_counts: bool
) -> Difference:
    defined = _same_class(native, truth) & _same_class(native, other) & (nan_counts | ~np.isnan(native))
    if not nan_counts and np.isnan(native).any():
        defined &= ~np.isnan(candidate)
    wrong_class = defined & ~_same_class(candidate, native)
    compared = defined & np.isfinite(native) & np.isfinite(candidate)
    scale = _row_scale(np.where(defined & np.isfinite(truth), np.abs(truth), 0))
    own = _error(native, truth, compared, scale)
    own = np.maximum(own, _error(other, truth, compared, scale))
    theirs = _error(candidate, truth, compared, scale)
    reference_error = float(own.max(initial=0))
    candidate_error = float(theirs.max(initial=0))
    limit = max(factor * reference_error, floor)
    norm = _norm_error(candidate, truth, compared)
    norm_limit = max(
        factor * max(_norm_error(native, truth, compared), _norm_error(other, truth, compared)), floor
    )
    problems: list[str] = []
    if wrong_class.any():
        place = np.unravel_index(int(np.argmax(wrong_class)), wrong_class.shape) if wrong_class.ndim else ()
        count = int(np.count_nonzero(wrong_class))
        problems.append(
            f"{count} of {wrong_class.size} elements are not finite where the reference is, "
            "or the other way round; "
            f"first at {_place(place)}: {candidate[place]} for {native[place]}"
        )
    if candidate_error > limit:
        place = np.unravel_index(int(np.argmax(theirs)), theirs.shape) if theirs.ndim else ()
        problems.append(
            f"error {candidate_error:.3g} of the row's scale at {_place(place)}, allowed {limit:.3g}: "
            f"{candidate[place]:.6g} for {truth[place]:.6g}"
        )
    elif norm > norm_limit:
        problems.append(f"error {norm:.3g} by norm, allowed {norm_limit:.3g}")
    uninitialised = bool((np.isnan(candidate) & defined & ~np.isnan(native)).any())
    return Difference(
        candidate_error, reference_error, limit, not problems, uninitialised, "; ".join(problems)
    )


def _same_class(left: Any, right: Any) -> Any:
    """Both finite, both NaN, or the same infinity."""
    finite = np.isfinite(left) & np.isfinite(right)
    return finite | (np.isnan(left) & np.isnan(right)) | (left == right)


def _row_scale(magnitude: Any) -> Any:
    if not magnitude.ndim:
        return np.maximum(magnitude, _TINY)
    rows = magnitude.max(axis=-1, keepdims=True, initial=0)
    return np.maximum(rows, max(_ROW_FLOOR * float(magnitude.max(initial=0)), _TINY))


def _error(value: Any, truth: Any, compared: Any, scale: Any) -> Any:
    return np.where(compared, np.abs(value - truth) / scale, 0.0)


def _norm_error(value: Any, truth: Any, compared: Any) -> float:
    if not compared.any():
        return 0.0
    # Scaled first: squares of large values overflow even in float64 sums of many.
    scale = max(float(np.abs(truth[compared]).max(initial=0)), _TINY)
    difference = (value[compared] - truth[compared]) / scale
    size = float(np.linalg.norm(truth[compared] / scale))
    return float(np.linalg.norm(difference)) / max(
        size, 1.0
    )  # below 1 only when everything is next to nothing


def _place(place: Any) -> str:
    return f"[{', '.join(str(int(i)) for i in place)}]"
