"""Calls the flash attention that ships with jax at a LLaMA shape: 32 heads of 128, 4096 tokens, causal.

The blocks are those that it takes by default. What is tuned are the arguments in this file, not jax's.

    kernelwright tune examples/library/flash_attention.py::attention
"""

from jax.experimental.pallas.ops.tpu.flash_attention import BlockSizes, flash_attention


# kernelwright: q=bf16[1,32,4096,128] k=bf16[1,32,4096,128] v=bf16[1,32,4096,128]
def attention(q, k, v):
    blocks = BlockSizes(block_q=128, block_k_major=128, block_k=128, block_b=1)
    return flash_attention(q, k, v, causal=True, sm_scale=q.shape[-1] ** -0.5, block_sizes=blocks)
