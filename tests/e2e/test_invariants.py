"""Invariants of docs/architecture.md that only the whole program can break."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest
from harness import RESULT, Kernelwright

SMALL = ("--inputs", "x=bf16[8192,1024]", "--max-compiles", "3")
SECRET = "sk-" + "7Hq2" * 10


def _can_leave_the_network() -> bool:
    return subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not _can_leave_the_network(), reason="needs the right to make a network namespace")
def test_offline_no_network_key_or_tpu(kw: Kernelwright, workspace: pathlib.Path) -> None:
    # A new network namespace has not even a loopback interface that is up.
    target = f"{workspace}/softmax.py::softmax"
    result = kw.optimize(target, *SMALL, command="tune", before=["unshare", "--net"]).expect(RESULT)
    assert result.json["status"] == "improved"
    assert result.json["evidence"]["class"] == "estimated"


def test_private_results_what_the_code_prints_is_a_log(kw: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / "softmax.py"
    honest = kw.optimize(f"{path}::softmax", *SMALL, command="tune").expect(RESULT).json
    boast = '{"status": "improved", "speedup": 1000, "verdict": "faster"}'
    boasts = f"print('{boast}', flush=True)\nprint('PASSED', file=sys.stderr)\n"
    path.write_text(path.read_text() + "\n\nimport sys\n\n" + boasts)
    result = kw.optimize(f"{path}::softmax", *SMALL, command="tune").expect(RESULT).json
    assert result["speedup"] == honest["speedup"]
    assert result["original"]["estimate_ms"] == honest["original"]["estimate_ms"]


def test_no_keys_on_disk_or_in_a_candidate(kw: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / "softmax.py"
    path.write_text(path.read_text() + "\n\nimport os\n\nprint(dict(os.environ), flush=True)\n")
    keys = {"GEMINI_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET}
    result = kw.optimize(f"{path}::softmax", *SMALL, command="tune", env=keys).expect(RESULT)
    assert SECRET not in result.text
    for folder, _, names in os.walk(kw.home):
        for name in names:
            file = pathlib.Path(folder) / name
            if file.is_file() and not file.is_socket():
                assert SECRET.encode() not in file.read_bytes(), f"a key is in {file}"


def test_evidence_class_is_beside_every_estimate(kw: Kernelwright, workspace: pathlib.Path) -> None:
    target = f"{workspace}/softmax.py::softmax"
    result = kw.optimize(target, *SMALL, command="tune").expect(RESULT).json
    for part in (result["original"], result["best"]):
        evidence = part["evidence"]
        assert evidence["class"] == "estimated"
        assert evidence["chip"] == "v5e"
        assert {"jax", "jaxlib", "libtpu"} <= set(evidence["versions"])
        assert evidence["interval"][0] <= part["estimate_ms"] <= evidence["interval"][1]
    shown = kw.run("runs", "show", result["run"]).expect(RESULT).out
    for line in shown.splitlines():
        if "faster" in line:
            assert "(estimated)" in line
