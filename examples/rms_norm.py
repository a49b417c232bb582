"""RMSNorm over the hidden size of LLaMA 70B (8192), with very few rows per block.

The work is bound by memory: read x once, write the result once. With 8 rows in a block there are 512
short copies in each direction, and the cost of a grid step shows. The block is a module constant here.

    kernelwright optimize examples/rms_norm.py::rms_norm
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = 8  # rows of x per grid step
EPSILON = 1e-5


def rms_norm_kernel(x_ref, weight_ref, o_ref):
    x = x_ref[...].astype(jnp.float32)
    mean_square = jnp.mean(x * x, axis=-1, keepdims=True)
    scaled = x * jax.lax.rsqrt(mean_square + EPSILON)
    o_ref[...] = (scaled * weight_ref[...].astype(jnp.float32)).astype(o_ref.dtype)


# kernelwright: x=bf16[4096,8192] weight=bf16[1,8192]
def rms_norm(x, weight):
    tokens, hidden = x.shape
    return pl.pallas_call(
        rms_norm_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(tokens // ROWS,),
        in_specs=[
            pl.BlockSpec((ROWS, hidden), lambda i: (i, 0)),
            pl.BlockSpec((1, hidden), lambda i: (0, 0)),
        ],
        out_specs=pl.BlockSpec((ROWS, hidden), lambda i: (i, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x, weight)
