"""Weights of 8 bits, kept with their outputs in rows: transposed and cast before each product."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def linear_kernel(x_ref, w_ref, s_ref, o_ref):
    w = w_ref[...].T.astype(x_ref.dtype)
    y = jnp.dot(x_ref[...], w, preferred_element_type=jnp.float32)
    o_ref[...] = (y * s_ref[...]).astype(o_ref.dtype)


def plain_kernel(x_ref, w_ref, s_ref, o_ref):
    y = jnp.dot(x_ref[...], w_ref[...].T, preferred_element_type=jnp.float32)
    o_ref[...] = (y * s_ref[...]).astype(o_ref.dtype)


def call(kernel, x, w, s, bm, bn):
    (m, k), n = x.shape, w.shape[0]
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(n // bn, m // bm),
        in_specs=[
            pl.BlockSpec((bm, k), lambda j, i: (i, 0)),
            pl.BlockSpec((bn, k), lambda j, i: (j, 0)),
            pl.BlockSpec((1, bn), lambda j, i: (0, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda j, i: (i, j)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )(x, w, s)


# kernelwright: x=bf16[2048,1024] w=i8[2048,1024] s=f32[1,2048]
def linear(x, w, s):
    return call(linear_kernel, x, w, s, 64, 512)


# kernelwright: x=bf16[2048,1024] w=bf16[2048,1024] s=f32[1,2048]
def plain(x, w, s):
    return call(plain_kernel, x, w, s, 64, 512)
