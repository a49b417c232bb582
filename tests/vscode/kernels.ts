// Small kernels of the tests: quick to trace, to compile and to check.

/** Blocks of 8 rows where 256 are much faster. */
export const slowAdd = `import jax
from jax.experimental import pallas as pl


def add_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


# kernelwright: x=f32[2048,512] y=f32[2048,512]
def add(x, y, rows=8):
    block = pl.BlockSpec((rows, 512), lambda i: (i, 0))
    return pl.pallas_call(
        add_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // rows,),
        in_specs=[block, block],
        out_specs=block,
    )(x, y)
`;

/** A block that is no multiple of the tile: an error with a fix. */
export const offTile = `import jax
from jax.experimental import pallas as pl


def negate_kernel(x_ref, o_ref):
    o_ref[...] = -x_ref[...]


# kernelwright: x=f32[96,640]
def negate(x):
    tile = pl.BlockSpec((12, 160), lambda r, c: (r, c))
    return pl.pallas_call(
        negate_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(8, 4),
        in_specs=[tile],
        out_specs=tile,
    )(x)
`;

export const plain = `def double(x):
    return 2 * x
`;
