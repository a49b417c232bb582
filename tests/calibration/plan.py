"""In which order entries are compiled: cheap ones first, all operations alike.

Both implementations of a shape come together.
"""

from __future__ import annotations

import collections
import itertools
from typing import TYPE_CHECKING

# Run as scripts from this folder; the type checker sees them as a package.
if TYPE_CHECKING:
    from calibration.entries import Entry
else:
    from entries import Entry


def order(entries: list[Entry]) -> list[Entry]:
    """Rounds over (chip, operation, paired or not); each round takes the cheapest shape that is left."""
    shapes: dict[tuple[str, str, str], list[Entry]] = collections.defaultdict(list)
    for entry in entries:
        shapes[entry.chip, entry.operation, entry.shape].append(entry)
    groups: dict[tuple[str, str, bool], list[list[Entry]]] = collections.defaultdict(list)
    for (chip, operation, _), members in shapes.items():
        groups[chip, operation, len({member.implementation for member in members}) > 1].append(members)
    for units in groups.values():
        units.sort(key=lambda unit: (sum(entry.compile_seconds for entry in unit), unit[0].name))
    queue = []
    for turn in itertools.zip_longest(*(groups[key] for key in sorted(groups))):
        queue += [entry for unit in turn if unit for entry in unit]
    return queue


def half(entry: Entry) -> str:
    """Is "fit" or "report": by shape, so that both implementations of one problem are in the same half."""
    return "fit" if int(entry.shape, 16) % 2 == 0 else "report"
