import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


# kernelwright: x=bf16[8,1024,4096] w=bf16[4096]
@jax.jit
def rms_norm(x, w, eps=1e-6):
    """Scales each row to unit root mean square, then by w."""
    if _rms_norm_takes(x, w, eps):
        return _rms_norm_lifted(x, w)
    return rms_norm_plain(x, w, eps)


def rms_norm_plain(x, w, eps=1e-6):
    """`rms_norm` in plain JAX: for what its kernels do not take, and for derivatives."""
    x32 = x.astype(jnp.float32)
    mean_square = jnp.mean(jnp.square(x32), axis=-1, keepdims=True)
    return (x32 * jax.lax.rsqrt(mean_square + eps)).astype(x.dtype) * w


def _rms_norm_takes(x, w, eps):
    """Whether the kernels were made for these arguments; the plain form takes all others."""
    return (
        x.ndim == 3 and x.dtype == jnp.bfloat16
        and w.ndim == 1 and w.dtype == jnp.bfloat16
        and w.shape[-1] == x.shape[-1]
        and x.size > 0
        and type(eps) is float and eps == 1e-6
    )


@jax.custom_jvp
def _rms_norm_lifted(x, w):
    return _rms_norm_call(x, w)


@_rms_norm_lifted.defjvp
def _rms_norm_jvp(primals, tangents):
    """Derivatives are those of the plain form: there is no backward kernel."""
    return _rms_norm_lifted(*primals), jax.jvp(rms_norm_plain, primals, tangents)[1]


def _rms_norm_kernel(x_ref, w_ref, o_ref):
    """A block of whole rows: x (block_rows, d), w (1, d) -> o (block_rows, d)."""
    x = x_ref[...].astype(jnp.float32)
    w = w_ref[...].astype(jnp.float32)
    mean_square = jnp.mean(x * x, axis=1, keepdims=True)
    scale = jax.lax.rsqrt(mean_square + 1e-06)
    o_ref[...] = (x * scale * w).astype(o_ref.dtype)


def _rms_norm_call(x, w, block_rows=128):
    """x (…, d), w (d,) -> (…, d). Rows do not depend on each other, so that the last block
    may be partial.
    """
    d = x.shape[-1]
    rows = x.size // d
    block_rows = min(block_rows, rows)
    out = pl.pallas_call(
        _rms_norm_kernel,
        grid=(pl.cdiv(rows, block_rows),),
        in_specs=[
            pl.BlockSpec((block_rows, d), lambda i: (i, 0)),  # x
            pl.BlockSpec((1, d), lambda i: (0, 0)),  # w
        ],
        out_specs=pl.BlockSpec((block_rows, d), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((rows, d), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        name="rms_norm",
    )(x.reshape(rows, d), w.reshape(1, d))
    return out.reshape(x.shape)
