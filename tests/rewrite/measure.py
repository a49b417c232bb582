"""Applies rules for real: the rewritten file is traced, compiled and estimated on the chip, and judged
against the original by the gates of every candidate. As a program it prints the table of docs/results.md."""

from __future__ import annotations

import argparse
import datetime
import pathlib
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from harness import RESULT, Kernelwright, private_installation
from rewrite.apply import KERNELS, TOP, Answer, ask, comment_of, graph_of, inputs_of
from rewrite.cases import GAINS, PAIRS, REFUSALS, Gain, Pair, Refusal
from worker.client import Gate, Outcome, Worker, gates, judge_job, source

GATES = "G20 G21 G30 G31 G40 G42 G43 G45 G46 G50 G52".split()


@dataclass
class Estimated:
    """A time, or why there is none."""

    milliseconds: float
    why: str = ""
    versions: str = ""


class Bench:
    """A worker to trace and judge, an installation to compile and estimate, a folder for rewritten files."""

    def __init__(self, worker: Worker, kw: Kernelwright, folder: pathlib.Path) -> None:
        self.worker, self.kw, self.folder = worker, kw, folder

    def answer(self, path: pathlib.Path, function: str, chip: str, allowed: str = "reassociation") -> Answer:
        inputs = comment_of(path, function)
        return ask(graph_of(self.worker, path, function, inputs, chip), path, function, chip, allowed)

    def copy(self, path: pathlib.Path, name: str, text: str | None = None) -> pathlib.Path:
        """The file, or another text of it, under another name in the bench's folder."""
        copied = self.folder / f"{path.stem}_{name.replace('-', '_')}.py"
        copied.write_text(path.read_text() if text is None else text)
        return copied

    def apply(
        self, path: pathlib.Path, function: str, chip: str, rule: str, allowed: str = "reassociation"
    ) -> Any:
        """The rewritten file and the rule's last proposal; a rule may have to be applied once per place."""
        proposal = None
        for _ in range(4):
            answer = self.answer(path, function, chip, allowed)
            if not answer.of(rule):
                assert proposal is not None, f"{rule} refuses {function}: {answer.reason(rule)}"
                break
            proposal = answer.of(rule)[0]
            path = self.copy(path, rule, proposal["text"])
        return path, proposal

    def estimate(self, path: pathlib.Path, function: str, chip: str) -> Estimated:
        found = self.kw.run("profile", f"{path}::{function}", "--chip", chip, "--json").expect(RESULT).json
        versions = found.get("versions", {})
        if not found.get("estimate_ms"):
            return Estimated(0, str(found.get("refusal"))[:100])
        return Estimated(float(found["estimate_ms"]), "", ", ".join(f"{k} {v}" for k, v in versions.items()))

    def judge(self, original: pathlib.Path, rewritten: pathlib.Path, case: Gain | Pair) -> dict[str, str]:
        """Gates that the rewritten function does not pass against the original, with reasons."""
        only = [gate for gate in GATES if gate not in case.without] if case.without else []
        theirs, ours = source(rewritten, case.function), source(original, case.function)
        job = judge_job(theirs, ours, inputs_of(case.check), only=only)
        found = self.worker.run(job)
        assert found.outcome == Outcome.DONE, found.detail
        failed = gates(found, Gate.FAIL)
        not_run = gates(found, Gate.NOT_RUN)
        assert gates(found, Gate.PASS), found.judge
        return {**failed, **not_run}

    def ratio(self, case: Gain | Pair, path: pathlib.Path, rewritten: pathlib.Path) -> float:
        before = self.estimate(path, case.function, case.chip)
        after = self.estimate(rewritten, case.function, case.chip)
        assert before.milliseconds, f"{path.name}: {before.why}"
        assert after.milliseconds, f"{rewritten.name}: {after.why}"
        return before.milliseconds / after.milliseconds

    def gain(self, case: Gain) -> tuple[float, dict[str, str], Any]:
        """Ratio of estimates, failed gates, proposal."""
        path = self.copy(KERNELS / f"{case.file}.py", "original")
        rewritten, proposal = self.apply(path, case.function, case.chip, case.rule, case.allowed)
        failed = self.judge(path, rewritten, case)
        return self.ratio(case, path, rewritten), failed, proposal

    def pair(self, case: Pair) -> tuple[list[float], dict[str, str]]:
        """Ratios of the first rule alone, the second alone, and both; gates that both together fail."""
        path = self.copy(KERNELS / f"{case.file}.py", "original")
        first, _ = self.apply(path, case.function, case.chip, case.rules[0])
        second, _ = self.apply(path, case.function, case.chip, case.rules[1])
        both, _ = self.apply(first, case.function, case.chip, case.rules[1])
        failed = self.judge(path, both, case)
        return [self.ratio(case, path, other) for other in (first, second, both)], failed

    def refusal(self, case: Refusal) -> str:
        """The reason, or an empty text when the rule proposes something."""
        path = KERNELS / f"{case.file}.py"
        answer = self.answer(path, case.function, case.chip)
        return "" if answer.of(case.rule) else answer.reason(case.rule)


