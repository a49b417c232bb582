"""Causal attention with a running softmax: blocks above the diagonal are skipped, but still copied."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

LOW = -1e30  # finite: a row that is masked as a whole must not give NaN


def attention_kernel(q_ref, k_ref, v_ref, o_ref, m_ref, l_ref, acc_ref, *, block_q, block_k):
    i, j = pl.program_id(1), pl.program_id(2)

    @pl.when(j == 0)
    def _():
        m_ref[...] = jnp.full_like(m_ref, LOW)
        l_ref[...] = jnp.zeros_like(l_ref)
        acc_ref[...] = jnp.zeros_like(acc_ref)

    first_key = j * block_k

    @pl.when(first_key < (i + 1) * block_q)
    def _():
        s = lax.dot_general(
            q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
        )
        row = i * block_q + lax.broadcasted_iota(jnp.int32, s.shape, 0)
        column = first_key + lax.broadcasted_iota(jnp.int32, s.shape, 1)
        s = jnp.where(row >= column, s * (q_ref.shape[-1] ** -0.5), LOW)
        m_old = m_ref[...]
        m_new = jnp.maximum(m_old, jnp.max(s, axis=1, keepdims=True))
        p = jnp.exp(s - m_new[:, :1])
        fix = jnp.exp(m_old - m_new)
        l_ref[...] = fix * l_ref[...] + jnp.sum(p, axis=1, keepdims=True)
        pv = jnp.dot(p.astype(v_ref.dtype), v_ref[...], preferred_element_type=jnp.float32)
        acc_ref[...] = fix[:, :1] * acc_ref[...] + pv
        m_ref[...] = m_new

    @pl.when(j == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = (acc_ref[...] / l_ref[:, :1]).astype(o_ref.dtype)


# kernelwright: q=bf16[4,4096,128] k=bf16[4,4096,128] v=bf16[4,4096,128]
def attention(q, k, v, block_q=128, block_k=512):
    heads, n, d = q.shape
    q_spec = pl.BlockSpec((None, block_q, d), lambda h, i, j: (h, i, 0))
    kv_spec = pl.BlockSpec((None, block_k, d), lambda h, i, j: (h, j, 0))
    return pl.pallas_call(
        functools.partial(attention_kernel, block_q=block_q, block_k=block_k),
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        grid=(heads, n // block_q, n // block_k),
        in_specs=[q_spec, kv_spec, kv_spec],
        out_specs=q_spec,
        scratch_shapes=[
            pltpu.VMEM((block_q, 128), jnp.float32),
            pltpu.VMEM((block_q, 128), jnp.float32),
            pltpu.VMEM((block_q, d), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(q, k, v)


def later_keys_kernel(q_ref, k_ref, o_ref, *, block):
    i, j = pl.program_id(0), pl.program_id(1)

    @pl.when(j == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    @pl.when(j * block >= i * block)
    def _():
        s = lax.dot_general(
            q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
        )
        o_ref[...] += jnp.sum(s, axis=1, keepdims=True)


# kernelwright: q=bf16[4096,128] k=bf16[4096,128]
def later_keys(q, k, block=512):
    n, d = q.shape
    return pl.pallas_call(
        functools.partial(later_keys_kernel, block=block),
        out_shape=jax.ShapeDtypeStruct((n, 1), jnp.float32),
        grid=(n // block, n // block),
        in_specs=[
            pl.BlockSpec((block, d), lambda i, j: (i, 0)),
            pl.BlockSpec((block, d), lambda i, j: (j, 0)),
        ],
        out_specs=pl.BlockSpec((block, 1), lambda i, j: (i, 0)),
    )(q, k)
