"""The other commands: runs, doctor, help; and what every JSON object has."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from harness import RESULT, USAGE, Kernelwright

INPUTS = ("--inputs", "x=bf16[8192,1024]", "--max-compiles", "5")


@pytest.fixture(scope="module")
def finished(shared: Kernelwright, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    source = pathlib.Path(__file__).parents[2] / "examples" / "softmax.py"
    path = tmp_path_factory.mktemp("project") / "softmax.py"
    path.write_bytes(source.read_bytes())
    return shared.optimize(f"{path}::softmax", *INPUTS, command="tune").expect(RESULT).json


def test_results_of_one_chip_are_repeated_at_top_level(finished: dict[str, Any]) -> None:
    assert finished["schema_version"] == 1
    (only,) = finished["results"]
    for name, value in only.items():
        assert finished[name] == value


def test_second_run_compiles_nothing_again(shared: Kernelwright, finished: dict[str, Any]) -> None:
    again = shared.optimize(f"{finished['file']}::softmax", *INPUTS, command="tune").expect(RESULT).json
    assert again["run"] != finished["run"]
    # A compile that failed is tried again: what was missing, memory say, may be there now.
    assert all(row["compile_cached"] for row in again["candidates"] if row["gate"] != "G23")
    assert again["best"]["diff"] == finished["best"]["diff"]
    assert again["best"]["estimate_ms"] == finished["best"]["estimate_ms"]


def test_applied_result_has_nothing_left_to_gain(
    shared: Kernelwright, finished: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "softmax.py"
    path.write_text(finished["best"]["edits"][0]["new_text"])
    tuned = shared.optimize(f"{path}::softmax", *INPUTS, command="tune").expect(RESULT).json
    assert tuned["original"]["estimate_ms"] == pytest.approx(finished["best"]["estimate_ms"], rel=1e-3)
    assert tuned["status"] == "no_improvement" or tuned["speedup"] < 1.1


def test_runs_list_and_show(shared: Kernelwright, finished: dict[str, Any]) -> None:
    runs = shared.run("runs", "list", "--json").expect(RESULT).json["runs"]
    (mine,) = [r for r in runs if r["run"] == finished["run"]]
    assert mine["status"] == finished["status"]
    shown = shared.run("runs", "show", finished["run"], "--json").expect(RESULT).json
    assert shown["best"]["diff"] == finished["best"]["diff"]
    prefix = shared.run("runs", "show", finished["run"][:-2], "--json")
    prefix.expect(RESULT, USAGE)


def test_runs_export_is_one_json_document(shared: Kernelwright, finished: dict[str, Any]) -> None:
    exported = shared.run("runs", "export", finished["run"]).expect(RESULT).json
    kinds = [event["kind"] for event in exported["events"]]
    assert "run_started" in kinds
    assert kinds[-1] == "run_finished"


def test_runs_watch_of_a_finished_run_ends(shared: Kernelwright, finished: dict[str, Any]) -> None:
    shared.run("runs", "watch", finished["run"], limit=30).expect(RESULT)


def test_runs_show_of_an_unknown_run(shared: Kernelwright) -> None:
    shared.run("runs", "show", "no-such-run").expect(USAGE).says("no-such-run", "runs list")


def test_runs_prune_keeps_the_newest(kw: Kernelwright, workspace: pathlib.Path) -> None:
    kw.run("runs", "prune").expect(USAGE).says("--older-than", "--keep")
    runs = [kw.optimize(f"{workspace}/softmax.py::absent").expect(USAGE).json["run"] for _ in range(2)]
    dry = kw.run("runs", "prune", "--keep", "1", "--dry-run", "--json").expect(RESULT).json
    assert dry["runs"] == 1
    assert kw.run("runs", "prune", "--keep", "1", "--json").expect(RESULT).json["runs"] == 1
    left = kw.run("runs", "list", "--json").expect(RESULT).json["runs"]
    assert [run["run"] for run in left] == runs[1:]


def test_doctor_finds_every_chip_and_a_sandbox(shared: Kernelwright) -> None:
    items = {i["name"]: i for i in shared.run("doctor", "--json").expect(RESULT).json["items"]}
    for chip in ("v5e", "v5p", "v6e", "tpu7x"):
        assert items[f"chip {chip}"]["status"] == "ok"
    assert items["sandbox"]["status"] in ("ok", "warning")
    assert items["jax"]["value"]


def test_doctor_without_an_environment_names_the_remedy(kw: Kernelwright, tmp_path: pathlib.Path) -> None:
    result = kw.run("doctor", env={"KERNELWRIGHT_HOME": str(tmp_path / "nothing")}).expect(3)
    result.says("scripts/setup")


@pytest.mark.parametrize("command", ["optimize", "tune", "serve", "doctor", "runs"])
def test_help_has_an_example(shared: Kernelwright, command: str) -> None:
    result = shared.run(command, "--help").expect(RESULT)
    assert f"kernelwright {command}" in result.out


def test_version_names_the_build(shared: Kernelwright) -> None:
    assert "build" in shared.run("version").expect(RESULT).out


def test_human_output_goes_without_control_codes_into_a_pipe(
    shared: Kernelwright, finished: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "softmax.py"
    path.write_bytes((pathlib.Path(__file__).parents[2] / "examples" / "softmax.py").read_bytes())
    result = shared.run("tune", f"{path}::softmax", *INPUTS, "--chip", "v5e", "--diff").expect(RESULT)
    assert "\x1b" not in result.text
    assert "\r" not in result.text
    result.says("estimated", "v5e", "+++ ")
