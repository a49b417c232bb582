"""Calls tokamax's grouped matmul and its transpose: four experts of a mixture."""

import jax
import jax.numpy as jnp
from tokamax._src.ops.ragged_dot import pallas_mosaic_tpu_kernel as kernels

PRECISION = (jax.lax.Precision.DEFAULT, jax.lax.Precision.DEFAULT)


# kernelwright: x=bf16[1024,512] w=bf16[4,512,1024] sizes=i32[4]{256..256}
def experts(x, w, sizes):
    return kernels.gmm(x, w, sizes, PRECISION, jnp.bfloat16, tiling=(128, 512, 512))


# kernelwright: x=bf16[1024,512] g=bf16[1024,1024] sizes=i32[4]{256..256}
def experts_gradient(x, g, sizes):
    return kernels.tgmm(x.T, g, sizes, PRECISION, jnp.bfloat16, tiling=(128, 512, 512))
