"""Calls the splash attention that ships with jax: causal, sparse over the blocks that the mask leaves
empty.

    kernelwright tune examples/library/splash_attention.py::attention
"""

from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

BLOCK_Q = 128
BLOCK_KV = 128


# kernelwright: q=bf16[32,4096,128] k=bf16[32,4096,128] v=bf16[32,4096,128]
def attention(q, k, v):
    heads, length, size = q.shape
    mask = masks.MultiHeadMask([masks.CausalMask((length, length)) for _ in range(heads)])
    blocks = splash.BlockSizes(block_q=BLOCK_Q, block_kv=BLOCK_KV)
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=blocks)
    return kernel(q * size**-0.5, k, v)
