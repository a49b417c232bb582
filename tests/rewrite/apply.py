"""Traces a function as the daemon does, and applies rewrite rules to its source with kw_rewrite_tool."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format
from worker.client import Outcome, Worker, array, source, trace_job

TOP = pathlib.Path(__file__).resolve().parents[2]
KERNELS = pathlib.Path(__file__).resolve().parent / "kernels"
BUILD = pathlib.Path(os.environ.get("KW_BUILD", TOP / "build"))
TOOL = BUILD / "kw_rewrite_tool"
SHORT = {"bf16": "bfloat16", "f32": "float32", "i8": "int8", "i32": "int32"}


def inputs_of(text: str) -> list[Any]:
    """Input specs of `x=bf16[8,128] y=…`, as in an inputs comment."""
    specs = []
    for item in text.split():
        name, _, form = item.partition("=")
        dtype, _, dims = form.partition("[")
        specs.append(array(name, SHORT[dtype], *map(int, dims.rstrip("]").split(","))))
    return specs


def comment_of(path: pathlib.Path, function: str) -> str:
    """The inputs comment above a function."""
    lines = path.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"def {function}("))
    marker = "# kernelwright:"
    assert lines[at - 1].startswith(marker), f"{path}: {function} has no inputs comment"
    return lines[at - 1][len(marker) :].strip()


@dataclass
class Answer:
    """What the rules say about one function."""

    proposals: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)

    def of(self, rule: str) -> list[dict[str, Any]]:
        return [p for p in self.proposals if p["rule"] == rule]

    def reason(self, rule: str) -> str:
        return next((str(r["reason"]) for r in self.refusals if r["rule"] == rule), "")


def graph_of(worker: Worker, path: pathlib.Path, function: str, inputs: str, chip: str) -> dict[str, Any]:
    """The program graph of a function at these inputs, in the JSON form of ir.proto."""
    found = worker.run(trace_job(source(path, function), *inputs_of(inputs), chips=(chip,)))
    assert found.outcome == Outcome.DONE, found.detail
    assert not found.trace.HasField("error"), found.trace.error
    message: dict[str, Any] = json_format.MessageToDict(found.trace.program, preserving_proto_field_name=True)
    main: dict[str, Any] = message["main"]
    return main


def ask(
    graph: dict[str, Any], path: pathlib.Path, function: str, chip: str, allowed: str = "reassociation"
) -> Answer:
    """All proposals and refusals for a traced function."""
    run = subprocess.run(
        [TOOL, TOP / "agents" / "chips.json", chip, allowed, path, function],
        input=json.dumps(graph),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return Answer(**json.loads(run.stdout))
