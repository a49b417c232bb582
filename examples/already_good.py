"""A kernel with nothing left to tune: x + alpha * y, bound by memory, in blocks that are already large.

The time is that of moving three arrays through HBM. Other block sizes change how many grid steps that
takes, but the steps hide behind the copies. The answer is "no improvement", and the file stays as it is.

    kernelwright optimize examples/already_good.py::scaled_add
"""

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ALPHA = 0.5


def scaled_add_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + ALPHA * y_ref[...]


# kernelwright: x=f32[8192,4096] y=f32[8192,4096]
def scaled_add(x, y, block_rows=128):
    rows, columns = x.shape
    block = pl.BlockSpec((block_rows, columns), lambda i: (i, 0))
    return pl.pallas_call(
        scaled_add_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(rows // block_rows,),
        in_specs=[block, block],
        out_specs=block,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x, y)
