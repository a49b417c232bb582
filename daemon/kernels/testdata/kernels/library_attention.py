# kernelwright: q=bf16[1,8,2048,128] k=bf16[1,8,2048,128] v=bf16[1,8,2048,128]
from jax.experimental.pallas.ops.tpu import flash_attention as fa

SIZES = fa.BlockSizes(block_q=256, block_k_major=512, block_k=128, block_b=1)


def attention(q, k, v):
    return fa.flash_attention(q, k, v, causal=True, block_sizes=SIZES)
