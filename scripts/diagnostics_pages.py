"""Writes docs/diagnostics/ from agents/diagnostics.json: one page per entry, and an index.

usage: diagnostics_pages.py [--check]

  --check  change nothing; end with 1 and name the pages that are not what the catalogue says
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

TOP = pathlib.Path(__file__).resolve().parent.parent
CATALOGUE = TOP / "agents" / "diagnostics.json"
PAGES = TOP / "docs" / "diagnostics"

FOUND = {
    "T": "while jax traces the function",
    "L": "while jax lowers the kernel",
    "C": "by the TPU compiler",
    "I": "by running the kernel in TPU interpret mode",
    "R": "at run time on a TPU",
    "S": "by reading the source and the traced program; no text names it",
}
STATES = {
    "now": "Text of the versions that the tests run with.",
    "changed": "Still fails; the first text is of the tested versions, later ones are older.",
    "fixed": "Compiles with the tested versions; the text is of older ones.",
    "doc": "Known from documentation or reports; not produced by the tests.",
}
FIXES = {
    "auto": "A machine can make this edit; it is offered once the result compiles and passes the checks.",
    "choose": "There are alternatives, and only you know which one is meant.",
    "do": "Advice; no edit of the file alone mends it.",
}
SECTIONS = (
    (0, "Blocks, grids, index maps"),
    (30, "Initialisation, tails, copies, races"),
    (50, "The kernel's body"),
    (70, "Memory spaces, scalars, indexing"),
    (90, "VMEM"),
    (100, "Unsupported operations"),
    (120, "Types"),
    (150, "Names that changed"),
    (170, "Run time, and false alarms"),
)


def listed(value: Any) -> list[Any]:
    """A list of what may be written as a single value."""
    return value if isinstance(value, list) else [value]


def literal(pattern: str) -> str:
    """A pattern as people read it: holes as dots, doubled braces single."""
    shown, at = "", 0
    while at < len(pattern):
        if pattern.startswith("{{", at):
            shown, at = shown + "{", at + 2
        elif pattern[at] == "{":
            shown, at = shown + "…", pattern.index("}", at) + 1
        else:
            shown, at = shown + pattern[at], at + 1
    return shown


def texts(entry: dict[str, Any]) -> list[str]:
    """The texts that an entry is recognised by, one line each."""
    lines: list[str] = []
    for alternative in entry.get("match", []):
        parts = [literal(t) for t in listed(alternative.get("text", []))]
        if "primitive" in alternative:
            names = ", ".join(f"`{n}`" for n in listed(alternative["primitive"]))
            line = f"`Unimplemented primitive in Pallas TPU lowering for …:` {names}"
        elif parts:
            line = " … ".join(f"``{p}``" if "`" in p else f"`{p}`" for p in parts)
        else:
            line = "an error without text"
        conditions = [f"`{e}`" for e in listed(alternative.get("exception", []))]
        if conditions:
            line += f" ({' or '.join(conditions)})"
        if "chips" in alternative:
            line += f" on {', '.join(alternative['chips'])}"
        if line not in lines:
            lines.append(line)
    return lines


def page(entry: dict[str, Any], versions: dict[str, str]) -> str:
    """The page of one entry."""
    out = [f"# {entry['id']}: {entry['title']}", ""]
    out += [f"`{entry['name']}`, {entry['severity']}", ""]
    out += ["## What", listed(entry["message"])[-1]]
    where = "; or ".join(FOUND[k] for k in entry["class"].split(","))
    out += ["", f"Found {where}."]
    if found := texts(entry):
        out += ["", "Recognised by:", *[f"- {line}" for line in found]]
    out += ["", "## Why", entry["cause"]]
    out += ["", "## What to do", listed(entry["fix"]["text"])[-1], "", FIXES[entry["fix"]["kind"]]]
    if "example" in entry:
        out += ["", "## Example", "Instead of", "```python", entry["example"]["bad"], "```"]
        out += ["write", "```python", entry["example"]["good"], "```"]
    out += ["", "## Versions", STATES[entry["state"]]]
    known = entry.get("versions") or (versions if entry["state"] in ("now", "changed", "fixed") else {})
    if known:
        out += ["", "Tested with " + ", ".join(f"{k} {v}" for k, v in sorted(known.items())) + "."]
    if "versions" in entry:
        out[-1] = "Seen with " + ", ".join(f"{k} {v}" for k, v in sorted(known.items())) + "."
    if "references" in entry:
        out += ["", "Reports: " + ", ".join(link(r) for r in entry["references"]) + "."]
    return "\n".join(out) + "\n"


def link(reference: str) -> str:
    """An issue or a pull request as a link."""
    repository, number = reference.split("#")
    return f"[{reference}](https://github.com/{repository}/issues/{number})"


def index(entries: list[dict[str, Any]]) -> str:
    """The index, with the format of the catalogue."""
    out = [INTRODUCTION.rstrip()]
    bounds = [number for number, _ in SECTIONS[1:]] + [10**6]
    for (low, title), high in zip(SECTIONS, bounds, strict=True):
        rows = [e for e in entries if low <= int(e["id"][1:]) < high]
        if not rows:
            continue
        out += ["", f"## {title}", "| id | what | fix |", "|---|---|---|"]
        for e in rows:
            out.append(f"| [{e['id']}]({e['id']}.md) `{e['name']}` | {e['title']} | {e['fix']['kind']} |")
    return "\n".join(out) + "\n"


INTRODUCTION = """\
# Diagnostics

