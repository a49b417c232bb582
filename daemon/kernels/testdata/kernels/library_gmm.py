# kernelwright: lhs=bf16[2048,1024] rhs=bf16[8,1024,2048] sizes=i32[8]{256..256}
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm


def grouped(lhs, rhs, sizes):
    return gmm(lhs, rhs, sizes, tiling=(128, 256, 512))
