"""Kernels of the worker's tests that are right."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _add_one(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


def add_one(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        _add_one,
        grid=(x.shape[0] // 8,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def add_one_reference(x):
    return x + 1


def _copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def reverse_blocks(x):
    steps = x.shape[0] // 8
    return pl.pallas_call(
        _copy,
        grid=(steps,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (steps - 1 - i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def reverse_blocks_reference(x):
    return x.reshape(-1, 8, x.shape[1])[::-1].reshape(x.shape)


def _count(seen_ref, x_ref, o_ref):
    seen_ref[0] = seen_ref[0] + 1
    o_ref[...] = x_ref[...] + seen_ref[0].astype(x_ref.dtype)


def numbered_blocks(x):
    # Scalars that are brought in ahead are copies, and some kernels of jax keep counters there.
    spec = pl.BlockSpec((8, 128), lambda i, _: (i, 0))
    return pl.pallas_call(
        _count,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(x.shape[0] // 8,), in_specs=[spec], out_specs=spec
        ),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(jnp.zeros(1, jnp.int32), x)


def numbered_blocks_reference(x):
    return x + 1 + (jnp.arange(x.shape[0]) // 8)[:, None].astype(x.dtype)


def _matmul(x_ref, y_ref, o_ref, acc_ref, *, steps):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == steps - 1)
    def _():
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


def matmul(x, y, *, bm=128, bk=128, bn=128):
    m, k = x.shape
    n = y.shape[1]
    return pl.pallas_call(
        functools.partial(_matmul, steps=k // bk),
        grid=(m // bm, n // bn, k // bk),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, bn), lambda i, j, k: (k, j), pipeline_mode=pl.Buffered(1)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"), vmem_limit_bytes=32 << 20
        ),
    )(x, y)


def matmul_reference(x, y):
    return jnp.dot(x, y)


def matmul_widened_reference(x, y):
    wide = jnp.dot(x.astype(jnp.float32), y.astype(jnp.float32), precision="highest")
    return wide.astype(x.dtype)


def _rows(kernel, x):
    spec = pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // 8,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def _softmax(x_ref, o_ref):
    x = x_ref[...].astype(jnp.float32)
    e = jnp.exp(x - jnp.max(x, -1, keepdims=True))
    o_ref[...] = (e / jnp.sum(e, -1, keepdims=True)).astype(o_ref.dtype)


def softmax(x):
    return _rows(_softmax, x)


def softmax_reference(x):
    return jax.nn.softmax(x.astype(jnp.float32), -1).astype(x.dtype)


def _normalize(x_ref, o_ref):
    x = x_ref[...]
    centred = x - jnp.sum(x, -1, keepdims=True) / x.shape[-1]
    o_ref[...] = centred * jax.lax.rsqrt(jnp.sum(centred * centred, -1, keepdims=True) / x.shape[-1] + 1e-5)


def normalize(x):
    return _rows(_normalize, x)


def normalize_reference(x):
    return (x - jnp.mean(x, -1, keepdims=True)) * jax.lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5)


def _sum_steps(x_ref, o_ref, acc_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += x_ref[...].astype(acc_ref.dtype)

    @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
    def _():
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


def sum_steps(x, kernel=_sum_steps, accumulate=jnp.float32, semantics=("arbitrary",)):
    return pl.pallas_call(
        kernel,
        grid=(x.shape[0],),
        in_specs=[pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        scratch_shapes=[pltpu.VMEM((8, 128), accumulate)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
    )(x)


def sum_steps_reference(x):
    return jnp.sum(x.astype(jnp.float32), axis=0).astype(x.dtype)


def noisy(x, key):
    return x + jax.random.normal(key, x.shape, x.dtype)
