"""Kernels made from plain JAX, through the command line: better, tie or kept, never wrong."""

from __future__ import annotations

import pathlib
import random
import subprocess
import textwrap
from typing import Any

import pytest
from harness import RESULT, Kernelwright, data_folder

full = pytest.mark.full
RANDOM_DEFAULT = 2
RANDOM_FULL = 100
# Enough to see the whole way; few enough for two cores.
FEW = ("--max-compiles", "4")

NORM = """\
import jax
import jax.numpy as jnp


# kernelwright: x=bf16[4,1024,1024] w=bf16[1024]
@jax.jit
def rms_norm(x, w, eps=1e-6):
    \"\"\"Scales rows to unit root mean square.\"\"\"
    x32 = x.astype(jnp.float32)
    mean_square = jnp.mean(x32 * x32, axis=-1, keepdims=True)
    return (x32 * jax.lax.rsqrt(mean_square + eps)).astype(x.dtype) * w
"""


def outcome(result: dict[str, Any]) -> str:
    """Better, tie or kept: what a run on a function of ours may end with."""
    assert result["status"] in ("improved", "no_improvement"), result["message"]
    if result["status"] == "improved":
        assert result["speedup"] >= 1.02
        assert result["best"]["rules"], "a function without kernels gets one by a rule"
        assert all(g["status"] == "pass" for g in result["best"]["gates"])
        return "better"
    assert result["best"] is None
    assert result["message"]
    return "tie" if result["verdict"] == "tie" else "kept"


def new_text(result: dict[str, Any], path: pathlib.Path) -> str:
    (edit,) = [e for e in result["best"]["edits"] if e["file"] == str(path)]
    return str(edit["new_text"])


