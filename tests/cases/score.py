"""Measures `kernelwright check` on cases whose answers are known: the right id, the right line, no false
alarms, fixes that hold.

usage: python tests/cases/score.py [--only TEXT] [--chip all] [--shared FOLDER] [--record]

Without --shared the kernels beside this file are checked; the expected line is the one that ends in
`# <- Dnn`. With --shared the cases of FOLDER are taken (compile_cases.py, semantic_cases.py and their
expectations; shared_map.json has the id of each), every case in a file of its own. Only what is found
inside the case's own function counts. A pair is one case on one chip. An error or a warning on a pair
that has none, or with another id than the expected one, is a false alarm. Ends with 1 when something is
not as expected. --record adds the figures, dated, to docs/results.md.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.insert(0, str(TOP / "tests"))

import harness  # noqa: E402

CHIPS = ["v5e", "v5p", "v6e", "tpu7x"]
SHORT = {
    "float32": "f32",
    "bfloat16": "bf16",
    "float16": "f16",
    "float64": "f64",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "complex64": "c64",
}


@dataclass
class Case:
    name: str
    file: pathlib.Path
    function: str
    first: int  # lines in which a diagnostic belongs to the case
    last: int
    id: str | None  # None: right
    chips: list[str]  # on which the id is true
    lines: list[int] = field(default_factory=list)  # any of them is right; none given: any of the case


@dataclass
class Score:
    pairs: int = 0
    right_id: int = 0
    right_line: int = 0
    clean_pairs: int = 0
    false_alarms: int = 0
    offered: int = 0
    proven: int = 0
    mended: int = 0  # cases with at least one proven fix

    def add(self, other: Score) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def functions_of(file: pathlib.Path) -> Iterator[tuple[ast.FunctionDef, int]]:
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node, node.end_lineno or node.lineno


def own_cases() -> Iterator[Case]:
    expected = json.loads((HERE / "expected.json").read_text())
    for file in sorted(HERE.glob("*_cases.py")):
        lines = file.read_text().splitlines()
        for node, last in functions_of(file):
            if node.name not in expected:
                continue
            want = expected[node.name]
            marked = [n for n in range(node.lineno, last + 1) if "# <- D" in lines[n - 1]]
            yield Case(
                node.name, file, node.name, node.lineno, last, want["id"], want.get("chips", CHIPS), marked
            )


SHAPES = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("cases", sys.argv[1])
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)
import jax
shapes = {}
for name, case in cases.CASES.items():
    jax.config.update("jax_enable_x64", case.x64)
    shapes[name] = [[str(i.dtype), list(i.shape)] for i in case()[1]]
print(json.dumps(shapes))
"""


def shared_file(
    folder: pathlib.Path, source: pathlib.Path, name: str, call: str, inputs: str
) -> pathlib.Path:
    """The case alone, with what it needs of its module, and a function that check can call."""
    text = source.read_text()
    lines = text.splitlines()
    kept = []
    for node in ast.parse(text).body:
        start = node.lineno
        if isinstance(node, ast.FunctionDef):
            if node.decorator_list and node.name != name:
                continue
            if not node.decorator_list and node.name in ("case", "main", "clean") or "run" in node.name:
                continue
        elif isinstance(node, (ast.If, ast.Expr, ast.For)):
            continue
        kept.append("\n".join(lines[start - 1 : node.end_lineno]))
    file = folder / f"{name}.py"
    file.write_text("\n\n".join(kept) + f"\n\n\n# kernelwright: {inputs}\n{call}\n")
    return file


