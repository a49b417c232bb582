"""Pre-norm transformer MLP."""
import jax
from jax import numpy as np


# kernelwright: x=bf16[4096,1024] g=f32[1024] b=f32[1024] w1=bf16[1024,4096] b1=bf16[4096] w2=bf16[1024,4096] b2=bf16[1024]
def mlp(x, g, b, w1, b1, w2, b2):
    mean = np.mean(x, axis=-1, keepdims=True)
    var = np.var(x, axis=-1, keepdims=True)
    h = ((x - mean) / np.sqrt(var + 1e-5) * g + b).astype(x.dtype)
    hidden = jax.nn.gelu(h @ w1 + b1, approximate=False)
    return x + np.dot(hidden, w2.T) + b2
