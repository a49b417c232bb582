"""Pallas kernels of `rms_norm`."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _rms_norm_kernel(x_ref, w_ref, o_ref):
    """A block of whole rows: x (block_rows, d), w (1, d) -> o (block_rows, d)."""
    x = x_ref[...].astype(jnp.float32)
    w = w_ref[...].astype(jnp.float32)
    mean_square = jnp.mean(x * x, axis=1, keepdims=True)
    scale = jax.lax.rsqrt(mean_square + 1e-06)
    o_ref[...] = (x * scale * w).astype(o_ref.dtype)


def _rms_norm_call(x, w, block_rows=128):
    """x (…, d), w (d,) -> (…, d). Rows do not depend on each other, so that the last block
    may be partial.
    """
    d = x.shape[-1]
    rows = x.size // d
    block_rows = min(block_rows, rows)
    out = pl.pallas_call(
        _rms_norm_kernel,
        grid=(pl.cdiv(rows, block_rows),),
        in_specs=[
            pl.BlockSpec((block_rows, d), lambda i: (i, 0)),  # x
            pl.BlockSpec((1, d), lambda i: (0, 0)),  # w
        ],
        out_specs=pl.BlockSpec((block_rows, d), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((rows, d), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        name="rms_norm",
    )(x.reshape(rows, d), w.reshape(1, d))
    return out.reshape(x.shape)
