"""Compiles tokamax's timed entries, estimates them, and writes what came out as facts.

usage: scripts/calibration compile [--limit N] [--deadline SECONDS]   dumps of entries that have none yet
       scripts/calibration estimate                                   an estimate or a refusal for each dump
       scripts/calibration fit --chip CHIP --write CHIPS.json         the chip's figures, on half the shapes
       scripts/calibration report [--record]                          errors; --record writes docs

Dumps are kept in $KW_CALIBRATION_DUMPS (default: build/calibration); every step goes on where it was
interrupted.
The step `compile` needs a Python with tokamax 0.0.12, jax 0.10.2 and libtpu 0.0.52 ($KW_CALIBRATION_PYTHON,
or `pip install tokamax==0.0.12 jax==0.10.2 libtpu==0.0.52` in a virtual environment of your own).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import time
from typing import TYPE_CHECKING, Any

# Run as scripts from this folder; the type checker sees them as a package.
if TYPE_CHECKING:
    from calibration import compile_dumps, plan, report
    from calibration import entries as entries_module
else:
    import compile_dumps
    import entries as entries_module
    import plan
    import report

TOP = pathlib.Path(__file__).resolve().parents[2]
DUMPS = pathlib.Path(os.environ.get("KW_CALIBRATION_DUMPS", TOP / "build" / "calibration"))


def compile_all(limit: int | None, deadline: float) -> None:
    compile_dumps.environment()
    entries, problems = entries_module.load(entries_module.data_folder())
    for problem in problems:
        print(f"left out: {problem}")
    DUMPS.mkdir(parents=True, exist_ok=True)
    compile_dumps.import_everything(entries)
    queue = [entry for entry in plan.order(entries) if not (DUMPS / f"{entry.name}.json").exists()]
    started = time.monotonic()
    for done, entry in enumerate(queue[:limit]):
        answer = compile_dumps.compile_entry(entry, DUMPS, deadline)
        seconds = time.monotonic() - started
        print(f"[{seconds:5.0f} s] {done + 1}/{len(queue)} {entry.name} {answer['status']} "
              f"{answer['seconds']} s {answer.get('reason', '')[:100]}", flush=True)  # fmt: skip


FACTS = TOP / "tests" / "calibration" / "data" / "tokamax.json"
BINARY = pathlib.Path(os.environ.get("KW_BINARY", TOP / "build" / "kernelwright"))


def compiled() -> list[tuple[entries_module.Entry, dict[str, Any]]]:
    """Entries that were tried, with what became of their compile."""
    entries, _ = entries_module.load(entries_module.data_folder())
    return [
        (entry, json.loads((DUMPS / f"{entry.name}.json").read_text()))
        for entry in entries
        if (DUMPS / f"{entry.name}.json").exists()
    ]


def calibrate(chip: str, names: list[tuple[str, float]], *options: str) -> dict[str, Any]:
    """Runs `kernelwright calibrate` on the dumps of these entries."""
    pairs = DUMPS / f"pairs-{chip}.json"
    pairs.write_text(json.dumps([{"program": name, "chip": chip, "ms": ms} for name, ms in names]))
    done = subprocess.run([str(BINARY), "calibrate", str(pairs), "--chip", chip, "--json", *options],
                          capture_output=True, text=True)  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"kernelwright calibrate: {done.stderr.strip() or done.stdout.strip()}")
    return dict(json.loads(done.stdout))


def fact_of(entry: entries_module.Entry, answer: dict[str, Any]) -> report.Fact:
    return {
        "name": entry.name, "chip": entry.chip, "operation": entry.operation, "shape": entry.shape,
        "implementation": entry.implementation, "half": plan.half(entry), "ms": entry.milliseconds,
        "arguments": entries_module.describe(entry), "config": entry.config,
        "flops": answer.get("product_flops", 0), "bytes": answer.get("io_bytes", 0),
    }  # fmt: skip


def write_facts(facts: list[report.Fact]) -> None:
    # Both implementations of a shape do the same work: the fewer flops count, without those of branches
    # not taken.
    least: dict[tuple[str, str, str], float] = {}
    for fact in facts:
        key = (fact["chip"], fact["operation"], fact["shape"])
        if fact["flops"]:
            least[key] = min(fact["flops"], least.get(key, fact["flops"]))
    for fact in facts:
        fact["flops"] = least.get((fact["chip"], fact["operation"], fact["shape"]), 0)
    FACTS.write_text("[\n" + ",\n".join(json.dumps(fact) for fact in facts) + "\n]\n")


def estimate() -> None:
    facts = []
    for chip in entries_module.TOPOLOGIES:
        tried = [(entry, answer) for entry, answer in compiled() if entry.chip == chip]
        ready = [
            (entry.name, entry.milliseconds) for entry, answer in tried if answer["status"] == "compiled"
        ]
        outcomes = {p["program"]: p for p in calibrate(chip, ready, "--compare")["pairs"]} if ready else {}
        for entry, answer in tried:
            fact = fact_of(entry, answer)
            outcome = outcomes.get(entry.name, {})
            if "estimate_before_ms" in outcome:
                fact["estimate_ms"] = round(outcome["estimate_before_ms"], 5)
            else:
                fact["refusal"] = outcome.get("left_out") or f"{answer['stage']}: {answer['reason']}"
            facts.append(fact)
    write_facts(facts)


def fit(chip: str, target: str) -> None:
    names = [
        (entry.name, entry.milliseconds)
        for entry, answer in compiled()
        if entry.chip == chip and answer["status"] == "compiled" and plan.half(entry) == "fit"
    ]
    print(json.dumps(calibrate(chip, names, "--write", target)["figures"], indent=1))


def show(record: bool) -> None:
    facts = json.loads(FACTS.read_text())
    text = report.summary(facts)
    print(text)
    if record:
        today = datetime.date.today().isoformat()
        head = f"## {today}: device times of tokamax 0.0.12, `scripts/calibration report --record`"
        tail = (
            "Measured: published with the package. Estimated: libtpu 0.0.52. "
            "Every entry: [results-calibration.md](results-calibration.md)."
        )
        results = TOP / "docs" / "results.md"
        begin, end = "<!-- calibration begin -->", "<!-- calibration end -->"
        old = results.read_text()
        if begin in old:
            old = old[: old.index(begin)].rstrip() + old[old.index(end) + len(end) :]
        results.write_text(f"{old.rstrip()}\n\n{begin}\n{head}\n\n{text}\n\n{tail}\n{end}\n")
        (TOP / "docs" / "results-calibration.md").write_text(
            f"# Every calibrated entry\n\n{today}; what the columns mean is in [results.md](results.md).\n\n"
            f"{report.every_entry(facts)}\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("step", choices=["compile", "estimate", "fit", "report"])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--deadline", type=float, default=120)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--chip", default="tpu7x")
    parser.add_argument("--write", default="chips.json")
    options = parser.parse_args()
    if options.step == "compile":
        compile_all(options.limit, options.deadline)
    elif options.step == "estimate":
        estimate()
    elif options.step == "fit":
        fit(options.chip, options.write)
    else:
        show(options.record)


if __name__ == "__main__":
    main()
