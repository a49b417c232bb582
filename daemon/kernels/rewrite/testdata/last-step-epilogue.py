"""A product whose activation is applied in every step of the reduction, though only the last one counts."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def up_kernel(x_ref, w_ref, b_ref, o_ref, acc_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        h = acc_ref[...] + b_ref[...].astype(jnp.float32)  # biased
        o_ref[...] = jax.nn.gelu(h, approximate=True).astype(o_ref.dtype)


# kernelwright: x=bf16[2048,2048] w=bf16[2048,2048] b=bf16[1,2048]
def up(x, w, b, bm=512, bn=512, bk=256):
    (m, k), n = x.shape, w.shape[1]
    return pl.pallas_call(
        up_kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // bm, n // bn, k // bk),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
            pl.BlockSpec((1, bn), lambda i, j, k: (0, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, w, b)


def gate_kernel(x_ref, g_ref, o_ref):
    o_ref[...] = (x_ref[...] * jax.nn.sigmoid(g_ref[...])).astype(o_ref.dtype)


# kernelwright: x=f32[2048,1024] g=f32[2048,1024]
def gate(x, g, bm=256, bn=512):
    m, n = x.shape
    block = pl.BlockSpec((bm, bn), lambda i, j: (i, j))
    return pl.pallas_call(
        gate_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(m // bm, n // bn),
        in_specs=[block, block],
        out_specs=block,
    )(x, g)
