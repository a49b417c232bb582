"""Runs a command and draws what it printed as an SVG picture of a terminal: the picture in README.md.

usage: python scripts/terminal_svg.py [--columns N] [--shown 'COMMAND AS SHOWN'] OUT.svg -- COMMAND…

Standard error comes first, as on a terminal while the command works, then standard output. Only text is
drawn, so the picture says exactly what the program said; a line longer than N columns is cut.
"""

from __future__ import annotations

import argparse
import html
import pathlib
import subprocess
import sys

LINE_HEIGHT = 18
COLUMN_WIDTH = 8.0
MARGIN = 16
STYLE = (
    "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "fill:#d6dbe4;white-space:pre}.prompt{fill:#8bd5a5}.add{fill:#8bd5a5}.del{fill:#f0a3a3}.head{fill:#9cc4f5}"
)


def style_of(line: str) -> str:
    """Class of a line: the parts of a diff, and the verdict."""
    if line.startswith("$ "):
        return "prompt"
    if line.startswith(("--- ", "+++ ", "@@ ")) or "faster (estimated)" in line:
        return "head"
    return {"+": "add", "-": "del"}.get(line[:1], "")


def picture(lines: list[str], columns: int) -> str:
    width = round(columns * COLUMN_WIDTH + 2 * MARGIN)
    height = len(lines) * LINE_HEIGHT + 2 * MARGIN
    body = []
    for number, line in enumerate(lines):
        text = line if len(line) <= columns else line[: columns - 1] + "…"
        y = MARGIN + LINE_HEIGHT * number + 13
        body.append(f'<text x="{MARGIN}" y="{y}" class="{style_of(line)}">{html.escape(text)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" xml:space="preserve"><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" rx="8" fill="#1c2128"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--columns", type=int, default=118)
    parser.add_argument(
        "--shown", default="", help="the command line to draw, when it differs from the real one"
    )
    if "--" not in sys.argv:
        parser.error("no command after --")
    split = sys.argv.index("--")
    arguments, command = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return done.returncode
    lines = [f"$ {arguments.shown or ' '.join(command)}"]
    lines += (done.stderr + done.stdout).rstrip("\n").splitlines()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(picture(lines, arguments.columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
