"""Calls tokamax's splash attention, causal, and its gradient."""

import jax
from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_kernel as splash
from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_mask as masks


def _attend(q, k, v):
    mask = masks.CausalMask((q.shape[1], k.shape[1]))
    kernel = splash.make_splash_mha_single_device(mask, config=splash.SplashConfig.get_default())
    return kernel(q, k, v)


# kernelwright: q=bf16[8,2048,128] k=bf16[8,2048,128] v=bf16[8,2048,128]
def attention(q, k, v):
    return _attend(q, k, v)


# kernelwright: q=bf16[8,2048,128] k=bf16[8,2048,128] v=bf16[8,2048,128] g=bf16[8,2048,128]
def gradient(q, k, v, g):
    return jax.vjp(_attend, q, k, v)[1](g)
