"""Pre-norm transformer MLP in plain JAX: residual, layer norm, product, gelu, product."""

import jax
import jax.numpy as jnp


# kernelwright: x=bf16[8192,1024] residual=bf16[8192,1024] g=bf16[1024] b=bf16[1024] w1=bf16[1024,4096] b1=bf16[4096]
# kernelwright: w2=bf16[4096,1024] b2=bf16[1024]
def mlp(x, residual, g, b, w1, b1, w2, b2):
    """residual + x goes through the norm and the MLP, and is added to what comes out."""
    stream = x + residual
    mean = jnp.mean(stream, axis=-1, keepdims=True)
    variance = jnp.var(stream, axis=-1, keepdims=True)
    h = (stream - mean) * jax.lax.rsqrt(variance + 1e-5) * g + b
    hidden = jax.nn.gelu(h @ w1 + b1)
    return stream + hidden @ w2 + b2
