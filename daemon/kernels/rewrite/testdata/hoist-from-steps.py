"""Rotations whose sines and cosines are computed in the kernel, for every head again."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def rotate_kernel(x_ref, angle_ref, o_ref, cos_ref, sin_ref):
    x = x_ref[...]

    @pl.when(pl.program_id(1) == 0)
    def _():
        angle = angle_ref[...]
        cos_ref[...] = jnp.cos(angle)
        sin_ref[...] = jnp.sin(angle)

    o_ref[...] = x * cos_ref[...] + pltpu.roll(x, 64, 1) * sin_ref[...]


# kernelwright: x=f32[16,2048,128] angle=f32[2048,128]
def rotate(x, angle, rows=512):
    heads, n, d = x.shape
    block = pl.BlockSpec((None, rows, d), lambda i, h: (h, i, 0))
    return pl.pallas_call(
        rotate_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n // rows, heads),
        in_specs=[block, pl.BlockSpec((rows, d), lambda i, h: (i, 0))],
        out_specs=block,
        scratch_shapes=[pltpu.VMEM((rows, d), jnp.float32), pltpu.VMEM((rows, d), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )(x, angle)


def rotate_apart_kernel(x_ref, angle_ref, o_ref):
    x = x_ref[...]
    angle = angle_ref[...]
    o_ref[...] = x * jnp.cos(angle) + pltpu.roll(x, 64, 1) * jnp.sin(angle)


# kernelwright: x=f32[16,2048,128] angle=f32[16,2048,128]
def rotate_apart(x, angle, rows=512):
    heads, n, d = x.shape
    block = pl.BlockSpec((None, rows, d), lambda i, h: (h, i, 0))
    return pl.pallas_call(
        rotate_apart_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n // rows, heads),
        in_specs=[block, block],
        out_specs=block,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
    )(x, angle)
