import jax
import jax.numpy as jnp


def rms_norm(x, scale):
    x32 = x.astype(jnp.float32)
    inverse = jax.lax.rsqrt(jnp.mean(x32 * x32, axis=-1, keepdims=True) + 1e-5)
    return (x32 * inverse).astype(x.dtype) * scale


# kernelwright: x=bf16[2,2048,4096] scale=bf16[4096] w_gate=bf16[4096,14336] w_up=bf16[4096,14336]
def gated(x, scale, w_gate, w_up):
    """The first half of a LLaMA feed-forward block."""
    h = rms_norm(x, scale)
    gate = h @ w_gate
    up = h @ w_up
    return jax.nn.silu(gate) * up


def loss(x, scale, w_gate, w_up):
    return jnp.sum(gated(x, scale, w_gate, w_up))