def test_norm_is_lifted_and_says_what_it_found(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "norm.py"
    path.write_text(NORM)
    result = shared.optimize(f"{path}::rms_norm", *FEW).expect(RESULT).json
    outcome(result)
    (found,) = result["recognised"]
    assert found["rule"] == "lift-rows"
    assert found["exactness"] == "reassociation"
    assert found["line"] == 7
    if result["original"]["estimate_ms"] is not None:  # else there is nothing to compare with, and it says so
        assert any(step["title"] == found["what"] for step in result["plan"])
        assert any("lift" in row["what"] for row in result["candidates"])
    assert path.read_text() == NORM, "a run never writes the user's file"


def test_what_cannot_be_lifted_names_line_and_reason(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "scan.py"
    path.write_text(
        textwrap.dedent("""\
        import jax


        # kernelwright: x=f32[64,128]
        def running(x):
            return jax.lax.scan(lambda c, row: (c + row, c), x[0], x)[1]
        """)
    )
    result = shared.optimize(f"{path}::running").expect(RESULT).json
    assert outcome(result) == "kept"
    refusal = result["not_recognised"][0]
    assert refusal["line"] == 6
    assert "line 6" in result["message"]


@full
def test_kernels_go_into_a_module_when_asked(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "norm.py"
    path.write_text(NORM.replace("4,1024,1024", "4,1024,8192").replace("[1024]", "[8192]"))
    result = shared.optimize(f"{path}::rms_norm", *FEW, "--lift-into", "module", "--apply").expect(RESULT).json
    if outcome(result) != "better":
        pytest.skip("nothing to apply")
    module = tmp_path / "rms_norm_kernels.py"
    assert "pallas_call" in module.read_text()
    assert "pallas_call" not in path.read_text()
    assert "from rms_norm_kernels import" in path.read_text()


# ---- random programs


class RandomProgram:
    """A function made of the operations that a lift knows, in an order that nobody chose."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        choice = self._random.choice
        self._dtype = choice(["f32", "bf16"])
        self._rows = choice([(256,), (1000,), (3, 333), (2, 128)])
        self._width = choice([128, 256, 300, 640])
        self._lines: list[str] = []
        self._inputs = {"x": [*self._rows, self._width]}
        for step in range(self._random.randint(2, 5)):
            self._step(step)

    def _vector(self, width: int) -> str:
        name = f"v{len(self._inputs)}"
        self._inputs[name] = [width]
        return name

    def _step(self, step: int) -> None:
        width = self._width
        kind = self._random.choice(
            ["norm", "layer", "softmax", "act", "bias", "residual", "scale", "matmul", "gate", "where"]
        )
        if kind in ("matmul", "gate") and sum(len(s) == 2 and n[0] == "w" for n, s in self._inputs.items()) > 2:
            kind = "act"
        add = self._lines.append
        if kind == "norm":
            add("ms = jnp.mean(jnp.square(h), axis=-1, keepdims=True)")
            add(f"h = h * jax.lax.rsqrt(ms + 1e-5) * {self._vector(width)}")
        elif kind == "layer":
            add("m = jnp.mean(h, axis=-1, keepdims=True)")
            add("h = (h - m) / jnp.sqrt(jnp.var(h, axis=-1, keepdims=True) + 1e-5)")
        elif kind == "softmax":
            add("h = jax.nn.softmax(h, axis=-1)")
        elif kind == "act":
            function = self._random.choice(["nn.silu", "nn.gelu", "nn.relu", "nn.sigmoid", "numpy.tanh"])
            add(f"h = jax.{function}(h)")
        elif kind == "bias":
            add(f"h = h + {self._vector(width)}")
        elif kind == "scale":
            add(f"h = h * {self._random.choice(['0.5', '1.25', '2'])}")
        elif kind == "where":
            add("h = jnp.where(h > 0, h, 0.1 * h)")
        elif kind == "residual":
            name = f"r{len(self._inputs)}"
            self._inputs[name] = [*self._rows, width]
            add(f"h = h + {name}")
        else:
            self._width = self._random.choice([128, 256, 384])
            for _ in range(1 if kind == "matmul" else 2):
                self._inputs[f"w{len(self._inputs)}"] = [width, self._width]
            weights = list(self._inputs)[-1 if kind == "matmul" else -2 :]
            add(f"h = h @ {weights[0]}" if kind == "matmul" else f"h = jax.nn.silu(h @ {weights[0]}) * (h @ {weights[1]})")

    def text(self) -> str:
        comment = " ".join(f"{n}={self._dtype}[{','.join(map(str, s))}]" for n, s in self._inputs.items())
        body = "\n    ".join(["h = x", *self._lines, "return h"])
        return (
            f"import jax\nimport jax.numpy as jnp\n\n\n# kernelwright: {comment}\n"
            f"def program({', '.join(self._inputs)}):\n    {body}\n"
        )


GRADIENTS = """\
import importlib.util, re, sys
import jax, jax.numpy as jnp, numpy as np
from jax.experimental.pallas import tpu as pltpu
spec = importlib.util.spec_from_file_location("lifted", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
types = {"f32": jnp.float32, "bf16": jnp.bfloat16}
source = open(sys.argv[1]).read()
draw = np.random.default_rng(1)
arguments = []
for name, kind, dims in re.findall(r"(\\w+)=(\\w+)\\[([\\d,]*)\\]", re.search("# kernelwright: (.*)", source)[1]):
    shape = [int(d) for d in dims.split(",")]
    scale = shape[0] ** -0.5 if name[0] == "w" else 1.0
    arguments.append(jnp.asarray(draw.normal(size=shape) * scale, types[kind]))
weight = jnp.asarray(draw.normal(size=module.program_plain(*arguments).shape), jnp.float32)

def gradient(function):
    loss = lambda *a: jnp.sum(function(*a).astype(jnp.float32) * weight)
    return jax.grad(loss, argnums=tuple(range(len(arguments))))(*arguments)

with pltpu.force_tpu_interpret_mode():
    batched = jax.vmap(lambda x: module.program(x, *arguments[1:]))(jnp.stack([arguments[0]] * 2))
    assert batched.shape == (2, *weight.shape)
    lifted = gradient(module.program)
for ours, theirs in zip(lifted, gradient(module.program_plain)):
    np.testing.assert_allclose(np.asarray(ours, np.float32), np.asarray(theirs, np.float32), rtol=1e-5, atol=1e-6)
"""


def assert_same_gradients(path: pathlib.Path) -> None:
    """The loss is linear in the result, so that gradients do not depend on how the result was rounded."""
    python = data_folder() / "python" / "bin" / "python"
    done = subprocess.run(
        [str(python), "-c", GRADIENTS, str(path)],
        env={"JAX_PLATFORMS": "cpu", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def _random_cases() -> list[Any]:
    return [pytest.param(n, marks=full) if n >= RANDOM_DEFAULT else n for n in range(RANDOM_FULL)]


@pytest.mark.parametrize("seed", _random_cases())
def test_random_programs_are_better_tie_or_kept(
    shared: Kernelwright, tmp_path: pathlib.Path, seed: int
) -> None:
    path = tmp_path / "program.py"
    text = RandomProgram(seed).text()
    path.write_text(text)
    result = shared.optimize(f"{path}::program", "--max-compiles", "3").expect(RESULT).json
    verdict = outcome(result)
    for row in result["candidates"]:
        assert row["gate"] not in ("G31", "G43", "G45"), f"a lift that is wrong: {row}\n{text}"
    if verdict == "better":
        path.write_text(new_text(result, path))
        assert_same_gradients(path)


# ---- the showcase


@full
@pytest.mark.parametrize("chip", ["v5e", "v5p", "v6e", "tpu7x"])
@pytest.mark.parametrize(
    ("file", "function"), [("softmax.py", "softmax"), ("llama_mlp.py", "gated"), ("transformer_mlp.py", "mlp")]
)
def test_showcase(shared: Kernelwright, workspace: pathlib.Path, file: str, function: str, chip: str) -> None:
    target = f"{workspace}/plain/{file}::{function}"
    result = shared.optimize(target, "--chip", chip, limit=1800).expect(RESULT).json
    outcome(result)
    assert result["recognised"]