def shared_cases(shared: pathlib.Path, folder: pathlib.Path) -> Iterator[Case]:
    ids = json.loads((HERE / "shared_map.json").read_text())
    compile_source, semantic_source = shared / "compile_cases.py", shared / "semantic_cases.py"
    outcomes = json.loads((shared / "compile_expected.json").read_text())["cases"]
    python = os.environ.get("KW_PYTHON", sys.executable)
    command = [python, "-c", SHAPES, str(compile_source)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shapes = json.loads(done.stdout.strip().splitlines()[-1])
    for name, inputs in shapes.items():
        want = ids.get(name, {})
        if want.get("skip") or any(dtype not in SHORT for dtype, _ in inputs):
            continue
        names = [f"a{i}" for i in range(len(inputs))]
        spec = " ".join(
            f"{a}={SHORT[dtype]}[{','.join(map(str, dims))}]"
            for a, (dtype, dims) in zip(names, inputs, strict=True)
        )
        arguments = ", ".join(names)
        call = f"def check_{name}({arguments or 'unused=0'}):\n    return {name}()[0]({arguments})"
        if want.get("x64"):
            call = 'jax.config.update("jax_enable_x64", True)\n\n\n' + f"# kernelwright: {spec}\n" + call
        file = shared_file(folder, compile_source, name, call, spec or "unused=0")
        failing = [o for o in outcomes[name] if o["stage"] != "ok"]
        chips = [c for o in failing for c in o["chips"]] or (CHIPS if want.get("id") else [])
        quoted = {o["source_line"] for o in failing if "source_line" in o}
        lines = file.read_text().splitlines()
        yield whole_file(
            name, file, want.get("id"), chips, [n for n, t in enumerate(lines, 1) if t.strip() in quoted]
        )
    for node, _ in functions_of(semantic_source):
        if not node.decorator_list:
            continue
        call = f"def check_{node.name}(unused):\n    return {node.name}(False)[0]"
        file = shared_file(folder, semantic_source, node.name, call, "unused=f32[8,128]")
        found = ids.get(node.name, {}).get("id")
        yield whole_file(node.name, file, found, CHIPS, [])


def whole_file(name: str, file: pathlib.Path, found: str | None, chips: list[str], lines: list[int]) -> Case:
    return Case(name, file, f"check_{name}", 1, len(file.read_text().splitlines()), found, chips, lines)


def judge(case: Case, diagnostics: list[dict[str, Any]], asked: list[str]) -> tuple[Score, list[str]]:
    score = Score()
    notes: list[str] = []
    own = [d for d in diagnostics if d["line"] is None or case.first <= d["line"] <= case.last]
    for chip in asked:
        here = [d for d in own if chip in d["chips"]]
        hits = [d for d in here if d["id"] == case.id]
        loud = [d for d in here if d["severity"] in ("error", "warning") and d["id"] != case.id]
        if case.id is not None and chip in case.chips:
            score.pairs += 1
            on_line = [d for d in hits if not case.lines or d["line"] in case.lines]
            score.right_id += bool(hits)
            score.right_line += bool(on_line)
            if not hits:
                notes.append(f"{chip}: {case.id} missing")
            elif not on_line:
                notes.append(f"{chip}: {case.id} on line {hits[0]['line']}, expected {case.lines}")
        else:
            score.clean_pairs += 1
            loud += [d for d in hits if d["severity"] in ("error", "warning")]
        score.false_alarms += bool(loud)
        notes += [f"{chip}: {d['id']} said on line {d['line']}: {d['message'][:90]}" for d in loud]
    for diagnostic in own:
        score.offered += len(diagnostic["fixes"])
        score.proven += sum(set(asked) <= set(fix["verified"]) for fix in diagnostic["fixes"])
    score.mended = int(score.proven > 0)
    return score, notes


def report(score: Score, cases: int) -> list[str]:
    def share(part: int, whole: int) -> str:
        return f"{part} of {whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")

    return [
        f"cases {cases}",
        f"right id: {share(score.right_id, score.pairs)} pairs",
        f"right line: {share(score.right_line, score.pairs)} pairs",
        f"false alarms: {score.false_alarms} pairs, {score.clean_pairs} pairs are right",
        f"fixes offered: {score.offered}, proven on all chips: {score.proven}, in {score.mended} cases",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="cases with this text in their name")
    parser.add_argument("--chip", default="all")
    parser.add_argument("--shared", type=pathlib.Path, help="folder of cases in the other format")
    parser.add_argument("--no-fixes", action="store_true")
    parser.add_argument("--record", action="store_true", help="add the result to docs/results.md")
    given = parser.parse_args()
    asked = CHIPS if given.chip == "all" else given.chip.split(",")
    total = Score()
    count = 0
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="kw-score-") as folder, harness.adopting_orphans():
        home = pathlib.Path(folder) / "home"
        files = pathlib.Path(folder) / "files"
        home.mkdir()
        files.mkdir()
        program = harness.Kernelwright(home)
        try:
            for case in shared_cases(given.shared, files) if given.shared else own_cases():
                if given.only not in case.name:
                    continue
                target = f"{case.file}::{case.function}"
                more = ["--no-fixes"] if given.no_fixes else []
                result = program.run("check", target, "--chip", ",".join(asked), "--json", *more)
                count += 1
                if result.code not in (harness.RESULT, harness.USER_CODE) or not result.out:
                    last = (result.err.strip().splitlines() or ["?"])[-1]
                    print(f"FAILED {case.name}: exit {result.code}: {last}", flush=True)
                    wrong += 1
                    if case.id is not None:
                        total.pairs += sum(c in asked for c in case.chips)
                    continue
                score, notes = judge(case, result.json["diagnostics"], asked)
                total.add(score)
                wrong += bool(notes)
                state = "ok    " if not notes else "WRONG "
                fixes = f"{score.proven} proven fixes" if score.proven else ""
                print(f"{state} {case.name} {case.id or ''} {result.seconds:.1f} s {fixes}", flush=True)
                for note in notes:
                    print(f"         {note}", flush=True)
        finally:
            program.run("stop")
    lines = report(total, count)
    print("\n".join(lines))
    if given.record and not given.only:
        command = "python tests/cases/score.py --record" + (" --shared FOLDER" if given.shared else "")
        what = "cases of another collection" if given.shared else "our own cases"
        today = datetime.date.today()
        text = f"\n## {today}: check on {what}\n\n`{command}`\n\n" + "".join(f"- {line}\n" for line in lines)
        with (TOP / "docs" / "results.md").open("a") as page:
            page.write(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
