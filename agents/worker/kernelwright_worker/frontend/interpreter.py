"""Runs unmodified user code under the TPU interpreter, and keeps what the interpreter finds.

The interpreter replaces its race detector at every kernel, so each detector that it makes is kept. What it
prints is not used: a candidate can print too.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax._src import source_info_util
from jax._src.pallas import hlo_interpreter
from jax._src.pallas import pallas_call as pallas_module
from jax._src.pallas.mosaic.interpret import interpret_pallas_call as interpreter
from jax._src.pallas.mosaic.interpret import thread_map
from jax.experimental.pallas import tpu as pltpu

# Far from anything a kernel computes from inputs of unit scale, and finite: infinity would spread through a
# product with zero and make a kernel look needed that is not.
GHOST_MARKER = 1000.0
CORES = 2


class _CompiledBodies:
    """Compiled bodies of kernels, one per body and operand types.

    The interpreter compiles a kernel's body anew for every simulated core of every run, which takes longer
    than running it. The bodies are kept alive here, so that an id names one body.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiled: dict[Any, tuple[Any, Any]] = {}

    def run(self, jaxpr: Any, consts: Any, *operands: Any) -> None:
        """Stands in for the interpreter's own function of these parameters."""
        leaves, tree = jax.tree_util.tree_flatten((consts, operands))
        key = (id(jaxpr), tree, tuple((jnp.shape(v), str(jnp.result_type(v))) for v in leaves))
        with self._lock:
            if key not in self._compiled:

                def body(consts: Any, *operands: Any) -> None:
                    jax.core.eval_jaxpr(jaxpr, consts, *operands)

                self._compiled[key] = (jaxpr, jax.jit(body).lower(consts, *operands).compile())
        self._compiled[key][1](consts, *operands)

    def clear(self) -> None:
        """Frees what was compiled."""
        self._compiled.clear()


_bodies = _CompiledBodies()


def forget_compiled() -> None:
    """Frees compiled programs, those of jax's own caches included."""
    _bodies.clear()
    jax.clear_caches()


class Detectors:
    """Race detectors of all kernels that ran, and how many ran."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.place = ""

    @property
    def kernels(self) -> int:
        """Kernels executed."""
        return len(self.made)

    @property
    def races(self) -> bool:
        """Whether any kernel raced."""
        return any(bool(d.races_found) for d in self.made)


@contextlib.contextmanager
def interpreted(seed: int, detectors: Detectors, memory: Literal["nan", "zero"] = "nan") -> Iterator[None]:
    """Every kernel called inside runs under the interpreter, with races detected. `memory`: what fresh memory
    holds.
    """
    original = interpreter.RaceDetectionState

    class Kept(original):  # type: ignore[misc, valid-type]
        """A detector that is remembered, with the line of its first race."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            detectors.made.append(self)

        def check_read(self, *arguments: Any, **options: Any) -> Any:
            return self._noting(super().check_read, *arguments, **options)

        def check_write(self, *arguments: Any, **options: Any) -> Any:
            return self._noting(super().check_write, *arguments, **options)

        def _noting(self, check: Any, *arguments: Any, **options: Any) -> Any:
            before = self.races_found
            result = check(*arguments, **options)
            info = options.get("source_info") or next(
                (a for a in arguments if isinstance(a, source_info_util.SourceInfo)), None
            )
            if self.races_found and not before and not detectors.place:
                detectors.place = (
                    source_info_util.summarize(info) if info is not None else "a block of a pallas_call"
                )
            return result

    interpreter.reset_tpu_interpret_mode_state()
    interpreter.RaceDetectionState = Kept
    run_body = thread_map._run_jaxpr
    thread_map._run_jaxpr = _bodies.run
    params = pltpu.InterpretParams(
        detect_races=True, num_cores_or_threads=CORES, random_seed=seed, uninitialized_memory=memory
    )
    try:
        with pltpu.force_tpu_interpret_mode(params):
            yield
    finally:
        interpreter.RaceDetectionState = original
        thread_map._run_jaxpr = run_body
        interpreter.reset_tpu_interpret_mode_state()


@contextlib.contextmanager
def plainly_interpreted() -> Iterator[None]:
    """Every kernel called inside is evaluated as ordinary jax code: fast, and blind to hardware."""
    original = pallas_module._pallas_call

    @functools.wraps(original)
    def plain(*arguments: Any, **options: Any) -> Any:
        return original(*arguments, **{**options, "interpret": True})

    pallas_module._pallas_call = plain
    try:
        with _unwritten_blocks_stay():
            yield
    finally:
        pallas_module._pallas_call = original


@contextlib.contextmanager
def _unwritten_blocks_stay() -> Iterator[None]:
    """Plain evaluation stores every block back after each grid step, those that were only read too, so each
    step copies whole inputs. A block that goes back to where it came from, unchanged, needs no store: on a
    matmul with 2048 steps this is five times faster.
    """
    load, store = hlo_interpreter._dynamic_slice, hlo_interpreter._dynamic_update_slice
    loaded: dict[int, tuple[Any, Any, Any]] = {}  # by the block's id; kept, so that no id is used twice

    def remembering(start: Any, block_shape: Any, value: Any, squeezed: Any) -> Any:
        block = load(start, block_shape, value, squeezed)
        loaded[id(block)] = (block, start, value)
        return block

    def sparing(start: Any, block_shape: Any, value: Any, block: Any, squeezed: Any) -> Any:
        _block, from_start, from_value = loaded.get(id(block), (None, None, None))
        # A copying kernel stores the block of one operand to another one.
        unchanged = from_start is start and from_value is value
        return value if unchanged else store(start, block_shape, value, block, squeezed)

    hlo_interpreter._dynamic_slice, hlo_interpreter._dynamic_update_slice = remembering, sparing
    try:
        yield
    finally:
        hlo_interpreter._dynamic_slice, hlo_interpreter._dynamic_update_slice = load, store


@contextlib.contextmanager
def ghost(number: int) -> Iterator[None]:
    """Replaces the result of the kernel call with this number, counted from 1 in order of tracing, by a
    marker.
    """
    original = pallas_module._pallas_call
    count = 0

    @functools.wraps(original)
    def replaced(kernel: Any, out_shape: Any, **options: Any) -> Any:
        call = original(kernel, out_shape, **options)

        def invoke(*operands: Any) -> Any:
            nonlocal count
            count += 1
            if count != number:
                return call(*operands)
            shapes = tuple(out_shape) if isinstance(out_shape, list) else out_shape
            return jax.tree_util.tree_map(_marker, shapes)

        return invoke

    pallas_module._pallas_call = replaced
    try:
        yield
    finally:
        pallas_module._pallas_call = original


def _marker(shape: Any) -> Any:
    dtype = jnp.dtype(shape.dtype)
    return jnp.full(shape.shape, GHOST_MARKER if jnp.issubdtype(dtype, jnp.floating) else 1, dtype)
