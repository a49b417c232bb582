# kernelwright: x=f32[4096,512]
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def sum_chunks(x, rows=64):
    steps, d = x.shape[0] // rows, x.shape[1]

    def kernel(x_hbm, o_ref, buffer, sems):
        def copy(step, slot):
            start = pl.multiple_of(step * rows, rows)
            return pltpu.make_async_copy(x_hbm.at[pl.ds(start, rows), :], buffer.at[slot], sems.at[slot])

        copy(0, 0).start()

        def body(step, total):
            slot = lax.rem(step, 2)

            @pl.when(step + 1 < steps)
            def _():
                copy(step + 1, 1 - slot).start()

            copy(step, slot).wait()
            return total + jnp.sum(buffer[slot], axis=0, keepdims=True)

        o_ref[...] = lax.fori_loop(0, steps, body, jnp.zeros((1, d), jnp.float32))

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=jax.ShapeDtypeStruct((1, d), jnp.float32),
        scratch_shapes=[pltpu.VMEM((2, rows, d), x.dtype), pltpu.SemaphoreType.DMA((2,))],
    )(x)
