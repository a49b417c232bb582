"""The first half of a LLaMA-sized MLP: gelu(x @ w + b), the epilogue fused into the matmul's last step.

The block sizes are literals, written wherever they are needed: in the specs, the scratch shape and the
grid. To change one, all its places have to change together.

    kernelwright optimize examples/matmul_gelu.py::mlp_up --chip all
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def matmul_gelu_kernel(x_ref, w_ref, b_ref, o_ref, acc_ref):
    step = pl.program_id(2)

    @pl.when(step == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)

    @pl.when(step == pl.num_programs(2) - 1)
    def _():
        h = acc_ref[...] + b_ref[...].astype(jnp.float32)
        o_ref[...] = jax.nn.gelu(h, approximate=True).astype(o_ref.dtype)


# kernelwright: x=bf16[4096,4096] w=bf16[4096,14336] b=bf16[1,14336]
def mlp_up(x, w, b):
    m, k = x.shape
    n = w.shape[1]
    return pl.pallas_call(
        matmul_gelu_kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // 256, n // 256, k // 256),
        in_specs=[
            pl.BlockSpec((256, 256), lambda i, j, k: (i, k)),  # x
            pl.BlockSpec((256, 256), lambda i, j, k: (k, j)),  # w
            pl.BlockSpec((1, 256), lambda i, j, k: (0, j)),  # b
        ],
        out_specs=pl.BlockSpec((256, 256), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((256, 256), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, w, b)
