"""Kernels that say nothing about their grid axes."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def norm_kernel(x_ref, o_ref):
    x = x_ref[...].astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    o_ref[...] = (x * scale).astype(o_ref.dtype)


# kernelwright: x=bf16[4096,4096]
def norm(x, rows=128):
    n, d = x.shape
    block = pl.BlockSpec((rows, d), lambda i: (i, 0))
    return pl.pallas_call(
        norm_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n // rows,),
        in_specs=[block],
        out_specs=block,
    )(x)


def total_kernel(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.sum(x_ref[...].astype(jnp.float32), axis=0, keepdims=True)


# kernelwright: x=bf16[4096,4096]
def total(x, rows=128):
    n, d = x.shape
    return pl.pallas_call(
        total_kernel,
        out_shape=jax.ShapeDtypeStruct((1, d), jnp.float32),
        grid=(n // rows,),
        in_specs=[pl.BlockSpec((rows, d), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, d), lambda i: (0, 0)),
    )(x)
