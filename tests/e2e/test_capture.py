"""capture: the user's own program runs, and what it called a function with becomes that function's inputs."""

from __future__ import annotations

import json
import pathlib

from harness import ENVIRONMENT, RESULT, USER_CODE, Kernelwright, data_folder

PYTHON = str(data_folder() / "python" / "bin" / "python")  # has jax, as the user's own would

MODULE = """import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


@jax.jit
def double(p, ids, scale=1):
    x = p["x"]
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def never(x):
    return x
"""

PROGRAM = """import sys

import jax.numpy as jnp
from double import double

for rows in (16, 16, 32):
    try:
        double({"x": jnp.ones((rows, 128), jnp.bfloat16)}, jnp.arange(5, dtype=jnp.int32))
    except ValueError as error:  # there is no TPU here
        print(error)
print("the program's own output")
sys.exit(int(sys.argv[1]))
"""


def test_calls_become_inputs(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    (tmp_path / "double.py").write_text(MODULE)
    (tmp_path / "program.py").write_text(PROGRAM)
    target = f"{tmp_path / 'double.py'}::double"
    command = ["--", PYTHON, "program.py", "3"]
    captured = shared.run("capture", target, "--json", *command, cwd=tmp_path).expect(RESULT)
    captured.says("as you, outside the sandbox", "the program's own output", "exit code 3")
    assert captured.json["inputs"] == 'p["x"]=bf16[16,128] ids=i32[5]{0..4}'
    assert (captured.json["calls"], captured.json["values"]) == (2, 4)

    record = pathlib.Path(captured.json["record"])
    assert record.stat().st_mode & 0o077 == 0 or record.parent.stat().st_mode & 0o077 == 0
    assert {call["values"] for call in json.loads(record.read_text())["calls"]} == {
        f"{record.name}.new.1.npz",
        f"{record.name}.new.2.npz",
    }

    checked = shared.run("check", str(tmp_path / "double.py"), "--chip", "v5e", "--json").expect(RESULT).json
    (function,) = checked["functions"]
    assert function["inputs_origin"] == "capture"
    profiled = shared.run("profile", target, "--chip", "v5e", "--json").expect(RESULT).json
    assert profiled["inputs_origin"] == "capture"


def test_function_that_is_not_called_is_said(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    (tmp_path / "double.py").write_text(MODULE)
    target = f"{tmp_path / 'double.py'}::never"
    shared.run("capture", target, "--", PYTHON, "-c", "pass").expect(USER_CODE).says("never called never")
    shared.run("capture", target, "--", "no-such-program").expect(ENVIRONMENT).says("no-such-program")


def test_main_script_is_seen_too(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(
        "import jax.numpy as jnp\n\n\ndef f(x, n):\n    return x * n\n\n\nf(jnp.ones((8, 128)), 4)\n"
    )
    captured = shared.run("capture", f"{script}::f", "--json", "--", PYTHON, str(script)).expect(RESULT)
    assert captured.json["inputs"] == "x=f32[8,128] n=4"
