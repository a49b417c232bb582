"""Draws what a command printed as a picture for README.md.

usage: COMMAND 2>&1 | python scripts/terminal_svg.py 'COMMAND as shown' > docs/media/NAME.svg

Lines are cut at 118 columns. Lines of a diff get their usual colours; everything else is as it was printed.
"""

from __future__ import annotations

import html
import re
import sys

COLUMNS, CHARACTER, LINE, MARGIN = 118, 7.8, 17, 16
FONTS = "ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def colour(line: str) -> str:
    if line.startswith("+") and not line.startswith("+++"):
        return "#7ee787"
    if line.startswith("-") and not line.startswith("---"):
        return "#ffa198"
    if line.startswith("@@"):
        return "#79c0ff"
    return "#e6edf3"


def draw(command: str, lines: list[str]) -> str:
    shown = [f"$ {command}", *lines]
    width = round(COLUMNS * CHARACTER + 2 * MARGIN)
    height = LINE * len(shown) + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        f"<title>{html.escape(command)}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
        f'<g font-family="{FONTS}" font-size="13" xml:space="preserve">',
    ]
    for number, line in enumerate(shown):
        cut = line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…"
        fill = "#f0c674" if number == 0 else colour(cut)
        y = MARGIN + LINE * number + 12
        parts.append(f'<text x="{MARGIN}" y="{y}" fill="{fill}">{html.escape(cut)}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__, file=sys.stderr)
        return 2
    lines = [ESCAPES.sub("", line) for line in sys.stdin.read().rstrip("\n").split("\n")]
    sys.stdout.write(draw(sys.argv[1], lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
