"""Compiles tokamax's timed entries, estimates them, and writes what came out as facts.

usage: scripts/calibration compile [--limit N] [--deadline SECONDS]   dumps of entries that have none yet
       scripts/calibration estimate                                   an estimate or a refusal for each dump
       scripts/calibration fit                                        the chips' constants, on one half of the shapes
       scripts/calibration report [--record]                          errors on the other half; --record writes docs

Dumps are kept in $KW_CALIBRATION_DUMPS (default: build/calibration); every step goes on where it was interrupted.
The step `compile` needs a Python with tokamax 0.0.12, jax 0.10.2 and libtpu 0.0.52 ($KW_CALIBRATION_PYTHON, or
`pip install tokamax==0.0.12 jax==0.10.2 libtpu==0.0.52` in a virtual environment of your own).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import time

import compile_dumps
import entries as entries_module
import plan

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
        print(f"[{seconds:5.0f} s] {done + 1}/{len(queue)} {entry.name} {answer['status']} {answer['seconds']} s "
              f"{answer.get('reason', '')[:100]}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("step", choices=["compile", "estimate", "fit", "report"])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--deadline", type=float, default=120)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.step == "compile":
        compile_all(options.limit, options.deadline)


if __name__ == "__main__":
    main()
