"""Operands that are held in one buffer: one that changes in every step, and one that stays."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def tanh_kernel(x_ref, o_ref):
    o_ref[...] = jnp.tanh(x_ref[...])


# kernelwright: x=f32[8192,1024]
def tanh(x, rows=256):
    n, d = x.shape
    return pl.pallas_call(
        tanh_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n // rows,),
        in_specs=[pl.BlockSpec((rows, d), lambda i: (i, 0), pipeline_mode=pl.Buffered(1))],
        out_specs=pl.BlockSpec((rows, d), lambda i: (i, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)


def linear_kernel(x_ref, w_ref, o_ref):
    o_ref[...] = jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32).astype(o_ref.dtype)


# kernelwright: x=bf16[8192,1024] w=bf16[1024,1024]
def linear(x, w, rows=256):
    n, k = x.shape
    return pl.pallas_call(
        linear_kernel,
        out_shape=jax.ShapeDtypeStruct((n, w.shape[1]), x.dtype),
        grid=(n // rows,),
        in_specs=[
            pl.BlockSpec((rows, k), lambda i: (i, 0)),
            pl.BlockSpec(w.shape, lambda i: (0, 0), pipeline_mode=pl.Buffered(1)),
        ],
        out_specs=pl.BlockSpec((rows, w.shape[1]), lambda i: (i, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x, w)
