"""The user's file is read-only, or changes while a run works on it: nothing is overwritten or lost.

Invariant VersionedEdit.
"""

from __future__ import annotations

import pathlib
import time

from harness import ENVIRONMENT, RESULT, USAGE, Kernelwright

TARGET = "softmax.py"
FUNCTION = "softmax"
# Small enough that a run takes seconds, large enough that the few rows per block cost something.
INPUTS = ("--inputs", "x=bf16[8192,1024]", "--max-compiles", "5")


def test_versioned_edit_read_only_file_keeps_the_result(kw: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / TARGET
    path.chmod(0o444)
    before = path.read_bytes()
    result = kw.optimize(f"{path}::{FUNCTION}", *INPUTS, "--apply", command="tune")
    result.expect(USAGE, ENVIRONMENT).says("read-only", TARGET, "runs show")
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o444
    # The best candidate is in the store, with its diff.
    shown = kw.run("runs", "show", result.json["run"], "--json").expect(RESULT).json
    assert shown["status"] == "improved"
    assert shown["best"]["diff"].startswith("--- ")


def test_versioned_edit_file_that_changed_meanwhile(kw: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / TARGET
    process = kw.start("tune", f"{path}::{FUNCTION}", *INPUTS, "--chip", "v5e", "--apply", "--json")
    kw.first_run()
    mine = path.read_text().replace("block_rows: int = 8", "block_rows: int = 16") + "\n# added by me\n"
    path.write_text(mine)
    out, err = process.communicate(timeout=300)
    # Our edit is on the very line that the user changed, so it cannot be merged.
    assert process.returncode == USAGE, out + err
    assert "changed" in out + err
    assert path.read_text() == mine, "the user's own change was overwritten"


def test_versioned_edit_apply_keeps_everything_else(kw: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / TARGET
    head = "def softmax(x, block_rows: int = 8):"
    text = path.read_text().replace(head, head + "  # rows ×")
    path.write_text(text, newline="\r\n")
    path.chmod(0o640)
    result = kw.optimize(f"{path}::{FUNCTION}", *INPUTS, "--apply", command="tune").expect(RESULT)
    assert result.json["status"] == "improved"
    old, new = text.split("\n"), path.read_bytes().decode().split("\r\n")
    changed = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    assert len(changed) == 1, "only the line with the block may change, line ends and comments kept"
    assert new[changed[0]].endswith("# rows ×")
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in workspace.iterdir() if p.name.startswith("softmax")) == [TARGET]


def test_no_improvement_does_not_touch_the_file(kw: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / "already_good.py"
    before = path.read_bytes(), path.stat().st_mtime_ns
    time.sleep(0.01)
    result = kw.optimize(f"{path}::scaled_add", "--apply").expect(RESULT)
    assert result.json["status"] == "no_improvement"
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
