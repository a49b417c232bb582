# kernelwright: x=bf16[4096,4096] y=bf16[4096,4096]
import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, y_ref, o_ref, acc_ref, *, size, bk):
    step = pl.program_id(2)

    @pl.when(step == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    x, y = x_ref[...], y_ref[...]
    if size % bk:
        left = size - step * bk
        x = jnp.where(lax.broadcasted_iota(jnp.int32, x.shape, 1) < left, x, 0)
        y = jnp.where(lax.broadcasted_iota(jnp.int32, y.shape, 0) < left, y, 0)
    acc_ref[...] += jnp.dot(x, y, preferred_element_type=jnp.float32)

    @pl.when(step == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


def matmul(x, y, bm=128, bn=128, bk=128):
    (m, k), n = x.shape, y.shape[1]
    return pl.pallas_call(
        functools.partial(kernel, size=k, bk=bk),
        grid=(pl.cdiv(m, bm), pl.cdiv(n, bn), pl.cdiv(k, bk)),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, s: (i, s)),
            pl.BlockSpec((bk, bn), lambda i, j, s: (s, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, s: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
    )(x, y)
