"""Normalisation of many small groups that lie in one block."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

EPSILON = 1e-5


def norm_kernel(x_ref, o_ref):
    def body(g, carry):
        x = x_ref[g].astype(jnp.float32)
        mean = jnp.mean(x, axis=0, keepdims=True)
        var = jnp.mean((x - mean) ** 2, axis=0, keepdims=True)
        o_ref[g] = ((x - mean) * lax.rsqrt(var + EPSILON)).astype(o_ref.dtype)
        return carry

    lax.fori_loop(0, x_ref.shape[0], body, 0)


def sample_norm_kernel(x_ref, o_ref):
    def body(g, carry):
        x = x_ref[g].astype(jnp.float32)
        mean = jnp.mean(x, axis=0, keepdims=True)
        var = jnp.var(x, axis=0, keepdims=True, ddof=1)
        o_ref[g] = ((x - mean) * lax.rsqrt(var + EPSILON)).astype(o_ref.dtype)
        return carry

    lax.fori_loop(0, x_ref.shape[0], body, 0)


def call(kernel, x, groups):
    n, rows, d = x.shape
    block = pl.BlockSpec((groups, rows, d), lambda i: (i, 0, 0))
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n // groups,),
        in_specs=[block],
        out_specs=block,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)


# kernelwright: x=bf16[1024,64,128]
def norm(x):
    return call(norm_kernel, x, 64)


# kernelwright: x=bf16[1024,64,128]
def sample_norm(x):
    return call(sample_norm_kernel, x, 64)