What `kernelwright check` and the editor say about a kernel, one page for each. An error that is not among
them has the id `D000`: it is shown whole, on its line, and never guessed.

These pages are made by `scripts/diagnostics_pages.py` from `agents/diagnostics.json`. To add or change an
entry edit that file, run the script, and run the tests; no C++ is needed.

## Format of agents/diagnostics.json
`entries[]`, each with
- `id` (`D` and a number), `name`, `title`, `severity` (error, warning, information, hint)
- `class`: where it is found, letters of T (trace), L (lowering), C (compiler), I (interpret mode), R (run
  time), S (a look at the code); `state`: now, changed, fixed, doc; `versions`: only where they matter
- `match[]`: alternatives, each an object in which everything given must hold: `text` (a pattern, or several
  that occur in this order in the message, in its `__cause__`, or in the last line of a callback's error),
  `primitive` (names, as whole words, after "Unimplemented primitive …:"), `exception` (classes), `stage`,
  `chips`, `traceback` (texts in the printed traceback), `source` (words in the function around the call),
  `empty` (no message at all), `set` (constants for the templates). An entry without `match` is found by a
  lint or by the checks.
- `beats[]`: ids that yield when both match; otherwise the entry that explains more of the text wins, then
  the first
- `hidden`: our own doing, never shown as an error of the kernel
- `locate`: what to mark: `frame` (default), `call`, `block_spec`, `index_map`, `scratch`, `operand`,
  `kernel`, `kernel_parameters`, `kernel_return`, `kernel_capture`, or `argument:NAME` of the call, its grid
  spec or its compiler parameters
- `message`, `fix.text`: one template or several; the first whose variables are all known is shown, and the
  last has none
- `cause`; `fix.kind`: auto, choose, do; `example.bad`, `example.good`; `references[]`:
  `owner/repository#number`

A pattern is text with holes, `{name:kind}` or `{:kind}`; kinds are `word`, `int`, `size`, `group` (balanced
brackets) and `line`; `{{` is a brace. A template names what was captured, `{name}` or `{name|filter}`;
filters are `size` (KiB), `block` (as in a BlockSpec) and `code`. Captures with a meaning: `operand` and
`operand_kind` (which BlockSpec; gives `operand_name`), `block` and `array` (give `rounded`, the nearest
legal block), `map_file` and `map_line`, `scratch_shape`, `function`, `takes`.
"""


def wanted() -> dict[pathlib.Path, str]:
    """Path and text of every page."""
    catalogue = json.loads(CATALOGUE.read_text())
    entries = catalogue["entries"]
    pages = {PAGES / f"{e['id']}.md": page(e, catalogue["checked_with"]) for e in entries}
    pages[PAGES / "README.md"] = index(entries)
    return pages


def main() -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    pages = wanted()
    stale = [p for p, text in pages.items() if not p.exists() or p.read_text() != text]
    extra = [p for p in PAGES.glob("*.md") if p not in pages]
    if options.check:
        for path in stale + extra:
            print(f"{path.relative_to(TOP)} is not what the catalogue says: run scripts/diagnostics_pages.py")
        return 1 if stale or extra else 0
    PAGES.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.write_text(pages[path])
    for path in extra:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
