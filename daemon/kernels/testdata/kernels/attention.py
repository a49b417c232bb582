# kernelwright: q=bf16[8,2048,128] k=bf16[8,2048,128] v=bf16[8,2048,128]
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def attention(q, k, v, bq=128, bk=128):
    heads, n, d = q.shape
    low = -1e30

    def kernel(q_ref, k_ref, v_ref, o_ref, m_ref, l_ref, acc_ref):
        i, j = pl.program_id(1), pl.program_id(2)

        @pl.when(j == 0)
        def _():
            m_ref[...] = jnp.full_like(m_ref, low)
            l_ref[...] = jnp.zeros_like(l_ref)
            acc_ref[...] = jnp.zeros_like(acc_ref)

        @pl.when(j * bk < (i + 1) * bq)
        def _():
            s = lax.dot_general(
                q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
            )
            row = i * bq + lax.broadcasted_iota(jnp.int32, s.shape, 0)
            col = j * bk + lax.broadcasted_iota(jnp.int32, s.shape, 1)
            s = jnp.where(row >= col, s, low)
            m_old = m_ref[...]
            m_new = jnp.maximum(m_old, jnp.max(s, axis=1, keepdims=True))
            p = jnp.exp(s - m_new[:, :1])
            fix = jnp.exp(m_old - m_new)
            l_ref[...] = fix * l_ref[...] + jnp.sum(p, axis=1, keepdims=True)
            acc_ref[...] = fix[:, :1] * acc_ref[...] + jnp.dot(p.astype(v_ref.dtype), v_ref[...])
            m_ref[...] = m_new

        @pl.when(j == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = (acc_ref[...] / l_ref[:, :1]).astype(o_ref.dtype)

    q_spec = pl.BlockSpec((None, bq, d), lambda h, i, j: (h, i, 0))
    kv_spec = pl.BlockSpec((None, bk, d), lambda h, i, j: (h, jnp.minimum(j, ((i + 1) * bq - 1) // bk), 0))
    return pl.pallas_call(
        kernel,
        grid=(heads, n // bq, n // bk),
        in_specs=[q_spec, kv_spec, kv_spec],
        out_specs=q_spec,
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        scratch_shapes=[
            pltpu.VMEM((bq, 128), jnp.float32),
            pltpu.VMEM((bq, 128), jnp.float32),
            pltpu.VMEM((bq, d), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(q, k, v)
