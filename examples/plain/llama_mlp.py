"""First half of a LLaMA feed-forward block in plain JAX: RMSNorm, two products, SwiGLU."""

import jax
import jax.numpy as jnp


# kernelwright: x=bf16[4096,4096] scale=bf16[4096] w_gate=bf16[4096,14336] w_up=bf16[4096,14336]
def gated(x, scale, w_gate, w_up):
    """RMSNorm of x, then silu(h @ w_gate) * (h @ w_up)."""
    x32 = x.astype(jnp.float32)
    inverse = jax.lax.rsqrt(jnp.mean(x32 * x32, axis=-1, keepdims=True) + 1e-5)
    h = (x32 * inverse).astype(x.dtype) * scale
    gate = h @ w_gate
    up = h @ w_up
    return jax.nn.silu(gate) * up
