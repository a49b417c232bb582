"""Records the program graphs of the kernels of this folder for daemon/kernels/rewrite, one a line.

    PYTHONPATH=tests:agents/worker:build/python python tests/rewrite/record.py \
        > daemon/kernels/rewrite/testdata/graphs.jsonl

A line with `after` is the graph of a kernel to which that rule was applied: what the second one sees.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from typing import Any

from rewrite.apply import KERNELS, ask, comment_of, graph_of
from rewrite.cases import GAINS, PAIRS, REFUSALS, Gain, Pair, Refusal
from worker.client import Worker


def shorten(message: Any, file: str) -> None:
    """Leaves the frames of the kernel's own file, with its name only, and no bytes of constants."""
    if isinstance(message, dict):
        message.pop("data", None)
        message.pop("sha256", None)
        if "spans" in message:
            spans = [s for s in message["spans"] if s.get("file") == file]
            message["spans"] = [{**s, "file": pathlib.Path(file).name} for s in spans]
        if "kernel_span" in message:
            message["kernel_span"]["file"] = pathlib.Path(message["kernel_span"].get("file", "")).name
        for value in message.values():
            shorten(value, file)
    elif isinstance(message, list):
        for value in message:
            shorten(value, file)


def line(path: pathlib.Path, name: str, function: str, chip: str, after: str, graph: dict[str, Any]) -> None:
    shorten(graph, str(path))
    entry = {"file": name, "function": function, "chip": chip, "after": after, "main": graph}
    print(json.dumps(entry, separators=(",", ":")).replace(path.name, f"{name}.py"))


def main() -> int:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kwr-"))
    seen = set()
    cases: list[Gain | Refusal | Pair] = [*GAINS, *REFUSALS, *PAIRS]
    with Worker(KERNELS, folder) as worker:
        worker.hello()
        for case in cases:
            key = (case.file, case.function, case.chip)
            path = KERNELS / f"{case.file}.py"
            inputs = comment_of(path, case.function)
            if key not in seen:
                seen.add(key)
                graph = graph_of(worker, path, case.function, inputs, case.chip)
                line(path, case.file, case.function, case.chip, "", graph)
        for pair in PAIRS:
            path = KERNELS / f"{pair.file}.py"
            inputs = comment_of(path, pair.function)
            graph = graph_of(worker, path, pair.function, inputs, pair.chip)
            found = ask(graph, path, pair.function, pair.chip).of(pair.rules[0])
            rewritten = folder / f"{pair.file}_{pair.function}_rewritten.py"
            rewritten.write_text(found[0]["text"])
            again = graph_of(worker, rewritten, pair.function, inputs, pair.chip)
            line(rewritten, pair.file, pair.function, pair.chip, pair.rules[0], again)
    return 0


if __name__ == "__main__":
    sys.exit(main())
