"""Estimates the shipped matmul at every combination of block sizes, and compares the best with what a
search finds.

usage: python scripts/exhaustive.py [--chip v5e] [--sizes 128,256,512,1024,2048] [--record]

Every combination becomes a file of its own, whose original is compiled and estimated; one that does not
fit VMEM is an error of the compiler and is counted. Then `optimize` runs on the shipped file with its
usual budget of compiles. Ends with 1 when the search is more than 2 % behind. --record adds the result,
dated, to docs/results.md.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TOP = pathlib.Path(__file__).resolve().parent.parent
BINARY = pathlib.Path(os.environ.get("KW_BINARY", TOP / "build" / "kernelwright"))
EXAMPLE = TOP / "examples" / "matmul_blocks128.py"
HEAD = "def matmul(x, y, bm=128, bn=128, bk=128):"
SEMANTICS = 'dimension_semantics=("parallel", "parallel", "arbitrary")'
# What the compiler lets one kernel ask for, MiB.
VMEM_MIB = {"v5e": 128, "v5p": 64, "v6e": 128, "tpu7x": 64}

Blocks = tuple[int, int, int]


def kernelwright(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([str(BINARY), *arguments, "--json"], capture_output=True, text=True)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"kernelwright {' '.join(arguments)}: {done.stderr.strip()}") from None
    return dict(answer)


def estimate(folder: pathlib.Path, chip: str, blocks: Blocks) -> tuple[Blocks, float | None, str]:
    """(blocks, milliseconds or None, why not) of one combination."""
    bm, bn, bk = blocks
    text = EXAMPLE.read_text()
    assert HEAD in text and SEMANTICS in text, "the example has changed: adapt this script"
    text = text.replace(HEAD, f"def matmul(x, y, bm={bm}, bn={bn}, bk={bk}):")
    text = text.replace(SEMANTICS, f"{SEMANTICS}, vmem_limit_bytes={VMEM_MIB[chip]} * 2**20")
    path = folder / f"matmul_{bm}_{bn}_{bk}.py"
    path.write_text(text)
    answer = kernelwright("tune", f"{path}::matmul", "--chip", chip, "--max-compiles", "1")
    milliseconds = (answer.get("original") or {}).get("estimate_ms")
    return blocks, milliseconds, str(answer.get("message", ""))


def record(chip: str, lines: list[str]) -> None:
    """Adds a dated section to docs/results.md."""
    path = TOP / "docs" / "results.md"
    today = datetime.date.today().isoformat()
    command = f"python scripts/exhaustive.py --chip {chip} --record"
    section = [
        f"## {today}: every block size of a 4096³ bf16 matmul, {chip}",
        "",
        f"`{command}`",
        "",
        *lines,
        "",
    ]
    path.write_text(path.read_text().rstrip("\n") + "\n\n" + "\n".join(section))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chip", default="v5e", choices=sorted(VMEM_MIB))
    parser.add_argument("--sizes", default="128,256,512,1024,2048")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    combinations: list[Blocks] = list(itertools.product(sizes, sizes, sizes))

    begin = time.monotonic()
    found: dict[Blocks, float] = {}
    refused = 0
    with tempfile.TemporaryDirectory(prefix="kw-exhaustive-") as name:
        folder = pathlib.Path(name)
        with ThreadPoolExecutor(2) as pool:
            jobs = pool.map(lambda blocks: estimate(folder, arguments.chip, blocks), combinations)
            for number, (blocks, milliseconds, why) in enumerate(jobs, 1):
                if milliseconds is None:
                    refused += 1
                    note = why
                else:
                    found[blocks] = milliseconds
                    note = f"{milliseconds:.3f} ms"
                elapsed = time.monotonic() - begin
                print(f"[{elapsed:4.0f} s] {number}/{len(combinations)} {blocks}: {note[:90]}", flush=True)
    if not found:
        print("no combination could be estimated", file=sys.stderr)
        return 1
    searched = kernelwright("optimize", f"{EXAMPLE}::matmul", "--chip", arguments.chip)
    best = (searched.get("best") or {}).get("estimate_ms")
    ranked = sorted(found.items(), key=lambda item: item[1])
    lines = [
        f"{len(found)} combinations fit and were estimated, {refused} were refused; "
        f"{time.monotonic() - begin:.0f} s in all.",
        "",
        "| rank | bm | bn | bk | estimate, ms |",
        "|---|---|---|---|---|",
        *(f"| {i} | {b[0]} | {b[1]} | {b[2]} | {ms:.4f} |" for i, (b, ms) in enumerate(ranked[:5], 1)),
        "",
    ]
    if best is None:
        lines.append(f"The search found nothing: {searched.get('message')}.")
        behind = float("inf")
    else:
        behind = best / ranked[0][1] - 1
        original = (searched.get("original") or {}).get("estimate_ms") or 0.0
        lines.append(
            f"The search: {searched['best']['what']}, {best:.4f} ms from {original:.3f} ms, "
            f"{behind * 100:+.2f} % against the best above, {searched['compiles']} compiles."
        )
    versions = ((searched.get("evidence") or {}).get("versions")) or {}
    lines += ["", "Estimated; " + ", ".join(f"{k} {v}" for k, v in sorted(versions.items())) + "."]
    print("\n".join(lines))
    if arguments.record:
        record(arguments.chip, lines)
    return 0 if behind <= 0.02 else 1


if __name__ == "__main__":
    sys.exit(main())
