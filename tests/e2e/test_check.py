"""check: diagnostics at the right line, over unsaved text too, through the daemon and the real compiler."""

from __future__ import annotations

import json
import pathlib
import signal

from harness import LIMIT, RESULT, USER_CODE, Kernelwright


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


def test_standard_input_stands_for_the_file(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    saved, unsaved = tmp_path / "double.py", tmp_path / "unsaved.txt"
    saved.write_text(WRONG_TYPE.replace("float32) * 2", "bfloat16) * 2"))
    unsaved.write_text(WRONG_TYPE)
    from_file = ["sh", "-c", f'exec "$0" "$@" < {unsaved}']
    shared.run("check", str(saved), "--chip", "v6e", "--no-fixes", "--json").expect(RESULT)
    arguments = ["check", str(saved), "--stdin", "--chip", "v6e", "--no-fixes", "--json"]
    found = shared.run(*arguments, before=from_file).expect(USER_CODE).json
    assert [(d["id"], d["line"]) for d in found["diagnostics"]] == [("D53", 7)]
    assert "bfloat16" in saved.read_text()


def code_cell(text: str) -> dict[str, object]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text}


def test_notebook_lines_are_those_of_the_cell(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    imports, _, rest = WRONG_TYPE.partition("\n\n\n")
    kernel, _, call = rest.partition("\n\n\n")
    title: dict[str, object] = {"cell_type": "markdown", "metadata": {}, "source": "# Doubling"}
    cells = [title, code_cell("%matplotlib inline\n" + imports), code_cell(kernel), code_cell(call)]
    path = tmp_path / "double.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    found = shared.run("check", str(path), "--chip", "v6e", "--json").expect(USER_CODE).json
    (only,) = found["diagnostics"]
    assert (only["id"], only["cell"], only["line"]) == ("D53", 3, 2)
    shared.run("check", str(path), "--chip", "v6e", "--fix").expect(RESULT)
    written = [cell["source"] for cell in json.loads(path.read_text())["cells"]]
    assert "astype(o_ref.dtype)" in written[2]
    assert [written[i] for i in (0, 1, 3)] == [cells[i]["source"] for i in (0, 1, 3)]
    shared.optimize(str(path)).says("notebooks can be checked but not optimized")


def test_interrupted_check_ends_its_jobs(shared: Kernelwright, workspace: pathlib.Path) -> None:
    process = shared.start("check", str(workspace / "softmax.py"), "--chip", "all", "--json")
    assert process.stderr is not None
    assert any("blocks" in line for line in iter(process.stderr.readline, ""))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == LIMIT
    assert json.loads(out)["error"]["kind"] == "cancelled"
    shared.run("check", str(workspace / "softmax.py"), "--no-semantics").expect(RESULT)
