"""Calls the matmul that ships with jax, with small blocks. What is tuned are the arguments in this file,
not jax's.

    kernelwright tune examples/library/matmul.py::matmul
"""

from jax.experimental.pallas.ops.tpu import matmul as library


# kernelwright: x=bf16[4096,4096] y=bf16[4096,4096]
def matmul(x, y):
    return library.matmul(x, y, block_shape=(256, 256), block_k=256)
