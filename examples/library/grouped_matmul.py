"""Calls megablox, the grouped matmul that ships with jax: 8 experts of Mixtral's size, the same number
of tokens each.

Which tiles of a group are visited is decided on the device, so the number of grid steps is known only
there.

    kernelwright tune examples/library/grouped_matmul.py::experts
"""

import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm

TILING = (128, 128, 128)  # rows, contraction, columns


# kernelwright: tokens=bf16[4096,4096] weights=bf16[8,4096,14336]
def experts(tokens, weights):
    groups = weights.shape[0]
    sizes = jnp.full((groups,), tokens.shape[0] // groups, dtype=jnp.int32)
    return gmm(tokens, weights, sizes, preferred_element_type=tokens.dtype, tiling=TILING)
