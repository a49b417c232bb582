"""The templates in the notes compute what they say; run in the interpreter, in a process that has jax."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

from harness import TOP, data_folder

PREAMBLE = """
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
"""

CHECK = """
import numpy as np
draw = np.random.default_rng(0).standard_normal
left, right = jnp.asarray(draw((256, 256)), jnp.float32), jnp.asarray(draw((256, 128)), jnp.float32)
got = product(left, right, bm=128, bn=128, bk=128, interpret=True)
assert np.allclose(got, left @ right, atol=1e-3), "product"
gain = jnp.asarray(draw(256), jnp.float32)
root = jnp.sqrt(jnp.mean(left * left, axis=1, keepdims=True) + 1e-6)
got = norm_rows(left[:200], gain, rows=64, interpret=True)
assert np.allclose(got, (left / root * gain)[:200], atol=1e-4), "norm"
table = jnp.asarray([3, 0, 5], jnp.int32)
rows = np.concatenate([np.arange(8) + 8 * int(i) for i in table])
assert np.array_equal(pick_blocks(table, left, interpret=True), left[rows]), "pick_blocks"
largest, total = softmax_statistics(left, rows=128, columns=128, interpret=True)
assert np.allclose(largest[:, 0], left.max(axis=1)), "softmax maximum"
want = jnp.exp(left - left.max(axis=1, keepdims=True)).sum(axis=1)
assert np.allclose(total[:, 0], want, rtol=1e-4), "softmax sum"
"""


def test_templates_are_right(tmp_path: pathlib.Path) -> None:
    text = (TOP / "agents" / "knowledge" / "templates.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == text.count("```python") == 4
    script = tmp_path / "templates.py"
    script.write_text(PREAMBLE + "\n".join(blocks) + CHECK)
    python = pathlib.Path(os.environ.get("KW_PYTHON_ENV", data_folder() / "python")) / "bin" / "python"
    done = subprocess.run(
        [str(python), str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
