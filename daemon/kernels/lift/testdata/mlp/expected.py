"""Pre-norm transformer MLP."""
import functools

import jax
from jax import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


# kernelwright: x=bf16[4096,1024] g=f32[1024] b=f32[1024] w1=bf16[1024,4096] b1=bf16[4096] w2=bf16[1024,4096] b2=bf16[1024]
def mlp(x, g, b, w1, b1, w2, b2):
    if _mlp_takes(x, g, b, w1, b1, w2, b2):
        return _mlp_lifted(x, g, b, w1, b1, w2, b2)
    return mlp_plain(x, g, b, w1, b1, w2, b2)


def mlp_plain(x, g, b, w1, b1, w2, b2):
    """`mlp` in plain JAX: for what its kernels do not take, and for derivatives."""
    mean = np.mean(x, axis=-1, keepdims=True)
    var = np.var(x, axis=-1, keepdims=True)
    h = ((x - mean) / np.sqrt(var + 1e-5) * g + b).astype(x.dtype)
    hidden = jax.nn.gelu(h @ w1 + b1, approximate=False)
    return x + np.dot(hidden, w2.T) + b2


def _mlp_takes(x, g, b, w1, b1, w2, b2):
    """Whether the kernels were made for these arguments; the plain form takes all others."""
    return (
        x.ndim == 2 and x.dtype == np.bfloat16
        and g.ndim == 1 and g.dtype == np.float32
        and g.shape[-1] == x.shape[-1]
        and not getattr(g, "weak_type", False)
        and b.ndim == 1 and b.dtype == np.float32
        and b.shape[-1] == x.shape[-1]
        and not getattr(b, "weak_type", False)
        and w1.ndim == 2 and w1.dtype == np.bfloat16
        and w1.shape[0] == x.shape[-1]
        and b1.ndim == 1 and b1.dtype == np.bfloat16
        and b1.shape[-1] == w1.shape[1]
        and w2.ndim == 2 and w2.dtype == np.bfloat16
        and w2.shape[0] == x.shape[-1]
        and w2.shape[1] == w1.shape[1]
        and b2.ndim == 1 and b2.dtype == np.bfloat16
        and b2.shape[-1] == x.shape[-1]
        and x.size > 0
    )


@jax.custom_jvp
def _mlp_lifted(x, g, b, w1, b1, w2, b2):
    hidden = _mlp_hidden_call(x, g, b, b1, w1)
    return _mlp_out_call(hidden, x, b2, w2)


@_mlp_lifted.defjvp
def _mlp_jvp(primals, tangents):
    """Derivatives are those of the plain form: there is no backward kernel."""
    return _mlp_lifted(*primals), jax.jvp(mlp_plain, primals, tangents)[1]


def _mlp_hidden_kernel(x_ref, g_ref, b_ref, b1_ref, w1_ref, o_ref, h_ref):
    """h (block_m, k) is computed at the first block of columns and kept for the others; each
    gives (block_m, block_n).
    """

    @pl.when(pl.program_id(1) == 0)
    def _():
        x = x_ref[...].astype(np.float32)
        g = g_ref[...]
        b = b_ref[...]
        mean = np.mean(x, axis=1, keepdims=True)
        var = np.mean(np.square(x - mean), axis=1, keepdims=True)
        h_ref[...] = ((x - mean) / np.sqrt(var + 1.001358e-05) * g + b).astype(h_ref.dtype)

    h = h_ref[...]
    product = np.dot(h, w1_ref[...], preferred_element_type=np.float32)
    b1 = b1_ref[...].astype(np.float32)
    added = product + b1
    o_ref[...] = (0.5 * added * (1.0 + jax.lax.erf(added * 0.70710677))).astype(o_ref.dtype)


