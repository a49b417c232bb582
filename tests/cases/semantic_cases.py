"""Small TPU kernels that compile on every chip; those without `ok_` compute something wrong.

A comment `# <- Dnn` ends the line that a diagnosis has to mark. expected.json names the id.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32_ROWS = jax.ShapeDtypeStruct((8, 128), jnp.float32)


# kernelwright: x=f32[48,128]
def sum_never_zeroed(x):
    def kernel(x_ref, o_ref):
        o_ref[...] += x_ref[...]  # <- D30

    return pl.pallas_call(
        kernel,
        grid=(6,),
        in_specs=[pl.BlockSpec((8, 128), lambda s: (s, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda s: (0, 0)),
        out_shape=F32_ROWS,
    )(x)


# kernelwright: x=f32[32,256] y=f32[256,128]
def scratch_never_zeroed(x, y):
    def kernel(x_ref, y_ref, o_ref, acc_ref):
        acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)  # <- D30

        @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
        def _():
            o_ref[...] = acc_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(2, 2),
        in_specs=[
            pl.BlockSpec((16, 128), lambda i, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, k: (k, 0)),
        ],
        out_specs=pl.BlockSpec((16, 128), lambda i, k: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32)],
    )(x, y)


# kernelwright: x=f32[300,128]
def tail_summed(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)  # <- D31

    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(300, 64),),
        in_specs=[pl.BlockSpec((64, 128), lambda s: (s, 0))],
        out_specs=pl.BlockSpec((1, 128), lambda s: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((1, 128), jnp.float32),
    )(x)


# kernelwright: x=f32[3,32,128]
def reduction_outside(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(3, 4),
        in_specs=[pl.BlockSpec((None, 8, 128), lambda b, i: (b, i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda b, i: (i, 0)),  # <- D15
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )(x)


# kernelwright: x=f32[64,128]
def reduction_in_parallel(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(8,),
        in_specs=[pl.BlockSpec((8, 128), lambda s: (s, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda s: (0, 0)),
        out_shape=F32_ROWS,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),  # <- D16
    )(x)


# kernelwright: x=f32[64,256]
def half_the_grid(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.abs(x_ref[...])

    rows = pl.BlockSpec((16, 256), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(2,),  # <- D17
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((64, 256), jnp.float32),
    )(x)


# kernelwright: x=f32[64,128]
def offsets_for_blocks(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    return pl.pallas_call(
        kernel,
        grid=(8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i * 8, 0))],  # <- D14
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
    )(x)


# kernelwright: x=f32[28,128]
def slice_past_end(x):
    def kernel(x_ref, o_ref):
        start = pl.multiple_of(pl.program_id(0) * 8, 8)
        o_ref[...] = x_ref[pl.ds(start, 8), :] + 1  # <- D32

    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((28, 128), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((28, 128), jnp.float32),
    )(x)


# kernelwright: x=f32[40,128]
def last_step_missed(x):
    def kernel(x_ref, o_ref, acc_ref):
        step = pl.program_id(0)

        @pl.when(step == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += x_ref[...]

        @pl.when(step == pl.num_programs(0))  # <- D33
        def _():
            o_ref[...] = acc_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(5,),
        in_specs=[pl.BlockSpec((8, 128), lambda s: (s, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda s: (0, 0)),
        out_shape=F32_ROWS,
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x)


# kernelwright: x=f32[32,128]
def copy_not_awaited(x):
    def kernel(x_hbm, o_ref, buffer, sem):
        copy = pltpu.make_async_copy(x_hbm.at[pl.ds(8, 8)], buffer, sem)
        copy.start()  # <- D34
        o_ref[...] = buffer[...] * 2

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=F32_ROWS,
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)


# kernelwright: x=f32[8,128]
def signal_left(x):
    def kernel(x_ref, o_ref, sem):
        pltpu.semaphore_signal(sem, 2)  # <- D36
        o_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, out_shape=F32_ROWS, scratch_shapes=[pltpu.SemaphoreType.REGULAR])(x)


# kernelwright: x=f32[8,128]
def input_scaled_in_place(x):
    def kernel(x_ref, o_ref):
        x_ref[...] = x_ref[...] * 0.5  # <- D37
        o_ref[...] = x_ref[...] + 1

    return pl.pallas_call(kernel, out_shape=F32_ROWS)(x)


# kernelwright: x=bf16[4096,128]
def sum_kept_narrow(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]  # <- D38

    return pl.pallas_call(
        kernel,
        grid=(256,),
        in_specs=[pl.BlockSpec((16, 128), lambda s: (s, 0))],
        out_specs=pl.BlockSpec((16, 128), lambda s: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.bfloat16),
    )(x)


# ---- right ----


# kernelwright: x=f32[48,128]
def ok_sum_zeroed(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(6,),
        in_specs=[pl.BlockSpec((8, 128), lambda s: (s, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda s: (0, 0)),
        out_shape=F32_ROWS,
    )(x)


# kernelwright: x=f32[300,128]
def ok_tail_masked(x):
    def kernel(x_ref, o_ref):
        step = pl.program_id(0)

        @pl.when(step == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        row = lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
        o_ref[...] += jnp.sum(jnp.where(row < 300 - step * 64, x_ref[...], 0.0), axis=0, keepdims=True)

    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(300, 64),),
        in_specs=[pl.BlockSpec((64, 128), lambda s: (s, 0))],
        out_specs=pl.BlockSpec((1, 128), lambda s: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((1, 128), jnp.float32),
    )(x)


# kernelwright: x=f32[44,128]
def ok_tail_dropped(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.tanh(x_ref[...])

    rows = pl.BlockSpec((16, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(3,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((44, 128), jnp.float32),
    )(x)


# kernelwright: x=f32[32,128]
def ok_two_buffers(x):
    def kernel(x_hbm, o_ref, buffer, sems):
        def copy(step):
            start = pl.multiple_of(step * 8, 8)
            return pltpu.make_async_copy(x_hbm.at[pl.ds(start, 8)], buffer.at[step % 2], sems.at[step % 2])

        copy(0).start()
        total = jnp.zeros((8, 128), jnp.float32)
        for step in range(4):
            if step < 3:
                copy(step + 1).start()
            copy(step).wait()
            total = total + buffer[step % 2]
        o_ref[...] = total

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=F32_ROWS,
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
    )(x)


# kernelwright: x=f32[16,128]
def ok_step_in_branch(x):
    def kernel(x_ref, o_ref):
        scale = lax.cond(pl.program_id(0) == 0, lambda: 2.0, lambda: 3.0)
        o_ref[...] = x_ref[...] * scale

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(2,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
    )(x)


# kernelwright: x=bf16[64,128]
def ok_sum_in_f32(x):
    def kernel(x_ref, o_ref, acc_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += x_ref[...].astype(jnp.float32)

        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _():
            o_ref[...] = acc_ref[...].astype(o_ref.dtype)

    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((16, 128), lambda s: (s, 0))],
        out_specs=pl.BlockSpec((16, 128), lambda s: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.bfloat16),
        scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )(x)
