import jax
import jax.numpy as jnp
from rms_norm_kernels import _rms_norm_call


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
