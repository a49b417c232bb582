"""A kernel that does not compile: the blocks of (100, 130) fit neither the tile of (8, 128) nor the
array.

    kernelwright check examples/broken.py::double       names the block and the sizes that would do
    kernelwright optimize examples/broken.py::double    says the same and changes nothing
"""

import jax
from jax.experimental import pallas as pl


def double_kernel(x_ref, o_ref):
    o_ref[...] = 2 * x_ref[...]


# kernelwright: x=f32[1000,1300]
def double(x):
    block = pl.BlockSpec((100, 130), lambda i, j: (i, j))
    return pl.pallas_call(
        double_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(10, 10),
        in_specs=[block],
        out_specs=block,
    )(x)
