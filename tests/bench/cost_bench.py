"""Speed and memory of the cost model, printed and with --record added to docs/results.md.

usage: cost_bench.py [--record] [--prototype FILE.py DIR CHIP ...]

With a prototype, a Python file that replays the dumps of DIR and prints "emu s SECONDS", the same folders are
timed with both. Folders hold the final_bundles dumps of one program each.
"""

from __future__ import annotations

import argparse
import datetime
import os
import pathlib
import re
import resource
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]


def run(binary: pathlib.Path, arguments: list[str]) -> str:
    done = subprocess.run([str(binary), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def cpu_seconds(command: list[str]) -> tuple[float, str]:
    """CPU time of a command, children included, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def compare(binary: pathlib.Path, prototype: str, pairs: list[str]) -> str:
    printed = run(binary, pairs)
    ours = {m[1]: float(m[3]) for m in re.finditer(r"^time (\S+) (\S+) (\S+)$", printed, re.M)}
    rows = ["| program | chip | prototype, s | here, s | ratio |", "|---|---|---|---|---|"]
    for folder, chip in zip(pairs[::2], pairs[1::2], strict=True):
        start, _ = cpu_seconds([sys.executable, "-c", ""])
        seconds, text = cpu_seconds([sys.executable, prototype, folder, chip])
        if "emu s" not in text:
            raise SystemExit(f"{prototype} did not print its time for {folder}")
        theirs = seconds - start
        here = ours[folder]
        name = pathlib.Path(folder).name
        rows.append(f"| {name} | {chip} | {theirs:.3f} | {here:.4f} | {theirs / here:.0f} |")
    body = re.sub(r"^time .*\n", "", printed, flags=re.M).rstrip()
    return body + "\n\n" + "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--prototype", default="")
    parser.add_argument("pairs", nargs="*", metavar="DIR CHIP")
    options = parser.parse_args()
    if bool(options.pairs) != bool(options.prototype) or len(options.pairs) % 2:
        parser.error("--prototype takes FILE.py and then DIR CHIP pairs")
    binary = pathlib.Path(os.environ.get("KW_COST_BENCH", TOP / "build" / "kw_cost_bench"))
    if not binary.exists():
        print(f"{binary} is missing: run scripts/build", file=sys.stderr)
        return 3
    text = run(binary, []).rstrip()
    if options.prototype:
        text += (
            "\n\nThe same dumps with a prototype in Python, reading included (CPU time, one run each):\n\n"
        )
        text += compare(binary, options.prototype, options.pairs)
    print(text)
    if options.record:
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        path = TOP / "docs" / "results.md"
        old = path.read_text().rstrip("\n")
        title = f"## {today}: speed and memory of the cost model"
        path.write_text(f"{old}\n\n{title}\n\n`scripts/bench --cost --record`\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
