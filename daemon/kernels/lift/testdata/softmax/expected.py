import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


# kernelwright: logits=f32[2048,32768] temperature=f32[]
def softmax(logits, temperature):
    if _softmax_takes(logits, temperature):
        return _softmax_lifted(logits, temperature)
    return softmax_plain(logits, temperature)


def softmax_plain(logits, temperature):
    """`softmax` in plain JAX: for what its kernels do not take, and for derivatives."""
    return jax.nn.softmax(logits / temperature, axis=-1)


def _softmax_takes(logits, temperature):
    """Whether the kernels were made for these arguments; the plain form takes all others."""
    return (
        logits.ndim == 2 and logits.dtype == jnp.float32
        and jnp.ndim(temperature) == 0 and getattr(temperature, "dtype", None) == jnp.float32
        and logits.size > 0
    )


@jax.custom_jvp
def _softmax_lifted(logits, temperature):
    return _softmax_call(logits, temperature)


@_softmax_lifted.defjvp
def _softmax_jvp(primals, tangents):
    """Derivatives are those of the plain form: there is no backward kernel."""
    return _softmax_lifted(*primals), jax.jvp(softmax_plain, primals, tangents)[1]


def _softmax_kernel(logits_ref, temperature_ref, o_ref):
    """A block of whole rows: logits (block_rows, d), temperature (1, 1) -> o (block_rows, d)."""
    logits = logits_ref[...]
    temperature = temperature_ref[...]
    quotient = logits / temperature
    top = jnp.max(quotient, axis=1, keepdims=True)
    e = jnp.exp(quotient - top)
    total = jnp.sum(e, axis=1, keepdims=True)
    o_ref[...] = e / total


def _softmax_call(logits, temperature, block_rows=16):
    """logits (…, d), temperature () -> (…, d). Rows do not depend on each other, so that
    the last block may be partial.
    """
    d = logits.shape[-1]
    rows = logits.size // d
    block_rows = min(block_rows, rows)
    out = pl.pallas_call(
        _softmax_kernel,
        grid=(pl.cdiv(rows, block_rows),),
        in_specs=[
            pl.BlockSpec((block_rows, d), lambda i: (i, 0)),  # logits
            pl.BlockSpec((1, 1), lambda i: (0, 0)),  # temperature
        ],
        out_specs=pl.BlockSpec((block_rows, d), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((rows, d), logits.dtype),
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel",), vmem_limit_bytes=20 << 20
        ),
        name="softmax",
    )(logits.reshape(rows, d), temperature.reshape(1, 1))
    return out.reshape(logits.shape)
