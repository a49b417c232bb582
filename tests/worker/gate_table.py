"""Prints the table of gates and adversarial fixtures; see scripts/gates."""

from __future__ import annotations

import argparse
import datetime
import os
import pathlib
import subprocess
import sys

from kernelwright_worker.judging.gates import CANDIDATE_GATES, KERNEL_GATES
from worker.client import DATA, TOP, Gate, Outcome, Worker, gates
from worker.tricks import TRICKS

Row = tuple[str, str, str]  # fixture, gate, reason


def daemon_rows() -> list[Row]:
    """Rows of the gates that the daemon runs itself, as its unit test prints them."""
    binary = pathlib.Path(os.environ.get("KW_BUILD", TOP / "build")) / "kw_agents_test"
    done = subprocess.run([binary, "--gtest_filter=GateFixtureTest.*"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{binary} --gtest_filter=GateFixtureTest.* failed:\n{done.stdout[-4000:]}")
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.startswith("gate-fixture\t")]
    return [(fixture, gate, reason) for _mark, fixture, gate, reason in lines]


def worker_rows(worker: Worker) -> list[Row]:
    """Rows of the worker's gates, each alone. An empty reason: the fixture was let through."""
    rows: list[Row] = []
    for trick in TRICKS:
        found = worker.run(trick.job(only=[trick.gate]))
        rows.append((trick.name, trick.gate, gates(found, Gate.FAIL).get(trick.gate, "")))
    return rows


def matrix(worker: Worker) -> list[str]:
    """Every gate of the worker alone against every fixture: x for rejected, . for passed, - for not run."""
    names = [*KERNEL_GATES, *CANDIDATE_GATES]
    lines = [f"| fixture | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for trick in TRICKS:
        cells: list[str] = []
        for gate in names:
            found = worker.run(trick.job(only=[gate]))
            if found.outcome != Outcome.DONE:
                cells.append("x")
            else:
                status = found.judge.gates[0].status if found.judge.gates else Gate.NOT_RUN
                cells.append({Gate.FAIL: "x", Gate.PASS: "."}.get(status, "-"))
        lines.append(f"| {trick.name} | {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matrix", action="store_true")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    with Worker(DATA) as worker:
        worker.hello(parallel_jobs=2)
        rows = daemon_rows() + worker_rows(worker)
        lines = ["| gate | fixture | rejected because |", "|---|---|---|"]
        for fixture, gate, reason in sorted(rows, key=lambda row: (row[1], row[0])):
            short = " ".join(reason.split()).replace("|", "/").replace(f"{TOP}/", "")
            lines.append(f"| {gate} | {fixture} | {short[:110] if reason else '**let through**'} |")
        if arguments.matrix:
            lines += ["", "Each gate of the worker alone: x rejects, . passes, - has no verdict.", ""]
            lines += matrix(worker)
    through = [row for row in rows if not row[2]]
    lines += ["", f"{len(rows)} fixtures, {len(rows) - len(through)} rejected by their gate alone."]
    print("\n".join(lines))
    if arguments.record:
        option = " --matrix" if arguments.matrix else ""
        title = f"\n## {datetime.date.today()}: gates and adversarial fixtures\n\n"
        title += f"`scripts/gates{option} --record`\n\n"
        with (TOP / "docs" / "results.md").open("a", encoding="utf-8") as file:
            file.write(title + "\n".join(lines) + "\n")
    return 1 if through else 0


if __name__ == "__main__":
    sys.exit(main())
