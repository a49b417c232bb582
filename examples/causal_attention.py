"""Causal attention that skips the blocks above the diagonal, but still copies them.

The condition on the grid step saves the products of masked blocks; their copies are made all the same,
since the index map asks for them. A rewrite lets the index map stay at the last block in use, and the
copy of a block that is there already is left out (docs/rewrite.md, clamped-index-map).

    kernelwright profile examples/causal_attention.py::attention --chip v6e
    kernelwright optimize examples/causal_attention.py::attention --chip v6e
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

LOW = -1e30  # finite: a row that is masked as a whole must not give NaN


def attention_kernel(q_ref, k_ref, v_ref, o_ref, max_ref, sum_ref, acc_ref, *, block_q, block_k, scale):
    i, j = pl.program_id(1), pl.program_id(2)

    @pl.when(j == 0)
    def _():
        max_ref[...] = jnp.full_like(max_ref, LOW)
        sum_ref[...] = jnp.zeros_like(sum_ref)
        acc_ref[...] = jnp.zeros_like(acc_ref)

    @pl.when(j * block_k < (i + 1) * block_q)
    def _():
        scores = lax.dot_general(
            q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
        )
        row = i * block_q + lax.broadcasted_iota(jnp.int32, scores.shape, 0)
        column = j * block_k + lax.broadcasted_iota(jnp.int32, scores.shape, 1)
        scores = jnp.where(row >= column, scores * scale, LOW)
        # The statistics fill whole registers: all lanes of a row are equal.
        old = max_ref[...]
        new = jnp.maximum(old, jnp.max(scores, axis=1, keepdims=True))
        weights = jnp.exp(scores - new[:, :1])
        rescale = jnp.exp(old - new)
        sum_ref[...] = rescale * sum_ref[...] + jnp.sum(weights, axis=1, keepdims=True)
        acc_ref[...] = rescale[:, :1] * acc_ref[...] + jnp.dot(
            weights.astype(v_ref.dtype), v_ref[...], preferred_element_type=jnp.float32
        )
        max_ref[...] = new

    @pl.when(j == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = (acc_ref[...] / sum_ref[:, :1]).astype(o_ref.dtype)


# kernelwright: q=bf16[8,4096,128] k=bf16[8,4096,128] v=bf16[8,4096,128]
def attention(q, k, v, block_q=128, block_k=512):
    heads, length, size = q.shape
    queries = pl.BlockSpec((None, block_q, size), lambda h, i, j: (h, i, 0))
    keys = pl.BlockSpec((None, block_k, size), lambda h, i, j: (h, j, 0))
    return pl.pallas_call(
        functools.partial(attention_kernel, block_q=block_q, block_k=block_k, scale=size**-0.5),
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        grid=(heads, length // block_q, length // block_k),
        in_specs=[queries, keys, keys],
        out_specs=queries,
        scratch_shapes=[
            pltpu.VMEM((block_q, 128), jnp.float32),
            pltpu.VMEM((block_q, 128), jnp.float32),
            pltpu.VMEM((block_q, size), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(q, k, v)
