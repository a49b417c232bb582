"""Softmax over the scores of one LLaMA attention layer: 8192 rows of 4096, with 8 rows per block.

Bound by memory like rms_norm.py, with more arithmetic per row. The block is a default argument, and the
grid is rounded up, so the number of rows need not be a multiple of the block: a row never mixes with
another.

    kernelwright tune examples/softmax.py::softmax
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def softmax_kernel(x_ref, o_ref):
    x = x_ref[...].astype(jnp.float32)
    # The largest of a row becomes 0, so that exp cannot overflow.
    e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    o_ref[...] = (e / jnp.sum(e, axis=-1, keepdims=True)).astype(o_ref.dtype)


# kernelwright: x=bf16[8192,4096]
def softmax(x, block_rows: int = 8):
    rows, columns = x.shape
    block = pl.BlockSpec((block_rows, columns), lambda i: (i, 0))
    return pl.pallas_call(
        softmax_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(pl.cdiv(rows, block_rows),),
        in_specs=[block],
        out_specs=block,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)
