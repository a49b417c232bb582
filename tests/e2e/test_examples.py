"""The shipped examples, and the kernels that come with jax, through the command line."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from harness import RESULT, USER_CODE, Kernelwright

STATUSES = ("improved", "no_improvement", "failed")
# Takes seconds: for tests of something else than the numbers.
SMALL = ("--inputs", "x=bf16[8192,1024]", "--max-compiles", "5")
full = pytest.mark.full


def assert_improved(result: dict[str, Any]) -> None:
    assert result["status"] == "improved"
    assert result["speedup"] >= 1.02
    assert result["verdict"] in ("faster", "probably")
    assert result["evidence"]["class"] == "estimated"


@pytest.mark.parametrize(("file", "function"), [("rms_norm.py", "rms_norm"), ("softmax.py", "softmax")])
def test_norms_with_few_rows(shared: Kernelwright, workspace: pathlib.Path, file: str, function: str) -> None:
    assert_improved(shared.optimize(f"{workspace}/{file}::{function}").expect(RESULT).json)


def test_literals_in_many_places_change_together(shared: Kernelwright, workspace: pathlib.Path) -> None:
    target = f"{workspace}/matmul_gelu.py::mlp_up"
    result = shared.optimize(target, "--max-compiles", "5").expect(RESULT).json
    assert_improved(result)
    (edit,) = result["best"]["edits"]
    best = edit["new_text"]
    compile(best, "best.py", "exec")
    # Comments beside the specs stay where they were.
    for comment in ("# x", "# w", "# b"):
        assert comment in best


@full
def test_fused_matmul_with_all_compiles(shared: Kernelwright, workspace: pathlib.Path) -> None:
    assert_improved(shared.optimize(f"{workspace}/matmul_gelu.py::mlp_up").expect(RESULT).json)


def test_what_cannot_be_improved_is_said_to_be_so(shared: Kernelwright, workspace: pathlib.Path) -> None:
    result = shared.optimize(f"{workspace}/already_good.py::scaled_add").expect(RESULT)
    assert result.json["status"] == "no_improvement"
    assert result.json["candidates"], "what was tried is listed"


def test_broken_kernel_names_line_cause_and_fix(shared: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / "broken.py"
    before = path.read_bytes()
    result = shared.optimize(f"{path}::double", "--apply").expect(USER_CODE)
    result.says("broken.py", "divisible by 8 and 128")
    assert path.read_bytes() == before


def test_function_may_be_left_out_when_there_is_one(shared: Kernelwright, workspace: pathlib.Path) -> None:
    named = shared.optimize(f"{workspace}/softmax.py::softmax", *SMALL, command="tune").expect(RESULT).json
    alone = shared.optimize(f"{workspace}/softmax.py", *SMALL, command="tune").expect(RESULT).json
    assert alone["best"]["diff"] == named["best"]["diff"]


def test_in_process_gives_what_the_daemon_gives(kw: Kernelwright, workspace: pathlib.Path) -> None:
    target = f"{workspace}/softmax.py::softmax"
    alone = kw.optimize(target, *SMALL, "--in-process", command="tune").expect(RESULT).json
    assert kw.daemon_pid() is None, "--in-process starts no daemon"
    served = kw.optimize(target, *SMALL, command="tune").expect(RESULT).json
    assert served["compiles_cached"] > 0, "both share one cache"
    assert served["best"]["diff"] == alone["best"]["diff"]
    assert served["best"]["estimate_ms"] == alone["best"]["estimate_ms"]


@pytest.mark.parametrize(
    ("file", "function"),
    [
        ("matmul.py", "matmul"),
        pytest.param("flash_attention.py", "attention", marks=full),
        pytest.param("grouped_matmul.py", "experts", marks=full),
        pytest.param("paged_attention.py", "decode", marks=full),
        pytest.param("splash_attention.py", "attention", marks=full),
    ],
)
def test_kernels_that_ship_with_jax(
    shared: Kernelwright, workspace: pathlib.Path, file: str, function: str
) -> None:
    path = workspace / "library" / file
    result = shared.optimize(f"{path}::{function}", command="tune", limit=1200).expect(RESULT, USER_CODE).json
    assert result["status"] in STATUSES
    if result["status"] == "improved":
        assert result["best"]["diff"].count("\n@@") <= 4
        assert result["speedup"] >= 1.02
    else:
        assert result["message"], "a stated outcome, not a silent one"
