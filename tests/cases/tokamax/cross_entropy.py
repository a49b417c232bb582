"""Calls tokamax's cross entropy of a language model's last layer, and its gradient."""

from tokamax._src.ops.linear_softmax_cross_entropy_loss import pallas_mosaic_tpu_kernel as kernels

BLOCKS = {"b_block_size": 1024, "h_block_size": 512, "v_block_size": 1024}


# kernelwright: x=bf16[2048,1024] labels=i32[2048]{0..4095} w=bf16[1024,4096]
def loss(x, labels, w):
    return kernels.linear_softmax_cross_entropy_loss_fwd_pallas_mosaic_tpu(x, labels, w, **BLOCKS)


# kernelwright: dout=f32[] lse=f32[2048] x=bf16[2048,1024] labels=i32[2048]{0..4095} w=bf16[1024,4096]
def gradient(dout, lse, x, labels, w):
    return kernels.linear_softmax_cross_entropy_loss_bwd_pallas_mosaic_tpu(dout, lse, x, labels, w, **BLOCKS)
