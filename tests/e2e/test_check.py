"""check: diagnostics at the right line, over unsaved text too, through the daemon and the real compiler."""

from __future__ import annotations

import pathlib

from harness import RESULT, USER_CODE, Kernelwright


def test_bad_block_is_marked_at_its_spec(shared: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / "broken.py"
    found = shared.run("check", str(path), "--chip", "all", "--no-fixes", "--json").expect(USER_CODE).json
    (only,) = [d for d in found["diagnostics"] if d["severity"] == "error"]
    assert only["id"] == "D01"
    assert only["chips"] == ["v5e", "v5p", "v6e", "tpu7x"]
    assert "BlockSpec" in path.read_text().splitlines()[only["line"] - 1]


WRONG_TYPE = """import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...].astype(jnp.float32) * 2


# kernelwright: x=bf16[16,128]
def double(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""


def test_fix_is_proven_and_written(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "double.py"
    path.write_text(WRONG_TYPE)
    found = shared.run("check", str(path), "--chip", "v6e", "--json").expect(USER_CODE).json
    (only,) = found["diagnostics"]
    assert (only["id"], only["line"]) == ("D53", 7)
    assert only["fixes"][0]["verified"] == ["v6e"]
    shared.run("check", str(path), "--chip", "v6e", "--fix").expect(RESULT)
    assert "astype(o_ref.dtype)" in path.read_text()


def test_fix_that_does_not_hold_is_not_offered(shared: Kernelwright, workspace: pathlib.Path) -> None:
    # The rounded block would need another grid than the one that is written there.
    path = workspace / "broken.py"
    before = path.read_text()
    shared.run("check", str(path), "--chip", "v6e", "--fix").expect(USER_CODE)
    assert path.read_text() == before


def test_broken_syntax_needs_no_worker(shared: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / "softmax.py"
    path.write_text(path.read_text() + "\ndef f(:\n")
    found = shared.run("check", str(path), "--json").expect(USER_CODE).json
    assert {stage["stage"] for stage in found["stages"]} == {"syntax"}
    assert found["diagnostics"][0]["id"] == "D900"


def test_clean_example_has_no_error(shared: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / "softmax.py"
    found = shared.run("check", str(path), "--chip", "all", "--no-semantics", "--json").expect(RESULT).json
    assert [d for d in found["diagnostics"] if d["severity"] == "error"] == []
    assert {r["status"] for r in found["results"]} == {"clean"}
