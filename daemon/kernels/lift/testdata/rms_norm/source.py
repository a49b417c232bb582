import jax
import jax.numpy as jnp


# kernelwright: x=bf16[8,1024,4096] w=bf16[4096]
@jax.jit
def rms_norm(x, w, eps=1e-6):
    """Scales each row to unit root mean square, then by w."""
    x32 = x.astype(jnp.float32)
    mean_square = jnp.mean(jnp.square(x32), axis=-1, keepdims=True)
    return (x32 * jax.lax.rsqrt(mean_square + eps)).astype(x.dtype) * w
