"""Rotary embeddings that work on the halves of the lanes."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def rotary_kernel(x_ref, cos_ref, sin_ref, o_ref):
    half = x_ref.shape[-1] // 2
    x1, x2 = x_ref[:, :half], x_ref[:, half:]
    cos, sin = cos_ref[:, :half], sin_ref[:, :half]
    # Neighbours in a pair are half a row apart.
    cos_full = jnp.concatenate([cos, cos], axis=-1)
    rotated = jnp.concatenate([-x2, x1], axis=-1)
    sin_full = jnp.concatenate([sin, sin], axis=-1)
    o_ref[...] = x_ref[...] * cos_full + rotated * sin_full


# kernelwright: x=bf16[32768,128] cos=bf16[2048,128] sin=bf16[2048,128]
def rotary(x, cos, sin, rows=2048):
    n, d = x.shape
    block = pl.BlockSpec((rows, d), lambda i: (i, 0))
    table = pl.BlockSpec((rows, d), lambda i: (0, 0))
    return pl.pallas_call(
        rotary_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n // rows,),
        in_specs=[block, table, table],
        out_specs=block,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x, cos, sin)


# kernelwright: x=bf16[16384,256] cos=bf16[1024,256] sin=bf16[1024,256]
def rotary_wide(x, cos, sin):
    return rotary(x, cos, sin, rows=1024)
