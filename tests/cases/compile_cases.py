"""Small TPU kernels with one property each, to measure what `kernelwright check` says about them.

Names that start with `ok_` are right and must stay without an error. In the others a comment `# <- Dnn`
ends the line that a diagnosis has to mark; expected.json holds the same id and, where it is not every chip,
the chips it is true of. `kernelwright check compile_cases.py::running_sum` looks at one of them, score.py
at all.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def shape_of(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def negate_kernel(x_ref, o_ref):
    o_ref[...] = -x_ref[...]


# ---- blocks, grids, index maps ----


# kernelwright: x=f32[96,640]
def block_off_tile(x):
    tile = pl.BlockSpec((12, 160), lambda r, c: (r, c))  # <- D01
    return pl.pallas_call(negate_kernel, grid=(8, 4), in_specs=[tile], out_specs=tile, out_shape=shape_of(x))(
        x
    )


# kernelwright: x=f32[40,384]
def block_rows_off_tile(x, rows=20):
    return pl.pallas_call(
        negate_kernel,
        grid=(x.shape[0] // rows,),
        in_specs=[pl.BlockSpec((rows, 384), lambda r: (r, 0))],  # <- D01
        out_specs=pl.BlockSpec((rows, 384), lambda r: (r, 0)),
        out_shape=shape_of(x),
    )(x)


# kernelwright: x=f32[24,256]
def block_single_row(x):
    row = pl.BlockSpec((1, 256), lambda r: (r, 0))  # <- D02
    return pl.pallas_call(negate_kernel, grid=(24,), in_specs=[row], out_specs=row, out_shape=shape_of(x))(x)


# kernelwright: x=f32[3000]
def block_odd_line(x):
    part = pl.BlockSpec((300,), lambda i: (i,))  # <- D03
    return pl.pallas_call(negate_kernel, grid=(10,), in_specs=[part], out_specs=part, out_shape=shape_of(x))(
        x
    )


# kernelwright: x=f32[64,512]
def map_gives_one_id(x):
    return pl.pallas_call(
        negate_kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((16, 512), lambda r: (r, 0))],
        out_specs=pl.BlockSpec((16, 512), lambda r: r),  # <- D05
        out_shape=shape_of(x),
    )(x)


# kernelwright: x=f32[64,512]
def map_takes_one_id(x):
    return pl.pallas_call(
        negate_kernel,
        grid=(4, 1),
        in_specs=[pl.BlockSpec((16, 512), lambda r: (r, 0))],  # <- D06
        out_specs=pl.BlockSpec((16, 512), lambda r, c: (r, c)),
        out_shape=shape_of(x),
    )(x)


# kernelwright: order=i32[4]{0..3} x=f32[32,128]
def map_without_table(order, x):
    def kernel(order_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, order_ref: (order_ref[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),  # <- D07
    )
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=shape_of(x))(order, x)


# kernelwright: x=f32[6,16,128]
def block_lacks_axis(x):
    return pl.pallas_call(
        negate_kernel,
        grid=(6,),
        in_specs=[pl.BlockSpec((16, 128), lambda b: (b, 0))],  # <- D08
        out_specs=pl.BlockSpec((None, 16, 128), lambda b: (b, 0, 0)),
        out_shape=shape_of(x),
    )(x)


# kernelwright: x=f32[32,256]
def map_true_division(x):
    return pl.pallas_call(
        negate_kernel,
        grid=(8,),
        in_specs=[pl.BlockSpec((8, 256), lambda s: (s / 2, 0))],  # <- D09
        out_specs=pl.BlockSpec((8, 256), lambda s: (s // 2, 0)),
        out_shape=shape_of(x),
    )(x)


# kernelwright: x=f32[16,128] y=f32[16,128]
def specs_one_short(x, y):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] - y_ref[...]

    whole = pl.BlockSpec((16, 128), lambda: (0, 0))
    return pl.pallas_call(kernel, in_specs=[whole], out_specs=whole, out_shape=shape_of(x))(x, y)  # <- D10


# kernelwright: x=f32[16,128]
def kernel_too_many_refs(x):
    def kernel(x_ref, scale_ref, o_ref):  # <- D11
        o_ref[...] = x_ref[...] * scale_ref[...]

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[32,128]
def axis_beyond_grid(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * pl.num_programs(0) + pl.program_id(2)  # <- D12

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(4,), in_specs=[rows], out_specs=rows, out_shape=shape_of(x))(x)


# kernelwright: x=f32[32,512]
def semantics_too_short(x):
    tile = pl.BlockSpec((8, 256), lambda i, j: (i, j))
    return pl.pallas_call(
        negate_kernel,
        grid=(4, 2),
        in_specs=[tile],
        out_specs=tile,
        out_shape=shape_of(x),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),  # <- D13
    )(x)


# kernelwright: x=f32[16,128]
def alias_of_other_type(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].astype(jnp.int32)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.int32),
        input_output_aliases={0: 0},  # <- D19
    )(x)


# ---- Python and tracing ----


# kernelwright: x=f32[16,256]
def result_returned(x):
    def kernel(x_ref, o_ref):
        scaled = x_ref[...] * 0.5
        return scaled  # <- D50

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,256]
def table_captured(x):
    ramp = jnp.linspace(0.0, 1.0, 256)

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * ramp  # <- D51

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[32,128]
def branch_in_python(x):
    def kernel(x_ref, o_ref):
        step = pl.program_id(0)
        if step == 2:  # <- D52
            o_ref[...] = x_ref[...] * 2
        else:
            o_ref[...] = x_ref[...]

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(4,), in_specs=[rows], out_specs=rows, out_shape=shape_of(x))(x)


# kernelwright: x=bf16[32,128]
def wide_value_stored(x):
    def kernel(x_ref, o_ref):
        v = x_ref[...].astype(jnp.float32)
        o_ref[...] = v * lax.rsqrt(jnp.mean(v * v, axis=-1, keepdims=True))  # <- D53

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,256]
def reduced_axis_lost(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.max(x_ref[...], axis=-1)  # <- D54

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 1), x.dtype))(x)


# kernelwright: x=f32[16,128]
def scan_over_rows(x):
    def kernel(x_ref, o_ref):
        def decay(state, row):
            state = 0.9 * state + row
            return state, state

        _, states = lax.scan(decay, jnp.zeros((128,), jnp.float32), x_ref[...])  # <- D57
        o_ref[...] = states

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[8,128]
def print_float_in_braces(x):
    def kernel(x_ref, o_ref):
        pl.debug_print("corner: {}", x_ref[0, 0])  # <- D58
        o_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# ---- memory spaces, indexing ----


# kernelwright: x=f32[16,128]
def scalar_into_vmem(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        o_ref[0, 0] = jnp.sum(x_ref[...])  # <- D70

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: w=f32[4,128] x=f32[4,128]
def vector_out_of_smem(w, x):
    def kernel(w_ref, x_ref, o_ref):
        o_ref[...] = w_ref[...] + x_ref[...]  # <- D71

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_shape=shape_of(x),
    )(w, x)


# kernelwright: x=f32[128,128]
def hbm_read_directly(x):
    def kernel(x_hbm, o_ref):
        o_ref[...] = x_hbm[16:32, :]  # <- D72

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype),
    )(x)


# kernelwright: x=f32[128,128] rows=i32[16]{0..127}
def rows_by_vector(x, rows):
    def kernel(x_ref, rows_ref, o_ref):
        o_ref[...] = x_ref[rows_ref[...]]  # <- D75

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype))(x, rows)


# kernelwright: x=f32[16,128]
def value_by_counter(x):
    def kernel(x_ref, o_ref):
        rows = x_ref[...]

        def add(i, total):
            return total + rows[i]  # <- D77

        o_ref[...] = lax.fori_loop(0, 16, add, jnp.zeros((128,), jnp.float32))

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128,), x.dtype))(x)


# kernelwright: start=i32[1]{0..100} x=f32[16,2048]
def window_at_any_lane(start, x):
    def kernel(start_ref, x_ref, o_ref):
        o_ref[...] = x_ref[:, pl.ds(start_ref[0], 256)]  # <- D78

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_shape=jax.ShapeDtypeStruct((16, 256), x.dtype),
    )(start, x)


# kernelwright: x=f32[16,512]
def even_lanes(x):
    def kernel(x_ref, o_ref):
        v = x_ref[...]
        o_ref[...] = v[:, ::2]  # <- D80

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 256), x.dtype))(x)


# kernelwright: table=i32[300000] x=i32[8,128]
def table_beyond_smem(table, x):
    def kernel(table_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] * table_ref[1]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(1,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, t: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (0, 0)),
    )
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=shape_of(x))(table, x)  # <- D82


# ---- VMEM ----


# kernelwright: x=f32[16384,1024] y=f32[16384,1024]
def blocks_beyond_limit(x, y):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] * y_ref[...]

    rows = pl.BlockSpec((2048, 1024), lambda i: (i, 0))  # <- D90
    return pl.pallas_call(kernel, grid=(8,), in_specs=[rows, rows], out_specs=rows, out_shape=shape_of(x))(
        x, y
    )


# kernelwright: x=f32[8,128]
def scratch_beyond_chip(x):
    def kernel(x_ref, o_ref, big_ref):
        big_ref[...] = jnp.ones_like(big_ref)
        o_ref[...] = x_ref[...] + big_ref[:8, :128]

    return pl.pallas_call(
        kernel,
        out_shape=shape_of(x),
        scratch_shapes=[pltpu.VMEM((16384, 4096), jnp.float32)],  # <- D92
    )(x)


# kernelwright: x=f32[64,128]
def limit_beyond_chip(x):
    return pl.pallas_call(
        negate_kernel,
        out_shape=shape_of(x),
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=512 * 1024 * 1024),  # <- D93
    )(x)


# ---- operations ----


# kernelwright: x=f32[16,256]
def running_sum(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.cumsum(x_ref[...], axis=1)  # <- D100

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,128]
def running_product(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = lax.cumprod(x_ref[...] * 0.1 + 1.0, axis=0)  # <- D100

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,128]
def rows_sorted(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.sort(x_ref[...], axis=1)  # <- D101

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,128]
def row_replaced(x):
    def kernel(x_ref, o_ref):
        v = x_ref[...]
        o_ref[...] = v.at[3].set(1.0)  # <- D102

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,128]
def lanes_flipped(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.flip(x_ref[...], axis=1)  # <- D103

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,256]
def gelu_exact(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jax.nn.gelu(x_ref[...], approximate=False)  # <- D104

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,256]
def elu_of_rows(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jax.nn.elu(x_ref[...])  # <- D105

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,256]
def arc_sine(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.arcsin(x_ref[...] * 0.1)  # <- D106

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,128]
def row_products(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.prod(x_ref[...], axis=1, keepdims=True)  # <- D108

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 1), x.dtype))(x)


# kernelwright: x=f32[16,128]
def checkpointed(x):
    def kernel(x_ref, o_ref):
        def body(v):
            return jnp.tanh(v) * v

        o_ref[...] = jax.checkpoint(body)(x_ref[...])  # <- D110

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,128]
def float_positions(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * lax.broadcasted_iota(jnp.float32, (16, 128), 1)  # <- D112

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# ---- types ----


# kernelwright: x=f16[32,256]
def half_precision(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2  # <- D121

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=bf16[128,256] y=bf16[256,128]
def product_at_highest(x, y):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = lax.dot_general(  # <- D123
            x_ref[...],
            y_ref[...],
            (((1,), (0,)), ((), ())),
            precision=lax.Precision.HIGHEST,
            preferred_element_type=jnp.float32,
        )

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32))(x, y)


# kernelwright: x=bf16[64,256] y=bf16[256,128]
def product_kept_narrow(x, y):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] @ y_ref[...]  # <- D124

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((64, 128), jnp.bfloat16))(x, y)


# kernelwright: x=f32[128,128] y=f32[128,128]
def product_at_high(x, y):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.dot(x_ref[...], y_ref[...], precision=lax.Precision.HIGH)  # <- D125

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x, y)


# kernelwright: x=i32[128,128] y=i32[128,128]
def product_of_int32(x, y):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.matmul(x_ref[...], y_ref[...], preferred_element_type=jnp.int32)  # <- D127

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x, y)


# kernelwright: x=u8[32,256] y=u8[32,256]
def bytes_multiplied(x, y):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] * y_ref[...]  # <- D132

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x, y)


# kernelwright: x=bf16[16,256]
def narrow_log2(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.log2(jnp.abs(x_ref[...]) + 1)  # <- D134

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=bf16[32,128]
def narrow_argmax(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.argmax(x_ref[...], axis=-1, keepdims=True).astype(jnp.int32)  # <- D135

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((32, 1), jnp.int32))(x)


# kernelwright: x=i32[16,256]{-100000000..100000000}
def integer_argmax(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.argmax(x_ref[...], axis=1, keepdims=True)  # <- D135

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 1), jnp.int32))(x)


# kernelwright: x=i8[64,256]
def byte_maximum(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.max(x_ref[...], axis=1, keepdims=True)  # <- D136

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((64, 1), jnp.int8))(x)


# kernelwright: x=f32[16,64]
def mask_gets_axis(x):
    def kernel(x_ref, o_ref):
        keep = jnp.arange(16) < 10
        o_ref[...] = jnp.where(keep[:, None], x_ref[...], 0.0)  # <- D138

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[8,128]
def mask_carried(x):
    def kernel(x_ref, o_ref):
        def toggle(i, mask):
            return jnp.logical_xor(mask, x_ref[...] > i)

        mask = lax.fori_loop(0, 4, toggle, x_ref[...] > 0)  # <- D139
        o_ref[...] = jnp.where(mask, x_ref[...], 0.0)

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# ---- names that changed ----


# kernelwright: x=f32[64,128]
def params_by_old_name(x):
    return pl.pallas_call(
        negate_kernel,
        out_shape=shape_of(x),
        compiler_params=pltpu.TPUCompilerParams(vmem_limit_bytes=16 << 20),  # <- D150
    )(x)


# kernelwright: x=f32[64,128]
def load_by_function(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = pl.load(x_ref, (slice(None), slice(None)))  # <- D151

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[64,128]
def space_by_old_name(x):
    return pl.pallas_call(
        lambda x_hbm, o_hbm: pltpu.sync_copy(x_hbm, o_hbm),
        in_specs=[pl.BlockSpec(memory_space=pltpu.ANY)],  # <- D153
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        out_shape=shape_of(x),
    )(x)


# kernelwright: x=f32[64,128]
def map_before_shape(x):
    rows = pl.BlockSpec(lambda i: (i, 0), (8, 128))  # <- D154
    return pl.pallas_call(negate_kernel, grid=(8,), in_specs=[rows], out_specs=rows, out_shape=shape_of(x))(x)


# ---- right: nothing may be said ----


# kernelwright: x=f32[16,128] b=f32[1,128]
def ok_bias(x, b):
    def kernel(x_ref, b_ref, o_ref):
        o_ref[...] = x_ref[...] + b_ref[...]

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x, b)


# kernelwright: x=f32[64,640]
def ok_tiles(x):
    tile = pl.BlockSpec((16, 128), lambda i, j: (i, j))
    return pl.pallas_call(negate_kernel, grid=(4, 5), in_specs=[tile], out_specs=tile, out_shape=shape_of(x))(
        x
    )


# kernelwright: x=f32[50,200]
def ok_whole_odd_block(x):
    whole = pl.BlockSpec((50, 200), lambda i: (0, 0))
    return pl.pallas_call(negate_kernel, grid=(1,), in_specs=[whole], out_specs=whole, out_shape=shape_of(x))(
        x
    )


# kernelwright: x=f32[100,128]
def ok_rows_with_tail(x):
    rows = pl.BlockSpec((32, 128), lambda i: (i, 0))
    return pl.pallas_call(
        negate_kernel, grid=(pl.cdiv(100, 32),), in_specs=[rows], out_specs=rows, out_shape=shape_of(x)
    )(x)


# kernelwright: x=bf16[128,256] y=bf16[256,256]
def ok_product(x, y, bk=128):
    def kernel(x_ref, y_ref, o_ref, acc_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = acc_ref[...].astype(o_ref.dtype)

    return pl.pallas_call(
        kernel,
        grid=(1, 2, 2),
        in_specs=[
            pl.BlockSpec((128, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((128, 256), jnp.bfloat16),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)


# kernelwright: x=i8[128,128] y=i8[128,128]
def ok_byte_product(x, y):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.int32)

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128, 128), jnp.int32))(x, y)


# kernelwright: x=f32[24,40] y=f32[40,56]
def ok_small_product(x, y):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] @ y_ref[...]

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((24, 56), jnp.float32))(x, y)


# kernelwright: x=f32[32,256]
def ok_softmax(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jax.nn.softmax(x_ref[...], axis=-1)

    rows = pl.BlockSpec((8, 256), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(4,), in_specs=[rows], out_specs=rows, out_shape=shape_of(x))(x)


# kernelwright: x=f32[32,256] w=f32[1,256]
def ok_norm(x, w, eps=1e-6):
    def kernel(x_ref, w_ref, o_ref, *, eps):
        v = x_ref[...]
        o_ref[...] = v * lax.rsqrt(jnp.mean(v * v, axis=-1, keepdims=True) + eps) * w_ref[...]

    return pl.pallas_call(functools.partial(kernel, eps=eps), out_shape=shape_of(x))(x, w)


# kernelwright: x=f32[16,128]
def ok_tanh_gelu(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jax.nn.gelu(x_ref[...])

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=bf16[32,128]
def ok_narrow_compare(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.where(x_ref[...] > 1, jnp.exp(x_ref[...]), x_ref[...])

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,256]
def ok_roll_and_pad(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.roll(x_ref[...], 5, axis=1) + pltpu.roll(x_ref[...], 1, 0)

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[32,128]
def ok_transposed(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].T

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128, 32), x.dtype))(x)


# kernelwright: x=f32[32,128]
def ok_loop_over_rows(x):
    def kernel(x_ref, o_ref):
        def body(i, total):
            rows = x_ref[pl.ds(pl.multiple_of(i * 8, 8), 8), :]
            return total + rows

        o_ref[...] = lax.fori_loop(0, 4, body, jnp.zeros((8, 128), jnp.float32))

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(x)


# kernelwright: x=f32[4,8,128]
def ok_squeezed_axis(x):
    plane = pl.BlockSpec((None, 8, 128), lambda b: (b, 0, 0))
    return pl.pallas_call(negate_kernel, grid=(4,), in_specs=[plane], out_specs=plane, out_shape=shape_of(x))(
        x
    )


# kernelwright: order=i32[4]{0..3} x=f32[32,128]
def ok_blocks_by_table(order, x):
    def kernel(order_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, order_ref: (order_ref[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, order_ref: (i, 0)),
    )
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=shape_of(x))(order, x)


# kernelwright: s=f32[1] x=f32[8,128]
def ok_scalar_in_smem(s, x):
    def kernel(s_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] * s_ref[0]

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_shape=shape_of(x),
    )(s, x)


# kernelwright: x=f32[16,128]
def ok_total_in_smem(x):
    def kernel(x_ref, o_ref):
        o_ref[0] = jnp.sum(x_ref[...])

    return pl.pallas_call(
        kernel,
        out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
        out_shape=jax.ShapeDtypeStruct((1,), jnp.float32),
    )(x)


# kernelwright: x=f32[64,128]
def ok_copy_by_hand(x):
    def kernel(x_hbm, o_ref, buffer, sem):
        copy = pltpu.make_async_copy(x_hbm.at[pl.ds(16, 16)], buffer, sem)
        copy.start()
        copy.wait()
        o_ref[...] = buffer[...]

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype),
        scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)


# kernelwright: x=f32[32,128]
def ok_first_step_differs(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = x_ref[...] * 2

        @pl.when(pl.program_id(0) > 0)
        def _():
            o_ref[...] = x_ref[...]

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(4,), in_specs=[rows], out_specs=rows, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,128]
def ok_in_place(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    return pl.pallas_call(kernel, out_shape=shape_of(x), input_output_aliases={0: 0})(x)


# kernelwright: x=f32[256,512]
def ok_limit_raised(x):
    rows = pl.BlockSpec((64, 512), lambda i: (i, 0))
    return pl.pallas_call(
        negate_kernel,
        grid=(4,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=shape_of(x),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",), vmem_limit_bytes=48 << 20),
    )(x)


# kernelwright: x=f32[16,128]
def ok_mask_from_iota(x):
    def kernel(x_ref, o_ref):
        lane = lax.broadcasted_iota(jnp.int32, x_ref.shape, 1)
        o_ref[...] = jnp.where(lane < 100, x_ref[...], 0.0)

    return pl.pallas_call(kernel, out_shape=shape_of(x))(x)


# kernelwright: x=f32[16,256]
def ok_row_argmax(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.argmax(x_ref[...], axis=1, keepdims=True).astype(jnp.int32)

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 1), jnp.int32))(x)


# kernelwright: x=f32[64,128]
def ok_pipeline_inside(x):
    def kernel(x_hbm, o_hbm):
        def body(x_ref, o_ref):
            o_ref[...] = x_ref[...] * 3

        rows = pl.BlockSpec((16, 128), lambda i: (i, 0))
        pltpu.emit_pipeline(body, grid=(4,), in_specs=[rows], out_specs=[rows])(x_hbm, o_hbm)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(kernel, in_specs=[anywhere], out_specs=anywhere, out_shape=shape_of(x))(x)
