# kernelwright: x=bf16[1024,512] y=bf16[512,2048]
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, y_ref, o_ref):
    def body(k, acc):
        x = x_ref[:, pl.ds(k * 64, 64)]
        return acc + jnp.dot(x, y_ref[pl.ds(k * 64, 64), :], preferred_element_type=jnp.float32)

    o_ref[...] = jax.lax.fori_loop(0, 8, body, jnp.zeros((128, 256), jnp.float32)).astype(o_ref.dtype)


def matmul(x, y):
    return pl.pallas_call(
        kernel,
        grid=(8, 8),
        in_specs=[
            pl.BlockSpec((128, 512), lambda i, j: (i, 0)),
            pl.BlockSpec((512, 256), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((128, 256), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((1024, 2048), x.dtype),
    )(x, y)
