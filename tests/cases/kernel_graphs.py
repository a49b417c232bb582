"""Records program graphs of small kernels for the tests of daemon/diagnose, one JSON object per line.

    PYTHONPATH=agents/worker:BUILD/python python tests/cases/kernel_graphs.py \
        > daemon/diagnose/testdata/kernel_graphs.jsonl

Each function below returns a function to trace and its inputs. The first word of its docstring is what the
lints have to say about it ("D30", "right"); the graph is the JSON form of proto/kernelwright/v1/ir.proto as
the worker's converter makes it, without what the tests do not read. Most kernels come in pairs: wrong, and
nearly the same but right.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

for _name, _value in {
    "JAX_PLATFORMS": "cpu",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}.items():
    os.environ.setdefault(_name, _value)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from google.protobuf import json_format  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402
from kernelwright_worker.frontend import chip_context, program  # noqa: E402

F32, BF16, I32 = jnp.float32, jnp.bfloat16, jnp.int32
Shape = jax.ShapeDtypeStruct
Case = tuple[Callable[..., Any], list[Any]]
CASES: dict[str, Callable[[], Case]] = {}


def case(function: Callable[[], Case]) -> Callable[[], Case]:
    CASES[function.__name__] = function
    return function


def call(kernel: Callable[..., None], out: Any, *inputs: Any, **options: Any) -> Case:
    def function(*arrays: Any) -> Any:
        return pl.pallas_call(kernel, out_shape=out, **options)(*arrays)

    return function, list(inputs)


def tile(*axes: int | None, block: tuple[int | None, ...] = (8, 128)) -> pl.BlockSpec:
    return pl.BlockSpec(block, lambda *ids: tuple(0 if a is None else ids[a] for a in axes))


def when(condition: Any) -> Callable[[Callable[[], None]], None]:
    decorate: Callable[[Callable[[], None]], None] = pl.when(condition)
    return decorate


def zero(ref: Any) -> None:
    ref[...] = jnp.zeros_like(ref)


ROWS = pl.BlockSpec((None, 8, 128), lambda i, *_: (i, 0, 0))
ONE = tile(None, None)
OUT = Shape((8, 128), F32)
STACK = Shape((4, 8, 128), F32)

# ---- uninitialised memory


@case
def sum_without_zero() -> Case:
    """D30"""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] += x_ref[...]

    return call(kernel, OUT, STACK, grid=(4,), in_specs=[ROWS], out_specs=ONE)


@case
def sum_with_zero() -> Case:
    """right"""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        @when(pl.program_id(0) == 0)
        def _() -> None:
            zero(o_ref)

        o_ref[...] += x_ref[...]

    return call(kernel, OUT, STACK, grid=(4,), in_specs=[ROWS], out_specs=ONE)


@case
def sum_with_choice() -> Case:
    """right: the old content is read and thrown away in the first step"""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.where(pl.program_id(0) == 0, x_ref[...], o_ref[...] + x_ref[...])

    return call(kernel, OUT, STACK, grid=(4,), in_specs=[ROWS], out_specs=ONE)


@case
def sum_with_two_branches() -> Case:
    """right"""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        @when(pl.program_id(0) == 0)
        def _() -> None:
            o_ref[...] = x_ref[...]

        @when(pl.program_id(0) > 0)
        def _() -> None:
            o_ref[...] += x_ref[...]

    return call(kernel, OUT, STACK, grid=(4,), in_specs=[ROWS], out_specs=ONE)


@case
def scratch_zeroed_at_the_wrong_step() -> Case:
    """D30"""

    def kernel(x_ref: Any, o_ref: Any, acc_ref: Any) -> None:
        @when(pl.program_id(0) == 1)
        def _() -> None:
            zero(acc_ref)

        acc_ref[...] += x_ref[...]
        o_ref[...] = acc_ref[...]

    return call(
        kernel,
        OUT,
        STACK,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=ONE,
        scratch_shapes=[pltpu.VMEM((8, 128), F32)],
    )


@case
def zeroed_only_for_the_first_output_block() -> Case:
    """D30: the second block of the output is never zeroed"""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        @when((pl.program_id(0) == 0) & (pl.program_id(1) == 0))
        def _() -> None:
            zero(o_ref)

        o_ref[...] += x_ref[...]

    spec = pl.BlockSpec((None, 8, 128), lambda i, k: (k, i, 0))
    x = Shape((4, 16, 128), F32)
    return call(kernel, Shape((16, 128), F32), x, grid=(2, 4), in_specs=[spec], out_specs=tile(0, None))


@case
def zeroed_by_a_loop() -> Case:
    """right"""

    def kernel(x_ref: Any, o_ref: Any, acc_ref: Any) -> None:
        @when(pl.program_id(0) == 0)
        def _() -> None:
            def body(i: Any, carry: Any) -> Any:
                acc_ref[pl.ds(i * 8, 8), :] = jnp.zeros((8, 128), F32)
                return carry

            lax.fori_loop(0, 2, body, 0)

        acc_ref[...] += x_ref[...]
        o_ref[...] = acc_ref[...]

    x = Shape((4, 16, 128), F32)
    spec = pl.BlockSpec((None, 16, 128), lambda i: (i, 0, 0))
    return call(
        kernel,
        Shape((16, 128), F32),
        x,
        grid=(4,),
        in_specs=[spec],
        out_specs=tile(None, None, block=(16, 128)),
        scratch_shapes=[pltpu.VMEM((16, 128), F32)],
    )


@case
def zeroed_under_data() -> Case:
    """right as far as can be told: the branch depends on data"""

    def kernel(s_ref: Any, x_ref: Any, o_ref: Any) -> None:
        @when(s_ref[pl.program_id(0)] == 0)
        def _() -> None:
            zero(o_ref)

        o_ref[...] += x_ref[...]

    def function(s: Any, x: Any) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4,),
            in_specs=[pl.BlockSpec((None, 8, 128), lambda i, s: (i, 0, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, s: (0, 0)),
        )
        return pl.pallas_call(kernel, grid_spec=spec, out_shape=OUT)(s, x)

    return function, [Shape((4,), I32), STACK]


@case
def zeroed_in_the_last_step_for_the_next() -> Case:
    """D30: the very first step finds nothing"""

    def kernel(x_ref: Any, o_ref: Any, acc_ref: Any) -> None:
        acc_ref[...] += x_ref[...]

        @when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _() -> None:
            o_ref[...] = acc_ref[...]
            zero(acc_ref)

    return call(
        kernel,
        OUT,
        STACK,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=ONE,
        scratch_shapes=[pltpu.VMEM((8, 128), F32)],
    )


@case
def filled_by_a_copy() -> Case:
    """right"""

    def kernel(x_ref: Any, o_ref: Any, buffer_ref: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(x_ref.at[pl.program_id(0)], buffer_ref, sem)
        copy.start()
        copy.wait()
        o_ref[...] = buffer_ref[...] + 1

    return call(
        kernel,
        STACK,
        STACK,
        grid=(4,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=ROWS,
        scratch_shapes=[pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA],
    )


@case
def in_place_sum() -> Case:
    """right: the output starts as the input that it is aliased with"""

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] += x_ref[...]

    return call(
        kernel, OUT, OUT, OUT, grid=(2,), in_specs=[ONE, ONE], out_specs=ONE, input_output_aliases={1: 0}
    )


@case
def revisited() -> Case:
    """D15"""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        @when(pl.program_id(0) == 0)
        def _() -> None:
            zero(o_ref)

        o_ref[...] += x_ref[...]

    spec = pl.BlockSpec((None, 8, 128), lambda k, i: (k, i, 0))
    return call(
        kernel,
        Shape((16, 128), F32),
        Shape((4, 16, 128), F32),
        grid=(4, 2),
        in_specs=[spec],
        out_specs=tile(1, None),
    )


# ---- parallel axes


def parallel_sum(semantics: tuple[str, str]) -> Case:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        @when(pl.program_id(1) == 0)
        def _() -> None:
            zero(o_ref)

        o_ref[...] += x_ref[...]

    spec = pl.BlockSpec((None, 8, 128), lambda i, k: (k, i, 0))
    return call(
        kernel,
        Shape((16, 128), F32),
        Shape((4, 16, 128), F32),
        grid=(2, 4),
        in_specs=[spec],
        out_specs=tile(0, None),
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
    )


@case
def sum_over_a_parallel_axis() -> Case:
    """D16"""
    return parallel_sum(("parallel", "parallel"))


@case
def sum_over_an_arbitrary_axis() -> Case:
    """right"""
    return parallel_sum(("parallel", "arbitrary"))


@case
def count_in_scratch_over_a_parallel_axis() -> Case:
    """D16: the scratch is set in the first step of all only"""

    def kernel(x_ref: Any, o_ref: Any, acc_ref: Any) -> None:
        @when(pl.program_id(0) == 0)
        def _() -> None:
            zero(acc_ref)

        acc_ref[...] += x_ref[...]
        o_ref[...] = acc_ref[...]

    return call(
        kernel,
        STACK,
        STACK,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=ROWS,
        scratch_shapes=[pltpu.VMEM((8, 128), F32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )


@case
def same_output_block_in_parallel_steps() -> Case:
    """right as far as can be told: each step stores the same"""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2

    return call(
        kernel,
        OUT,
        OUT,
        grid=(4,),
        in_specs=[ONE],
        out_specs=ONE,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )


# ---- tails


def tailed_product(mask_left: bool, mask_right: bool, k: int = 200) -> Case:
    def kernel(a_ref: Any, b_ref: Any, o_ref: Any) -> None:
        step = pl.program_id(0)

        @when(step == 0)
        def _() -> None:
            zero(o_ref)

        a, b = a_ref[...], b_ref[...]
        left = k - step * 128
        if mask_left:
            a = jnp.where(lax.broadcasted_iota(I32, a.shape, 1) < left, a, 0.0)
        if mask_right:
            b = jnp.where(lax.broadcasted_iota(I32, b.shape, 0) < left, b, 0.0)
        o_ref[...] += jnp.dot(a, b, preferred_element_type=F32)

    return call(
        kernel,
        OUT,
        Shape((8, k), F32),
        Shape((k, 128), F32),
        grid=(pl.cdiv(k, 128),),
        in_specs=[tile(None, 0), tile(0, None, block=(128, 128))],
        out_specs=ONE,
    )


@case
def product_over_a_tail() -> Case:
    """D31"""
    return tailed_product(False, False)


@case
def product_over_a_masked_tail() -> Case:
    """right"""
    return tailed_product(True, True)


@case
def product_with_one_side_masked() -> Case:
    """D31: zero times NaN is NaN"""
    return tailed_product(True, False)


@case
def product_over_a_late_tail() -> Case:
    """D31: the tail is the last of many steps"""
    return tailed_product(False, False, 128 * 400 + 64)


@case
def product_without_tail() -> Case:
    """right"""
    return tailed_product(False, False, 256)


@case
def rows_with_a_tail() -> Case:
    """right: what is computed for the padding is cut"""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        x = x_ref[...]
        o_ref[...] = x / jnp.sum(x, axis=1, keepdims=True)

    spec = tile(0, None)
    return call(
        kernel, Shape((20, 128), F32), Shape((20, 128), F32), grid=(3,), in_specs=[spec], out_specs=spec
    )


@case
def mean_over_a_tail() -> Case:
    """D31"""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        x = x_ref[...].astype(F32)
        o_ref[...] = jnp.broadcast_to(jnp.sum(x * x, axis=0, keepdims=True), (8, 128))

    return call(
        kernel,
        Shape((24, 128), F32),
        Shape((20, 128), BF16),
        grid=(3,),
        in_specs=[tile(0, None)],
        out_specs=tile(0, None),
    )


@case
def softmax_over_a_tail() -> Case:
    """D31: scores of keys past the end enter the sum of each row"""

    def kernel(q_ref: Any, k_ref: Any, o_ref: Any) -> None:
        s = lax.dot_general(q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=F32)
        p = jnp.exp(s)
        o_ref[...] = jnp.broadcast_to(jnp.sum(p, axis=1, keepdims=True), (8, 128))

    return call(
        kernel,
        Shape((8, 256), F32),
        Shape((8, 128), F32),
        Shape((200, 128), F32),
        grid=(2,),
        in_specs=[ONE, tile(0, None, block=(128, 128))],
        out_specs=tile(None, 0),
    )


# ---- stores, copies, semaphores, inputs


def guarded_store(last: Callable[[], Any], steps: int = 4) -> Case:
    def kernel(x_ref: Any, o_ref: Any, acc_ref: Any) -> None:
        @when(pl.program_id(0) == 0)
        def _() -> None:
            zero(acc_ref)

        acc_ref[...] += x_ref[...]

        @when(last())
        def _() -> None:
            o_ref[...] = acc_ref[...]

    return call(
        kernel,
        OUT,
        Shape((steps, 8, 128), F32),
        grid=(steps,),
        in_specs=[ROWS],
        out_specs=ONE,
        scratch_shapes=[pltpu.VMEM((8, 128), F32)],
    )


@case
def stored_one_step_late() -> Case:
    """D33"""
    return guarded_store(lambda: pl.program_id(0) == pl.num_programs(0))


@case
def stored_one_step_late_in_a_long_grid() -> Case:
    """D33"""
    return guarded_store(lambda: pl.program_id(0) == 1000, 1000)


@case
def stored_in_the_last_step() -> Case:
    """right"""
    return guarded_store(lambda: pl.program_id(0) == pl.num_programs(0) - 1, 1000)


def copied(wait: bool) -> Case:
    def kernel(x_ref: Any, o_ref: Any, buffer_ref: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(x_ref, buffer_ref, sem)
        copy.start()
        if wait:
            copy.wait()
        o_ref[...] = buffer_ref[...]

    return call(
        kernel,
        OUT,
        OUT,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA],
    )


@case
def copy_without_wait() -> Case:
    """D34"""
    return copied(False)


@case
def copy_with_wait() -> Case:
    """right"""
    return copied(True)


@case
def two_slots() -> Case:
    """right: the copy for the next step is waited for in that step"""

    def kernel(x_ref: Any, o_ref: Any, buffer_ref: Any, sems: Any) -> None:
        i, n = pl.program_id(0), pl.num_programs(0)

        def copy(step: Any) -> Any:
            slot = lax.rem(step, 2)
            return pltpu.make_async_copy(x_ref.at[step], buffer_ref.at[slot], sems.at[slot])

        @when(i == 0)
        def _() -> None:
            copy(i).start()

        @when(i + 1 < n)
        def _() -> None:
            copy(i + 1).start()

        copy(i).wait()
        o_ref[...] = buffer_ref[lax.rem(i, 2)]

    return call(
        kernel,
        STACK,
        STACK,
        grid=(4,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=ROWS,
        scratch_shapes=[pltpu.VMEM((2, 8, 128), F32), pltpu.SemaphoreType.DMA((2,))],
    )


def signalled(wait: bool) -> Case:
    def kernel(x_ref: Any, o_ref: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, 1)
        o_ref[...] = x_ref[...]
        if wait:
            pl.semaphore_wait(sem, 1)

    return call(kernel, OUT, OUT, scratch_shapes=[pltpu.SemaphoreType.REGULAR])


@case
def signal_without_wait() -> Case:
    """D36"""
    return signalled(False)


@case
def signal_with_wait() -> Case:
    """right"""
    return signalled(True)


def changes_its_input(**options: Any) -> Case:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        x_ref[...] = x_ref[...] + 1
        o_ref[...] = x_ref[...]

    return call(kernel, OUT, OUT, **options)


@case
def store_to_an_input() -> Case:
    """D37"""
    return changes_its_input()


@case
def store_to_an_aliased_input() -> Case:
    """right"""
    return changes_its_input(input_output_aliases={0: 0})


def overrun(rows: int) -> Case:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[pl.ds(pl.program_id(0) * 8, 8), :]

    return call(
        kernel,
        Shape((24, 128), F32),
        Shape((rows, 128), F32),
        grid=(3,),
        in_specs=[tile(None, None, block=(rows, 128))],
        out_specs=tile(0, None),
    )


@case
def slice_past_the_end() -> Case:
    """D32"""
    return overrun(20)


@case
def slice_up_to_the_end() -> Case:
    """right"""
    return overrun(24)


# ---- types


def narrow(dtype: Any, steps: int = 256) -> Case:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        @when(pl.program_id(0) == 0)
        def _() -> None:
            zero(o_ref)

        o_ref[...] += x_ref[...].astype(o_ref.dtype)

    return call(
        kernel,
        Shape((8, 128), dtype),
        Shape((steps, 8, 128), BF16),
        grid=(steps,),
        in_specs=[ROWS],
        out_specs=ONE,
    )


@case
def sum_in_bf16() -> Case:
    """D38"""
    return narrow(BF16)


@case
def sum_of_two_in_bf16() -> Case:
    """right: two addends"""
    return narrow(BF16, 2)


@case
def sum_in_f32() -> Case:
    """right"""
    return narrow(F32)


def rounded_addend(between: Callable[[Any], Any]) -> Case:
    def kernel(a_ref: Any, b_ref: Any, o_ref: Any) -> None:
        @when(pl.program_id(0) == 0)
        def _() -> None:
            zero(o_ref)

        o_ref[...] += between(jnp.dot(a_ref[...], b_ref[...], preferred_element_type=F32))

    return call(
        kernel,
        OUT,
        Shape((8, 512), BF16),
        Shape((512, 128), BF16),
        grid=(4,),
        in_specs=[tile(None, 0), tile(0, None, block=(128, 128))],
        out_specs=ONE,
    )


@case
def addend_rounded_to_bf16() -> Case:
    """D143"""
    return rounded_addend(lambda x: x.astype(BF16).astype(F32))


@case
def addend_in_f32() -> Case:
    """right"""
    return rounded_addend(lambda x: x)


def shorten(message: Any) -> None:
    """Leaves one frame per operation, with the file's name only, and no bytes of constants."""
    if isinstance(message, dict):
        message.pop("data", None)
        message.pop("sha256", None)
        message.pop("kernel_span", None)
        if "spans" in message:
            message["spans"] = message["spans"][:1]
            for span in message["spans"]:
                span["file"] = os.path.basename(span["file"])
        for value in message.values():
            shorten(value)
    elif isinstance(message, list):
        for value in message:
            shorten(value)


def main() -> int:
    for name, build in CASES.items():
        function, inputs = build()
        with chip_context.abstract_device("v6e"):
            closed = jax.jit(function).trace(*inputs).jaxpr
        message = json_format.MessageToDict(program.convert(closed), preserving_proto_field_name=True)
        shorten(message)
        expected = (build.__doc__ or "").split(":")[0].split()[0]
        print(json.dumps({"name": name, "expected": expected, "main": message["main"]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