def verdict(failed: dict[str, str], without: tuple[str, ...] = ()) -> str:
    failed = {gate: reason for gate, reason in failed.items() if not reason.startswith("stopped after")}
    if without and not failed:
        return f"all but {', '.join(without)} passed"
    return ", ".join(f"{gate}: {reason[:60]}" for gate, reason in sorted(failed.items())) or "all passed"


def table(bench: Bench) -> list[str]:
    """The whole table; what does not work is said in its row."""
    lines = ["| rule | kernel | chip | ratio | exactness | gates |", "|---|---|---|---|---|---|"]
    for case in GAINS:
        try:
            ratio, failed, proposal = bench.gain(case)
            lines.append(
                f"| {case.rule} | {case.file}.py::{case.function} | {case.chip} | {ratio:.2f} | "
                f"{proposal['exactness']} | {verdict(failed, case.without)} |"
            )
        except AssertionError as error:
            name = f"| {case.rule} | {case.file}.py::{case.function} | {case.chip} "
            lines.append(f"{name}| – | – | {str(error)[:200]} |")
        print(lines[-1], file=sys.stderr, flush=True)
    lines += [
        "",
        "| two rules | kernel | chip | first | second | both | gates |",
        "|---|---|---|---|---|---|---|",
    ]
    for pair in PAIRS:
        name = f"| {' + '.join(pair.rules)} | {pair.file}.py::{pair.function} | {pair.chip} "
        try:
            ratios, failed = bench.pair(pair)
            lines.append(
                name + "".join(f"| {r:.2f} " for r in ratios) + f"| {verdict(failed, pair.without)} |"
            )
        except AssertionError as error:
            lines.append(name + f"| – | – | – | {str(error)[:200]} |")
        print(lines[-1], file=sys.stderr, flush=True)
    lines += ["", "| rule | refuses | because |", "|---|---|---|"]
    for refusal in REFUSALS:
        reason = bench.refusal(refusal) or "**does not refuse**"
        lines.append(f"| {refusal.rule} | {refusal.file}.py::{refusal.function} | {reason} |")
    return lines


def record(lines: list[str]) -> None:
    """Puts the table into docs/results.md in place of the one before."""
    path = TOP / "docs" / "results.md"
    text = path.read_text(encoding="utf-8")
    begin, end = "<!-- rewrites begin -->\n", "<!-- rewrites end -->\n"
    head, _, rest = text.partition(begin)
    tail = rest.partition(end)[2] if rest else ""
    title = f"## Rewrite rules, {datetime.date.today()}: `scripts/rewrites --record`\n\n"
    words = "Estimated time of the original over that of the rewritten kernel; kernels of tests/rewrite.\n\n"
    gap = "" if head.endswith("\n\n") else "\n"
    path.write_text(
        head + gap + begin + title + words + "\n".join(lines) + "\n" + end + tail, encoding="utf-8"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kwr-"))
    home = pathlib.Path(tempfile.mkdtemp(prefix="kw-"))
    with private_installation(home) as kw, Worker(KERNELS, folder) as worker:
        worker.hello(parallel_jobs=2)
        lines = table(Bench(worker, kw, folder))
    print("\n".join(lines))
    if arguments.record:
        record(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