def _mlp_hidden_call(x, g, b, b1, w1, block_m=512, block_n=512):
    """x (…, k), g (k,), b (k,), b1 (n,), w1 (k, n) -> (…, n). A block of rows has all of k;
    partial blocks of rows and columns store only what exists.
    """
    k, n = w1.shape
    m = x.size // x.shape[-1]
    block_m, block_n = min(block_m, m), min(block_n, n)
    out = pl.pallas_call(
        _mlp_hidden_kernel,
        grid=(pl.cdiv(m, block_m), pl.cdiv(n, block_n)),
        in_specs=[
            pl.BlockSpec((block_m, k), lambda i, j: (i, 0)),  # x
            pl.BlockSpec((1, k), lambda i, j: (0, 0)),  # g
            pl.BlockSpec((1, k), lambda i, j: (0, 0)),  # b
            pl.BlockSpec((1, block_n), lambda i, j: (0, j)),  # b1
            pl.BlockSpec((k, block_n), lambda i, j: (0, j)),  # w1
        ],
        out_specs=pl.BlockSpec((block_m, block_n), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((block_m, k), np.bfloat16)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "arbitrary"), vmem_limit_bytes=48 << 20
        ),
        name="mlp_hidden",
    )(x.reshape(m, k), g.reshape(1, k), b.reshape(1, k), b1.reshape(1, n), w1)
    return out.reshape(*x.shape[:-1], n)


def _mlp_out_kernel(hidden_ref, x_ref, b2_ref, w2_ref, o_ref, acc_ref, *, k):
    """acc_ref (block_m, block_n) += hidden (block_m, block_k) @ w2; the last step finishes the
    block.
    """
    step = pl.program_id(2)

    @pl.when(step == 0)
    def _():
        acc_ref[...] = np.zeros_like(acc_ref)

    hidden = hidden_ref[...]
    w2 = w2_ref[...]
    block_k = hidden.shape[1]
    if k % block_k:  # the last block of k is partial: what lies beyond it must not be added
        left = k - step * block_k
        hidden = np.where(jax.lax.broadcasted_iota(np.int32, hidden.shape, 1) < left, hidden, 0)
        w2 = np.where(jax.lax.broadcasted_iota(np.int32, w2.shape, 1) < left, w2, 0)
    acc_ref[...] += jax.lax.dot_general(hidden, w2, (((1,), (1,)), ((), ())), preferred_element_type=np.float32)

    @pl.when(step == pl.num_programs(2) - 1)
    def _():
        product = acc_ref[...]
        x = x_ref[...].astype(np.float32)
        b2 = b2_ref[...].astype(np.float32)
        o_ref[...] = (x + product + b2).astype(o_ref.dtype)


def _mlp_out_call(hidden, x, b2, w2, block_m=512, block_n=512, block_k=512):
    """hidden (…, k), x (…, n), b2 (n,), w2 (n, k) -> (…, n). Partial blocks are masked
    along k; those of rows and columns store only what exists.
    """
    n, k = w2.shape
    m = hidden.size // hidden.shape[-1]
    block_m, block_n, block_k = min(block_m, m), min(block_n, n), min(block_k, k)
    out = pl.pallas_call(
        functools.partial(_mlp_out_kernel, k=k),
        grid=(pl.cdiv(m, block_m), pl.cdiv(n, block_n), pl.cdiv(k, block_k)),
        in_specs=[
            pl.BlockSpec((block_m, block_k), lambda i, j, s: (i, s)),  # hidden
            pl.BlockSpec((block_m, block_n), lambda i, j, s: (i, j)),  # x
            pl.BlockSpec((1, block_n), lambda i, j, s: (0, j)),  # b2
            pl.BlockSpec((block_n, block_k), lambda i, j, s: (j, s)),  # w2
        ],
        out_specs=pl.BlockSpec((block_m, block_n), lambda i, j, s: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), hidden.dtype),
        scratch_shapes=[pltpu.VMEM((block_m, block_n), np.float32)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
        name="mlp_out",
    )(hidden.reshape(m, k), x.reshape(m, n), b2.reshape(1, n), w2)
    return out.reshape(*hidden.shape[:-1], n)
