"""How soon `kernelwright check` answers after an edit, by stage; run by scripts/bench --check.

For each edit of a kernel the file gets a new number, so nothing comes from a cache. Measured in one run: the
daemon's call on one chip and on four, the same trace and compile straight from the worker's forked children,
and a fresh Python process.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests"), str(TOP / "agents" / "worker"), str(TOP / "build" / "python")]

from bench.bench import FRESH, KERNEL, record, spread  # noqa: E402
from harness import RESULT, Kernelwright, data_folder, private_installation  # noqa: E402
from kernelwright.v1 import worker_pb2  # noqa: E402
from worker.client import Worker, array, source, trace_job  # noqa: E402

ROWS, COLUMNS, EDITS = 2048, 1024, 6
LINT = ("syntax", "api", "blocks")


@dataclasses.dataclass
class Answer:
    """Milliseconds of one check. `lint`: of the stages that need no compile and no trace, their own time."""

    lint: float
    to_blocks: float  # from the start of the check to the verdict on blocks, the trace included
    first_compile: float
    last_compile: float


def edit(path: pathlib.Path, number: int) -> None:
    """Writes the next version of the file."""
    path.write_text(KERNEL.format(rows=ROWS, columns=COLUMNS, scale=1.25 + number))


def answer(result: dict[str, Any]) -> Answer:
    """Times of a check from what it prints."""
    stages = result["stages"]
    compiles = [s["at_ms"] for s in stages if s["stage"] == "compile"]
    assert compiles and not any(s["cached"] for s in stages), stages
    return Answer(
        sum(s["ms"] for s in stages if s["stage"] in LINT),
        next(s["at_ms"] for s in stages if s["stage"] == "blocks"),
        min(compiles),
        max(compiles),
    )


def checks(kw: Kernelwright, path: pathlib.Path, chip: str, first: int) -> list[Answer]:
    """One answer per edit; the first of all starts the worker and is left out."""
    found = []
    for number in range(first, first + EDITS + 1):
        edit(path, number)
        target = f"{path}::scaled_tanh"
        done = kw.run("check", target, "--chip", chip, "--no-semantics", "--no-fixes", "--json")
        found.append(answer(done.expect(RESULT).json))
    return found[1:]


def bare(path: pathlib.Path, first: int) -> list[float]:
    """Trace and compile for one chip by the worker alone, each in a forked child, per edit."""
    found = []
    with Worker(path.parent) as worker:
        worker.hello()
        for number in range(first, first + EDITS + 1):
            edit(path, number)
            begin = time.monotonic()
            inputs = array("x", "bfloat16", ROWS, COLUMNS)
            job = trace_job(source(path, "scaled_tanh"), inputs, chips=["v5e"], artefacts=True)
            traced = worker.run(job).trace
            limits = worker_pb2.Limits(deadline_milliseconds=60_000)
            compile_job = worker_pb2.CompileJob(artefact=traced.artefacts[0])
            done = worker.run(worker_pb2.Job(limits=limits, compile=compile_job))
            assert not done.compile.HasField("error")
            found.append(1000 * (time.monotonic() - begin))
    return found[1:]


def fresh(path: pathlib.Path, python: pathlib.Path, first: int) -> list[float]:
    """The same in a Python process of its own, per edit."""
    script = path.parent / "fresh.py"
    script.write_text(FRESH)
    found = []
    for number in range(first, first + 3):
        edit(path, number)
        begin = time.monotonic()
        command = [str(python), str(script), str(path), str(ROWS), str(COLUMNS), "32"]
        subprocess.run(command, check=True, capture_output=True)
        found.append(1000 * (time.monotonic() - begin))
    return found


def main() -> int:
    python = data_folder() / "python" / "bin" / "python"
    os.environ.setdefault("KW_PYTHON_ENV", str(python.parent.parent))
    path = pathlib.Path(tempfile.mkdtemp(prefix="kw-bench-")) / "edited.py"
    with private_installation(pathlib.Path(tempfile.mkdtemp(prefix="kw-", dir="/tmp"))) as kw:
        one = checks(kw, path, "v5e", 0)
        four = checks(kw, path, "all", 100)
    alone = bare(path, 200)
    processes = fresh(path, python, 300)
    first = [a.first_compile for a in one]
    added = statistics.median(first) - statistics.median(alone)
    today = time.strftime("%Y-%m-%d")
    ratio = statistics.median(processes) / statistics.median(first)
    lines = [
        f"## Time to a diagnostic after an edit, {today}: `scripts/bench --check --record`",
        f"Medians (least … most) over {EDITS} edits, warm worker, ms, one run on an idle machine.",
        "",
        "| what | figure | aim |",
        "|---|---|---|",
        f"| syntax, names, blocks: their own time | {spread([a.lint for a in one])} | 20 |",
        f"| verdict on blocks, trace included | {spread([a.to_blocks for a in one])} | |",
        f"| first compile verdict, one chip | {spread(first)} | |",
        f"| trace and compile by the worker alone | {spread(alone)} | |",
        f"| what check adds to that | {added:.0f} | 100 |",
        f"| first compile verdict of four chips | {spread([a.first_compile for a in four])} | |",
        f"| last compile verdict of four chips | {spread([a.last_compile for a in four])} | |",
        f"| a fresh Python process for one chip | {spread(processes)} | |",
        f"| ratio (fresh process / check, one chip) | {ratio:.1f} | |",
    ]
    print("\n".join(lines))
    print(json.dumps([dataclasses.asdict(a) for a in one + four]))
    if "--record" in sys.argv[1:]:
        record(lines, "check bench")
    return 0


if __name__ == "__main__":
    sys.exit(main())
