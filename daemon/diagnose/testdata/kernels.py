"""Small kernels with one fault each. What jax, the compiler and the interpreter say is kept in errors.json.

A function's name starts with the id of its diagnosis; its defaults are its inputs; the line where the fault
has to be shown ends with HERE. scripts/diagnostics_errors.py runs them.
"""

# ruff: noqa: B008, C408

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def bf16(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def i32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def of(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def add(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def fill(*refs):
    refs[-1][...] = jnp.zeros_like(refs[-1])


# Blocks, grids, index maps


def d01_in_list(x=f32(96, 384), y=f32(96, 384)):
    return pl.pallas_call(
        fill,
        grid=(8, 3),
        in_specs=[
            pl.BlockSpec((16, 128), lambda i, j: (i, j)),
            pl.BlockSpec((12, 128), lambda i, j: (i, j)),  # HERE
        ],
        out_specs=pl.BlockSpec((16, 128), lambda i, j: (i, j)),
        out_shape=f32(96, 384),
    )(x, y)


def d01_in_variable(x=f32(96, 384)):
    whole = pl.BlockSpec((96, 384), lambda i: (0, 0))
    narrow = pl.BlockSpec((96, 96), lambda i: (0, i))  # HERE
    specs = [whole]
    return pl.pallas_call(fill, grid=(4,), in_specs=specs, out_specs=narrow, out_shape=f32(96, 384))(x)


def d01_behind_prefetch(ids=i32(4), x=f32(96, 384)):
    def kernel(ids_ref, x_ref, o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)

    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((30, 384), lambda i, ids: (ids[i], 0))],  # HERE
        out_specs=pl.BlockSpec((96, 384), lambda i, ids: (0, 0)),
    )
    return pl.pallas_call(kernel, grid_spec=grid_spec, out_shape=f32(96, 384))(ids, x)


def d01_comprehension(x=f32(96, 384), y=f32(96, 384)):
    return pl.pallas_call(
        fill,
        grid=(8,),
        in_specs=[pl.BlockSpec((12, 384), lambda i: (i, 0)) for _ in range(2)],  # HERE
        out_specs=pl.BlockSpec((96, 384), lambda i: (0, 0)),
        out_shape=f32(96, 384),
    )(x, y)


def d01_repeated(x=f32(96, 384), y=f32(96, 384)):
    row = pl.BlockSpec((12, 384), lambda i: (i, 0))  # HERE
    return pl.pallas_call(add, grid=(8,), in_specs=[row] * 2, out_specs=row, out_shape=f32(96, 384))(x, y)


def call_with(kernel, shape, **options):
    return pl.pallas_call(kernel, out_shape=shape, **options)


def d01_through_helper(x=f32(96, 384)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    spec = pl.BlockSpec((20, 384), lambda i: (i, 0))  # HERE
    return call_with(kernel, f32(96, 384), grid=(5,), in_specs=[spec], out_specs=spec)(x)


def d02_row(x=f32(24, 256)):
    spec = pl.BlockSpec((1, 256), lambda i: (i, 0))  # HERE
    return pl.pallas_call(copy, grid=(24,), in_specs=[spec], out_specs=spec, out_shape=f32(24, 256))(x)


def d02_squeezed(x=f32(24, 256)):
    return pl.pallas_call(
        copy,
        grid=(24,),
        in_specs=[pl.BlockSpec((None, 256), lambda i: (i, 0))],  # HERE
        out_specs=pl.BlockSpec((None, 256), lambda i: (i, 0)),
        out_shape=f32(24, 256),
    )(x)


def d03_line(x=f32(3000)):
    spec = pl.BlockSpec((300,), lambda i: (i,))  # HERE
    return pl.pallas_call(copy, grid=(10,), in_specs=[spec], out_specs=spec, out_shape=f32(3000))(x)


def d05_short(x=f32(64, 256)):
    return pl.pallas_call(
        copy,
        grid=(4,),
        in_specs=[pl.BlockSpec((16, 256), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((16, 256), lambda i: i),  # HERE
        out_shape=f32(64, 256),
    )(x)


def d06_too_few(x=f32(64, 256)):
    return pl.pallas_call(
        copy,
        grid=(4, 2),
        in_specs=[pl.BlockSpec((16, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((16, 128), lambda i: (i, 0)),  # HERE
        out_shape=f32(64, 256),
    )(x)


def d06_named(x=f32(64, 256)):
    def rows(i, j, k):  # HERE
        return i, j

    spec = pl.BlockSpec((16, 128), rows)
    return pl.pallas_call(copy, grid=(4, 2), in_specs=[spec], out_specs=spec, out_shape=f32(64, 256))(x)


def d07_prefetch(ids=i32(4), x=f32(64, 128)):
    def kernel(ids_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((16, 128), lambda i: (i, 0))],  # HERE
        out_specs=pl.BlockSpec((16, 128), lambda i, ids: (i, 0)),
    )
    return pl.pallas_call(kernel, grid_spec=grid_spec, out_shape=f32(64, 128))(ids, x)


def d08_rank(x=f32(4, 64, 128)):
    return pl.pallas_call(
        copy,
        grid=(4,),
        in_specs=[pl.BlockSpec((64, 128), lambda i: (i, 0))],  # HERE
        out_specs=pl.BlockSpec((None, 64, 128), lambda i: (i, 0, 0)),
        out_shape=f32(4, 64, 128),
    )(x)


def d09_half(x=f32(64, 128)):
    return pl.pallas_call(
        copy,
        grid=(4,),
        in_specs=[pl.BlockSpec((16, 128), lambda i: (i * 2 / 2, 0))],  # HERE
        out_specs=pl.BlockSpec((16, 128), lambda i: (i, 0)),
        out_shape=f32(64, 128),
    )(x)


def d10_one_spec(x=f32(8, 128), y=f32(8, 128)):
    return pl.pallas_call(
        add,
        in_specs=[pl.BlockSpec((8, 128), lambda: (0, 0))],  # HERE
        out_shape=f32(8, 128),
    )(x, y)


def d11_too_many(x=f32(8, 128)):
    def kernel(x_ref, bias_ref, o_ref):  # HERE
        o_ref[...] = x_ref[...] + bias_ref[...]

    return pl.pallas_call(kernel, out_shape=f32(8, 128))(x)


def d11_too_few(x=f32(8, 128)):
    def kernel(o_ref):  # HERE
        o_ref[...] = jnp.zeros_like(o_ref)

    return pl.pallas_call(kernel, out_shape=f32(8, 128))(x)


def d12_axis(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        row = pl.program_id(2)  # HERE
        o_ref[...] = x_ref[...] + row

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=f32(16, 128))(x)


def d13_semantics(x=f32(64, 256)):
    spec = pl.BlockSpec((16, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        copy,
        grid=(4, 2),
        in_specs=[spec],
        out_specs=spec,
        out_shape=f32(64, 256),
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "arbitrary", "arbitrary"),  # HERE
        ),
    )(x)


def d19_alias(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].astype(jnp.int32)

    return pl.pallas_call(
        kernel,
        out_shape=i32(16, 128),
        input_output_aliases={0: 0},  # HERE
    )(x)


# Copies


def d40_copy(x=f32(16, 128)):
    def kernel(x_ref, o_ref, sem):
        copy = pltpu.make_async_copy(x_ref, o_ref, sem)
        copy.start()  # HERE
        copy.wait()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel,
        in_specs=[anywhere],
        out_specs=anywhere,
        out_shape=bf16(16, 128),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(x)


def d41_value(x=f32(16, 128)):
    def kernel(x_ref, o_ref, sem):
        pltpu.make_async_copy(x_ref[...], o_ref, sem).start()  # HERE

    return pl.pallas_call(kernel, out_shape=f32(16, 128), scratch_shapes=[pltpu.SemaphoreType.DMA])(x)


def d42_row(i=i32(1), x=bf16(64, 512)):
    def kernel(i_ref, x_ref, o_ref, sem):
        pltpu.async_copy(x_ref.at[pl.ds(i_ref[0], 2)], o_ref, sem).wait()  # HERE

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=bf16(2, 512),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(i, x)


def d43_narrow(x=f32(32, 256)):
    def kernel(x_ref, o_ref, buffer, sem):
        window = x_ref.at[pl.ds(8, 8), pl.ds(0, 32)]
        pltpu.async_copy(window, buffer, sem).wait()  # HERE
        o_ref[...] = buffer[...]

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=f32(8, 32),
        scratch_shapes=[pltpu.VMEM((8, 32), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)


# The kernel's body


def d50_return(x=f32(8, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        return o_ref[...]  # HERE

    return pl.pallas_call(kernel, out_shape=f32(8, 128))(x)


def d51_constant(x=f32(8, 128)):
    scale = jnp.linspace(0.0, 1.0, 128)

    def kernel(x_ref, o_ref):
        rows = x_ref[...]
        o_ref[...] = rows * scale  # HERE

    return pl.pallas_call(kernel, out_shape=f32(8, 128))(x)


def d52_if(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        total = jnp.sum(x_ref[...])
        if total > 0:  # HERE
            o_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, out_shape=f32(16, 128))(x)


def d53_type(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        value = x_ref[...] * 2
        o_ref[...] = value  # HERE

    return pl.pallas_call(kernel, out_shape=bf16(16, 128))(x)


def normalised(x):
    return x / jnp.max(x, axis=1)[:, None]


def d54_shape(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = normalised(x_ref[...])[:8]  # HERE

    return pl.pallas_call(kernel, out_shape=f32(16, 128))(x)


def d55_gradient(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        step = pl.program_id(0)  # HERE
        o_ref[...] = x_ref[...] * (step + 1).astype(jnp.float32)

    def loss(x):
        return pl.pallas_call(kernel, grid=(1,), out_shape=f32(16, 128))(x).sum()

    return jax.grad(loss)(x)


def d57_scan(x=f32(8, 128)):
    def kernel(x_ref, o_ref):
        def step(carry, row):
            carry = jnp.maximum(carry, row)
            return carry, carry

        _, rows = lax.scan(step, jnp.zeros((128,)), x_ref[...])  # HERE
        o_ref[...] = rows

    return pl.pallas_call(kernel, out_shape=f32(8, 128))(x)


def d58_print(x=f32(8, 128)):
    def kernel(x_ref, o_ref):
        pl.debug_print("first {}", x_ref[0, 0])  # HERE
        o_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, out_shape=f32(8, 128))(x)


# Memory spaces, indexing


def d70_element(x=f32(8, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        o_ref[0, 3] = jnp.sum(x_ref[...])  # HERE

    return pl.pallas_call(kernel, out_shape=f32(8, 128))(x)


def d71_smem(x=f32(8, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]  # HERE

    return pl.pallas_call(kernel, in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)], out_shape=f32(8, 128))(x)


def d72_hbm(x=f32(64, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[8:16]  # HERE

    return pl.pallas_call(kernel, in_specs=[pl.BlockSpec(memory_space=pl.ANY)], out_shape=f32(8, 128))(x)


def d75_rows(x=f32(64, 128), ids=i32(8)):
    def kernel(x_ref, ids_ref, o_ref):
        picked = x_ref[ids_ref[...], :]  # HERE
        o_ref[...] = picked

    return pl.pallas_call(kernel, out_shape=f32(8, 128))(x, ids)


def d76_wide(x=f32(8, 384), ids=i32(8, 128)):
    def kernel(x_ref, ids_ref, o_ref):
        o_ref[...] = jnp.take_along_axis(x_ref[...], ids_ref[...], axis=1)  # HERE

    return pl.pallas_call(kernel, out_shape=f32(8, 128))(x, ids)


def row_of(values, i):
    return lax.dynamic_index_in_dim(values, i, 0)  # HERE: d77_helper


def d77_helper(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        values = x_ref[...]

        def body(i, total):
            return total + row_of(values, i)

        o_ref[...] = lax.fori_loop(0, 16, body, jnp.zeros((1, 128)))

    return pl.pallas_call(kernel, out_shape=f32(1, 128))(x)


def d78_rows(start=i32(1), x=f32(128, 256)):
    def kernel(start_ref, x_ref, o_ref):
        first = start_ref[0] + 1
        o_ref[...] = jnp.exp(x_ref[pl.ds(first, 16), :])  # HERE

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_shape=f32(16, 256),
    )(start, x)


def d78_lanes(x=bf16(16, 1024)):
    def kernel(x_ref, o_ref):
        def body(i, carry):
            o_ref[:, pl.ds(i * 64, 64)] = x_ref[:, pl.ds(i * 64, 64)]  # HERE
            return carry

        lax.fori_loop(0, 16, body, 0)

    return pl.pallas_call(kernel, out_shape=bf16(16, 1024))(x)


def d80_even(x=f32(16, 256)):
    def kernel(x_ref, o_ref):
        values = x_ref[...]
        o_ref[...] = values[:, 1::2]  # HERE

    return pl.pallas_call(kernel, out_shape=f32(16, 128))(x)


def d81_even(x=f32(16, 512)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[:, pl.ds(0, 128, 4)]  # HERE

    return pl.pallas_call(kernel, out_shape=f32(16, 128))(x)


def d82_table(table=i32(3, 150000), x=i32(8, 128)):
    def kernel(table_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] + table_ref[0, 1]

    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, t: (0, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (0, 0)),
        ),
        out_shape=i32(8, 128),
    )(table, x)  # HERE


# VMEM


def d90_blocks(x=f32(8192, 4096), y=f32(1, 4096)):
    return pl.pallas_call(
        add,
        grid=(8,),
        in_specs=[
            pl.BlockSpec((1024, 4096), lambda i: (i, 0)),  # HERE
            pl.BlockSpec((1, 4096), lambda i: (0, 0)),
        ],
        out_specs=pl.BlockSpec((1024, 4096), lambda i: (i, 0)),
        out_shape=f32(8192, 4096),
    )(x, y)


def d92_scratch(x=f32(8, 128)):
    def kernel(x_ref, o_ref, sem, buffer):
        buffer[...] = jnp.zeros_like(buffer)
        o_ref[...] = x_ref[...] + buffer[:8, :128]

    return pl.pallas_call(
        kernel,
        out_shape=f32(8, 128),
        scratch_shapes=[
            pltpu.SemaphoreType.DMA,
            pltpu.VMEM((16384, 4096), jnp.float32),  # HERE
        ],
    )(x)


def d94_three(x=f32(64, 128)):
    return pl.pallas_call(
        copy,
        grid=(4,),
        in_specs=[
            pl.BlockSpec((16, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(3)),  # HERE
        ],
        out_specs=pl.BlockSpec((16, 128), lambda i: (i, 0)),
        out_shape=f32(64, 128),
    )(x)


# Operations


def elementwise(function, *inputs):
    def kernel(*refs):
        *sources, o_ref = refs
        o_ref[...] = function(*(r[...] for r in sources))  # HERE: d121_half d122_complex

    return pl.pallas_call(kernel, out_shape=inputs[0])(*inputs)


def d100_cumsum(x=f32(16, 128)):
    return elementwise(
        lambda v: jnp.cumsum(v, axis=0) + 1,  # HERE
        x,
    )


def d100_cumprod(x=f32(16, 128)):
    return elementwise(lambda v: lax.cumprod(v, axis=1), x)  # HERE


def d101_sort(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        biggest_last = jnp.sort(x_ref[...], axis=1)  # HERE
        o_ref[...] = biggest_last

    return pl.pallas_call(kernel, out_shape=f32(16, 128))(x)


def d102_set(x=f32(16, 128)):
    return elementwise(lambda v: v.at[3].set(0.0), x)  # HERE


def d103_flip(x=f32(16, 128)):
    return elementwise(lambda v: jnp.flip(v, 0), x)  # HERE


def d104_gelu(x=f32(16, 128)):
    return elementwise(lambda v: jax.nn.gelu(v, approximate=False), x)  # HERE


def d105_elu(x=f32(16, 128)):
    return elementwise(lambda v: jax.nn.elu(v), x)  # HERE


def d106_atan(x=f32(16, 128)):
    return elementwise(lambda v: jnp.arctan(v), x)  # HERE


def d108_prod(x=f32(16, 128)):
    return elementwise(lambda v: v * jnp.prod(v, axis=1, keepdims=True), x)  # HERE


def d110_checkpoint(x=f32(16, 128)):
    return elementwise(lambda v: jax.checkpoint(jnp.tanh)(v), x)  # HERE


def d113_bits(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = lax.bitcast_convert_type(x_ref[...], jnp.int16)  # HERE

    return pl.pallas_call(kernel, out_shape=of(jnp.int16, 16, 128, 2))(x)


def d114_unpack(x=of(jnp.int16, 32, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = pltpu.unpack_elementwise(  # HERE
            x_ref[...], index=0, packed_dtype=jnp.int8, unpacked_dtype=jnp.int32
        )

    return pl.pallas_call(kernel, out_shape=i32(32, 128))(x)


# Types


def d121_half(x=of(jnp.float16, 32, 128)):
    return elementwise(lambda v: v * 2, x)


def d122_complex(x=of(jnp.complex64, 16, 128)):
    return elementwise(lambda v: v * 2, x)


def d123_highest(x=bf16(128, 128), y=bf16(128, 128)):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.dot(  # HERE
            x_ref[...], y_ref[...], precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32
        )

    return pl.pallas_call(kernel, out_shape=f32(128, 128))(x, y)


def d124_narrow(x=bf16(64, 128), y=bf16(128, 256)):
    def kernel(x_ref, y_ref, o_ref):
        product = x_ref[...] @ y_ref[...]  # HERE
        o_ref[...] = product

    return pl.pallas_call(kernel, out_shape=bf16(64, 256))(x, y)


def d125_high(x=f32(64, 128), y=f32(128, 256)):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.dot(x_ref[...], y_ref[...], precision="high")  # HERE

    return pl.pallas_call(kernel, out_shape=f32(64, 256))(x, y)


def d126_batches(x=f32(3, 2, 8, 128), y=f32(3, 2, 128, 128)):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.matmul(x_ref[...], y_ref[...])  # HERE

    return pl.pallas_call(kernel, out_shape=f32(3, 2, 8, 128))(x, y)


def d127_integers(x=i32(64, 128), y=i32(128, 128)):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.int32)  # HERE

    return pl.pallas_call(kernel, out_shape=i32(64, 128))(x, y)


def d132_bytes(x=of(jnp.uint8, 64, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 3  # HERE

    return pl.pallas_call(kernel, out_shape=of(jnp.uint8, 64, 128))(x)


def d134_log2(x=bf16(16, 128)):
    return elementwise(lambda v: jnp.log2(v), x)  # HERE


def d134_atan2(x=bf16(16, 128)):
    return elementwise(lambda v: jnp.arctan2(v, v + 1), x)  # HERE


def d135_argmax(x=i32(16, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.argmin(x_ref[...], axis=1, keepdims=True)  # HERE

    return pl.pallas_call(kernel, out_shape=i32(16, 1))(x)


def d136_sum(x=of(jnp.int8, 64, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.max(x_ref[...], axis=1, keepdims=True)  # HERE

    return pl.pallas_call(kernel, out_shape=of(jnp.int8, 64, 1))(x)


def d137_scalar(x=bf16(16, 128)):
    def kernel(x_ref, o_ref):
        largest = jnp.max(x_ref[...])  # HERE
        o_ref[...] = x_ref[...] - largest

    return pl.pallas_call(kernel, out_shape=bf16(16, 128))(x)


def d138_mask(x=f32(64, 32)):
    def kernel(x_ref, o_ref):
        keep = jnp.arange(64) > 7
        o_ref[...] = jnp.where(keep[:, None], x_ref[...], 0.0)  # HERE

    return pl.pallas_call(kernel, out_shape=f32(64, 32))(x)


def d139_carry(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        def body(i, seen):
            return seen | (x_ref[...] > i)

        seen = lax.fori_loop(0, 5, body, x_ref[...] < 0)  # HERE
        o_ref[...] = seen.astype(jnp.float32)

    return pl.pallas_call(kernel, out_shape=f32(16, 128))(x)


def d140_flatten(x=f32(5, 60)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].ravel()  # HERE

    return pl.pallas_call(kernel, out_shape=f32(300))(x)


# Names that changed, and other styles of a call


def d150_params(x=f32(16, 128)):
    return pl.pallas_call(
        copy,
        out_shape=f32(16, 128),
        compiler_params=pltpu.TPUCompilerParams(),  # HERE
    )(x)


def d151_load(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = pl.load(x_ref, (pl.ds(0, 16),))  # HERE

    return pl.pallas_call(kernel, out_shape=f32(16, 128))(x)


def d153_any(x=f32(16, 128)):
    spec = pl.BlockSpec(memory_space=pltpu.ANY)  # HERE
    return pl.pallas_call(copy, in_specs=[spec], out_shape=f32(16, 128))(x)


def d154_order(x=f32(16, 128)):
    spec = pl.BlockSpec(lambda i: (i, 0), (8, 128))
    return pl.pallas_call(copy, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=f32(16, 128))(x)  # HERE


def d155_mode(x=f32(16, 128)):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0), indexing_mode="unblocked")  # HERE
    return pl.pallas_call(copy, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=f32(16, 128))(x)


def d156_dictionary(x=f32(16, 128)):
    return pl.pallas_call(
        copy,
        out_shape=f32(16, 128),
        compiler_params=dict(mosaic=dict(dimension_semantics=("parallel",))),  # HERE
    )(x)


def d158_repeat(x=f32(16, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = pltpu.repeat(x_ref[...], 2, 0)  # HERE

    return pl.pallas_call(kernel, out_shape=f32(32, 128))(x)


def d161_backend(x=f32(16, 128)):
    return pl.pallas_call(copy, out_shape=f32(16, 128), backend="mosaic_tpu")(x)  # HERE


@functools.partial(
    pl.pallas_call,
    grid=(4,),
    in_specs=[pl.BlockSpec((12, 128), lambda i: (i, 0))],  # HERE: d01_decorated
    out_specs=pl.BlockSpec((16, 128), lambda i: (i, 0)),
    out_shape=f32(64, 128),
)
def doubled(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)


def d01_decorated(x=f32(64, 128)):
    return doubled(x)


def scaled(x_ref, o_ref, *, factor):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=0) * factor  # HERE: d100_partial


def d100_partial(x=f32(64, 128)):
    return pl.pallas_call(functools.partial(scaled, factor=2), out_shape=f32(64, 128))(x)


def d000_unknown(x=f32(8, 128)):
    def kernel(x_ref, o_ref):
        o_ref[...] = lax.population_count(x_ref[...])  # HERE

    return pl.pallas_call(kernel, out_shape=f32(8, 128))(x)


# Interpreter


def d14_offsets(x=f32(64, 128)):
    spec = pl.BlockSpec((16, 128), lambda i: (i, 0))
    return pl.pallas_call(
        copy,
        grid=(4,),
        in_specs=[pl.BlockSpec((16, 128), lambda i: (i * 16, 0))],  # HERE
        out_specs=spec,
        out_shape=f32(64, 128),
        interpret=pltpu.InterpretParams(),
    )(x)


def d15_revisit(x=f32(32, 256)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((16, 128), lambda k, i: (i, k))],
        out_specs=pl.BlockSpec((16, 128), lambda k, i: (i, 0)),  # HERE
        out_shape=f32(32, 128),
        interpret=pltpu.InterpretParams(),
    )(x)


def d32_overrun(x=f32(8, 200)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[:, pl.ds(pl.program_id(0) * 128 + 100, 128)]

    return pl.pallas_call(
        kernel, grid=(1,), out_shape=f32(8, 128), interpret=pltpu.InterpretParams()
    )(x)
