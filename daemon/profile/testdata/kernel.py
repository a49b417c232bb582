"""Small kernels whose dumps are golden files of the profile's tests."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def casts_kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = jnp.exp(x) * x


def casts(x):
    return pl.pallas_call(
        casts_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec((16, 256), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((16, 256), lambda i: (i, 0)),
        name="casts",
    )(x)


def transpose_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...].T


def transpose(x):
    return pl.pallas_call(
        transpose_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape[::-1], x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec((128, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((128, 128), lambda i: (0, i)),
        name="transpose",
    )(x)


def f32dot_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...], precision=jax.lax.Precision.HIGHEST)


def f32dot(x, y):
    return pl.pallas_call(
        f32dot_kernel,
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), x.dtype),
        grid=(2,),
        in_specs=[pl.BlockSpec((16, 64), lambda i: (i, 0)), pl.BlockSpec((64, 128), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((16, 128), lambda i: (i, 0)),
        name="f32dot",
    )(x, y)


def spill_kernel(x_ref, o_ref):
    y = jnp.exp(x_ref[...])
    o_ref[...] = y * jnp.sum(y, axis=0, keepdims=True)


def spill(x):
    return pl.pallas_call(
        spill_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec((576, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((576, 128), lambda i: (i, 0)),
        name="spill",
    )(x)


def narrow_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1.0


def narrow(x):
    return pl.pallas_call(
        narrow_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec((128, 16), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((128, 16), lambda i: (i, 0)),
        name="narrow",
    )(x)
