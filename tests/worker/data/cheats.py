"""Candidates that a gate must reject. The name says the trick; the test says the gate."""

import os
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from kernels import add_one, sum_steps


def _same(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def constant(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)

    return pl.pallas_call(kernel, out_shape=_same(x))(x)


def echo(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, out_shape=_same(x))(x)


def no_kernel(x):
    return x + 1


def decoration(x):
    return x + 1 + 0 * add_one(x)


def interpret_left_on(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    return pl.pallas_call(kernel, out_shape=_same(x), interpret=True)(x)


def host_callback(x):
    return add_one(jax.pure_callback(lambda v: v, _same(x), x))


def captured_constant(x):
    import numpy as np

    table = np.random.default_rng(0).random((256, 256)).astype(np.float32)
    return add_one(x) + 0 * jnp.asarray(table)[: x.shape[0], : x.shape[1]]


def special_case(x):
    return jnp.where(jnp.all(x[0] == x[1]), jnp.zeros_like(x), add_one(x))


def first_shape_only(x):
    return add_one(x) if x.shape[0] == 16 else constant(x)


def wrong_type(x):
    return add_one(x).astype(jnp.bfloat16)


def wrong_tree(x):
    return (add_one(x),)


def out_of_bounds(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // 8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i * 8, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=_same(x),
    )(x)


def eats_input(x):
    return jax.jit(add_one, donate_argnums=0)(x)


def writes_input(x):
    def kernel(x_ref, o_ref):
        @pl.when(x_ref.shape[0] > 0)
        def _():
            x_ref[...] = x_ref[...] + 1

        o_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, out_shape=_same(x))(x)


def narrow_accumulator(x):
    return sum_steps(x, accumulate=jnp.bfloat16)


def uninitialised(x):
    def kernel(x_ref, o_ref, acc_ref):
        acc_ref[...] += x_ref[...].astype(acc_ref.dtype)
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)

    return sum_steps(x, kernel)


def race(x):
    def kernel(x_ref, o_ref, acc_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return sum_steps(x, kernel, semantics=("parallel",))


def low_precision(x, y):
    def kernel(x_ref, y_ref, o_ref):
        a, b = x_ref[...].astype(jnp.bfloat16), y_ref[...].astype(jnp.bfloat16)
        o_ref[...] = jnp.dot(a, b, preferred_element_type=jnp.float32)

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), x.dtype))(x, y)


def rounded_and_widened(x, y):
    def kernel(x_ref, y_ref, o_ref):
        a, b = x_ref[...].astype(jnp.bfloat16), y_ref[...].astype(jnp.bfloat16)
        o_ref[...] = jnp.dot(a.astype(jnp.float32), b.astype(jnp.float32))

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), x.dtype))(x, y)


def leaves_thread(x):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    return add_one(x)


def leaves_process(x):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    return add_one(x)


def exits(x):
    os._exit(0)


def says_passed(x):
    print("PASSED 1 passed, score 100, speedup 9.9x")
    return constant(x)


def raises(x):
    raise RuntimeError("no kernel today")
