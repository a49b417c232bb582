"""Loops over the rows of a block that compute the same in every round."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = 64


def gate_kernel(x_ref, g_ref, o_ref):
    g = jax.nn.sigmoid(g_ref[...].astype(jnp.float32))

    def body(i, carry):
        rows = pl.ds(pl.multiple_of(i * ROWS, ROWS), ROWS)
        o_ref[rows, :] = (x_ref[rows, :] * g).astype(o_ref.dtype)
        return carry

    lax.fori_loop(0, x_ref.shape[0] // ROWS, body, 0)


# kernelwright: x=bf16[8192,512] g=bf16[64,512]
def gate(x, g, block=1024):
    n, d = x.shape
    rows = pl.BlockSpec((block, d), lambda i: (i, 0))
    return pl.pallas_call(
        gate_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n // block,),
        in_specs=[rows, pl.BlockSpec((ROWS, d), lambda i: (0, 0))],
        out_specs=rows,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x, g)


def linear_kernel(x_ref, w_ref, o_ref):
    def body(i, carry):
        rows = pl.ds(pl.multiple_of(i * ROWS, ROWS), ROWS)
        w = w_ref[...].astype(jnp.bfloat16)
        o_ref[rows, :] = jnp.dot(x_ref[rows, :], w, preferred_element_type=jnp.float32).astype(o_ref.dtype)
        return carry

    lax.fori_loop(0, x_ref.shape[0] // ROWS, body, 0)


# kernelwright: x=bf16[8192,512] w=i8[512,512]
def linear(x, w, block=512):
    n, d = x.shape
    return pl.pallas_call(
        linear_kernel,
        out_shape=jax.ShapeDtypeStruct((n, w.shape[1]), x.dtype),
        grid=(n // block,),
        in_specs=[pl.BlockSpec((block, d), lambda i: (i, 0)), pl.BlockSpec(w.shape, lambda i: (0, 0))],
        out_specs=pl.BlockSpec((block, w.shape[1]), lambda i: (i, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x, w)
