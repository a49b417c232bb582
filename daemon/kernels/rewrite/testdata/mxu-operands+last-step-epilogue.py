"""Kernels on which two rules together reach what neither reaches alone."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

EPSILON = 1e-5


def widened_gelu_kernel(x_ref, w_ref, o_ref, acc_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    x = x_ref[...]
    w = w_ref[...]
    acc_ref[...] += jnp.dot(x, w, preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = jax.nn.gelu(acc_ref[...]).astype(o_ref.dtype)


# kernelwright: x=bf16[2048,2048] w=bf16[2048,2048]
def widened_gelu(x, w, bm=512, bn=512, bk=256):
    (m, k), n = x.shape, w.shape[1]
    return pl.pallas_call(
        widened_gelu_kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // bm, n // bn, k // bk),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, w)


def buffered_rotary_kernel(x_ref, cos_ref, sin_ref, o_ref):
    half = x_ref.shape[-1] // 2
    x1, x2 = x_ref[:, :half], x_ref[:, half:]
    cos, sin = cos_ref[:, :half], sin_ref[:, :half]
    o_ref[:, :half] = x1 * cos - x2 * sin
    o_ref[:, half:] = x2 * cos + x1 * sin


# kernelwright: x=bf16[32768,128] cos=bf16[2048,128] sin=bf16[2048,128]
def buffered_rotary(x, cos, sin, rows=2048):
    n, d = x.shape
    table = pl.BlockSpec((rows, d), lambda i: (0, 0))
    return pl.pallas_call(
        buffered_rotary_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n // rows,),
        in_specs=[pl.BlockSpec((rows, d), lambda i: (i, 0), pipeline_mode=pl.Buffered(1)), table, table],
        out_specs=pl.BlockSpec((rows, d), lambda i: (i, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x, cos, sin)


def greedy_gelu_kernel(x_ref, w_ref, o_ref, acc_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)
    o_ref[...] = jax.nn.gelu(acc_ref[...]).astype(o_ref.dtype)


# kernelwright: x=bf16[2048,2048] w=bf16[2048,2048]
def greedy_gelu(x, w, block=512):
    (m, k), n = x.shape, w.shape[1]
    return pl.pallas_call(
        greedy_gelu_kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // block, n // block, k // block),
        in_specs=[
            pl.BlockSpec((block, block), lambda i, j, k: (i, k)),
            pl.BlockSpec((block, block), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((block, block), jnp.float32)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"),
            vmem_limit_bytes=60 << 20,
        ),
    )(x, w)


def serial_norm_kernel(x_ref, o_ref):
    def body(g, carry):
        x = x_ref[g].astype(jnp.float32)
        mean = jnp.mean(x, axis=-1, keepdims=True)
        var = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
        o_ref[g] = ((x - mean) * lax.rsqrt(var + EPSILON)).astype(o_ref.dtype)
        return carry

    lax.fori_loop(0, x_ref.shape[0], body, 0)


# kernelwright: x=bf16[1024,64,128]
def serial_group_norm(x, groups=64):
    n, rows, d = x.shape
    block = pl.BlockSpec((groups, rows, d), lambda i: (i, 0, 0))
    return pl.pallas_call(
        serial_norm_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n // groups,),
        in_specs=[block],
        out_specs=block,
    )(x)
