import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


# kernelwright: x=f32[1000,500] w=f32[500,600] bias=f32[600]
def attend(x, w, bias):
    if _attend_takes(x, w, bias):
        return _attend_lifted(x, w, bias)
    return attend_plain(x, w, bias)


def attend_plain(x, w, bias):
    """`attend` in plain JAX: for what its kernels do not take, and for derivatives."""
    scores = jnp.tanh(x @ w + bias)
    return jax.nn.softmax(scores)


def _attend_takes(x, w, bias):
    """Whether the kernels were made for these arguments; the plain form takes all others."""
    return (
        x.ndim == 2 and x.dtype == jnp.float32
        and w.ndim == 2 and w.dtype == jnp.float32
        and w.shape[0] == x.shape[-1]
        and bias.ndim == 1 and bias.dtype == jnp.float32
        and bias.shape[-1] == w.shape[1]
        and x.size > 0
    )


@jax.custom_jvp
def _attend_lifted(x, w, bias):
    scores = _attend_scores_call(x, bias, w)
    return _attend_out_call(scores)


@_attend_lifted.defjvp
def _attend_jvp(primals, tangents):
    """Derivatives are those of the plain form: there is no backward kernel."""
    return _attend_lifted(*primals), jax.jvp(attend_plain, primals, tangents)[1]


def _attend_scores_kernel(x_ref, bias_ref, w_ref, o_ref, acc_ref, *, k):
    """acc_ref (block_m, block_n) += x (block_m, block_k) @ w; the last step finishes the block."""
    step = pl.program_id(2)

    @pl.when(step == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    x = x_ref[...]
    w = w_ref[...]
    block_k = x.shape[1]
    if k % block_k:  # the last block of k is partial: what lies beyond it must not be added
        left = k - step * block_k
        x = jnp.where(jax.lax.broadcasted_iota(jnp.int32, x.shape, 1) < left, x, 0)
        w = jnp.where(jax.lax.broadcasted_iota(jnp.int32, w.shape, 0) < left, w, 0)
    acc_ref[...] += jnp.dot(x, w, preferred_element_type=jnp.float32)

    @pl.when(step == pl.num_programs(2) - 1)
    def _():
        product = acc_ref[...]
        bias = bias_ref[...]
        o_ref[...] = jnp.tanh(product + bias)


def _attend_scores_call(x, bias, w, block_m=512, block_n=512, block_k=512):
    """x (…, k), bias (n,), w (k, n) -> (…, n). Partial blocks are masked along k; those of
    rows and columns store only what exists.
    """
    k, n = w.shape
    m = x.size // x.shape[-1]
    block_m, block_n, block_k = min(block_m, m), min(block_n, n), min(block_k, k)
    out = pl.pallas_call(
        functools.partial(_attend_scores_kernel, k=k),
        grid=(pl.cdiv(m, block_m), pl.cdiv(n, block_n), pl.cdiv(k, block_k)),
        in_specs=[
            pl.BlockSpec((block_m, block_k), lambda i, j, s: (i, s)),  # x
            pl.BlockSpec((1, block_n), lambda i, j, s: (0, j)),  # bias
            pl.BlockSpec((block_k, block_n), lambda i, j, s: (s, j)),  # w
        ],
        out_specs=pl.BlockSpec((block_m, block_n), lambda i, j, s: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((block_m, block_n), jnp.float32)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
        name="attend_scores",
    )(x.reshape(m, k), bias.reshape(1, n), w)
    return out.reshape(*x.shape[:-1], n)


def _attend_out_kernel(scores_ref, o_ref):
    """A block of whole rows: scores (block_rows, d) -> o (block_rows, d)."""
    scores = scores_ref[...]
    top = jnp.max(scores, axis=1, keepdims=True)
    e = jnp.exp(scores - top)
    total = jnp.sum(e, axis=1, keepdims=True)
    o_ref[...] = e / total


def _attend_out_call(scores, block_rows=64):
    """scores (…, d) -> (…, d). Rows do not depend on each other, so that the last block may
    be partial.
    """
    d = scores.shape[-1]
    rows = scores.size // d
    block_rows = min(block_rows, rows)
    out = pl.pallas_call(
        _attend_out_kernel,
        grid=(pl.cdiv(rows, block_rows),),
        in_specs=[
            pl.BlockSpec((block_rows, d), lambda i: (i, 0)),  # scores
        ],
        out_specs=pl.BlockSpec((block_rows, d), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((rows, d), scores.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        name="attend_out",
    )(scores.reshape(rows, d))
    return out.reshape(scores.shape)
