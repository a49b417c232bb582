# kernelwright: x=bf16[8192,4096] weight=bf16[4096]
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl


def rms_norm(x, weight):
    return _call(x, weight, rows=8)


def _call(x, weight, rows=64, eps=1e-6):
    def kernel(x_ref, w_ref, o_ref):
        v = x_ref[...].astype(jnp.float32)
        scale = lax.rsqrt(jnp.mean(v * v, axis=-1, keepdims=True) + eps)
        o_ref[...] = (v * scale * w_ref[...].astype(jnp.float32)).astype(o_ref.dtype)

    n, d = x.shape
    spec = pl.BlockSpec((rows, d), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(n, rows),),
        in_specs=[spec, pl.BlockSpec((1, d), lambda i: (0, 0))],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x, weight.reshape(1, d))
