import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def rms_norm(x, scale):
    x32 = x.astype(jnp.float32)
    inverse = jax.lax.rsqrt(jnp.mean(x32 * x32, axis=-1, keepdims=True) + 1e-5)
    return (x32 * inverse).astype(x.dtype) * scale


# kernelwright: x=bf16[2,2048,4096] scale=bf16[4096] w_gate=bf16[4096,14336] w_up=bf16[4096,14336]
def gated(x, scale, w_gate, w_up):
    """The first half of a LLaMA feed-forward block."""
    if _gated_takes(x, scale, w_gate, w_up):
        return _gated_lifted(x, scale, w_gate, w_up)
    return gated_plain(x, scale, w_gate, w_up)


def gated_plain(x, scale, w_gate, w_up):
    """`gated` in plain JAX: for what its kernels do not take, and for derivatives."""
    h = rms_norm(x, scale)
    gate = h @ w_gate
    up = h @ w_up
    return jax.nn.silu(gate) * up


def _gated_takes(x, scale, w_gate, w_up):
    """Whether the kernels were made for these arguments; the plain form takes all others."""
    return (
        x.ndim == 3 and x.dtype == jnp.bfloat16
        and scale.ndim == 1 and scale.dtype == jnp.bfloat16
        and scale.shape[-1] == x.shape[-1]
        and w_gate.ndim == 2 and w_gate.dtype == jnp.bfloat16
        and w_gate.shape[0] == x.shape[-1]
        and w_up.ndim == 2 and w_up.dtype == jnp.bfloat16
        and w_up.shape[0] == x.shape[-1]
        and w_up.shape[1] == w_gate.shape[1]
        and x.size > 0
    )


@jax.custom_jvp
def _gated_lifted(x, scale, w_gate, w_up):
    return _gated_call(x, scale, w_gate, w_up)


@_gated_lifted.defjvp
def _gated_jvp(primals, tangents):
    """Derivatives are those of the plain form: there is no backward kernel."""
    return _gated_lifted(*primals), jax.jvp(gated_plain, primals, tangents)[1]


def _gated_kernel(x_ref, scale_ref, w_gate_ref, w_up_ref, o_ref, scaled_ref):
    """scaled (block_m, k) is computed at the first block of columns and kept for the others;
    each gives (block_m, block_n).
    """

    @pl.when(pl.program_id(1) == 0)
    def _():
        x = x_ref[...].astype(jnp.float32)
        scale = scale_ref[...].astype(jnp.float32)
        mean = jnp.mean(x * x, axis=1, keepdims=True)
        inverse = jax.lax.rsqrt(mean + 1e-05)
        scaled_ref[...] = (x * inverse * scale).astype(scaled_ref.dtype)

    scaled = scaled_ref[...]
    gate = jnp.dot(scaled, w_gate_ref[...], preferred_element_type=jnp.float32)
    up = jnp.dot(scaled, w_up_ref[...], preferred_element_type=jnp.float32)
    o_ref[...] = (gate * jax.nn.sigmoid(gate) * up).astype(o_ref.dtype)


def _gated_call(x, scale, w_gate, w_up, block_m=512, block_n=512):
    """x (…, k), scale (k,), w_gate (k, n), w_up (k, n) -> (…, n). A block of rows has all
    of k; partial blocks of rows and columns store only what exists.
    """
    k, n = w_gate.shape
    m = x.size // x.shape[-1]
    block_m, block_n = min(block_m, m), min(block_n, n)
    out = pl.pallas_call(
        _gated_kernel,
        grid=(pl.cdiv(m, block_m), pl.cdiv(n, block_n)),
        in_specs=[
            pl.BlockSpec((block_m, k), lambda i, j: (i, 0)),  # x
            pl.BlockSpec((1, k), lambda i, j: (0, 0)),  # scale
            pl.BlockSpec((k, block_n), lambda i, j: (0, j)),  # w_gate
            pl.BlockSpec((k, block_n), lambda i, j: (0, j)),  # w_up
        ],
        out_specs=pl.BlockSpec((block_m, block_n), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((block_m, k), jnp.bfloat16)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "arbitrary"), vmem_limit_bytes=50 << 20
        ),
        name="gated",
    )(x.reshape(m, k), scale.reshape(1, k), w_gate, w_up)
    return out.reshape(*x.shape[:-1], n)


def loss(x, scale, w_gate, w_up):
    return jnp.sum(gated(x, scale, w_gate, w_up))
