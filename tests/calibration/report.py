"""What came out, as facts and as tables.

Errors by operation, a bare roofline beside them, the order of implementations.
"""

from __future__ import annotations

import collections
import statistics
from typing import Any

# Per core, as in agents/chips.json: bfloat16 peak in flop/s and HBM in bytes/s.
PEAKS = {"tpu7x": (1153.5e12, 3690e9), "v5e": (197e12, 819e9)}
GAP = 0.10  # two measured times closer than this are a tie

Fact = dict[str, Any]


def roofline(fact: Fact) -> float | None:
    """Least milliseconds for the flops of the algorithm's products and the bytes of arguments and results."""
    if not fact.get("flops") and not fact.get("bytes"):
        return None
    flops, bandwidth = PEAKS[fact["chip"]]
    return float(max(fact["flops"] / flops, fact["bytes"] / bandwidth) * 1e3)


def error(value: float, measured: float) -> float:
    return abs(value / measured - 1)


def median(values: list[float]) -> str:
    return f"{100 * statistics.median(values):.1f}" if values else "–"


def by_operation(facts: list[Fact]) -> list[str]:
    """The table of errors: fitted half, reported half, the roofline on the same entries."""
    groups: dict[tuple[str, str, str], list[Fact]] = collections.defaultdict(list)
    for fact in facts:
        groups[fact["chip"], fact["operation"], fact["implementation"]].append(fact)
        groups[fact["chip"], fact["operation"], "all"].append(fact)
    lines = [
        "| chip | operation | implementation | entries | refused | error, fitted half % | "
        "error, other half % | roofline, other half % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in sorted(groups):
        members = groups[key]
        if key[2] == "all" and len({m["implementation"] for m in members}) == 1:
            continue
        timed = [m for m in members if "estimate_ms" in m]
        cells = []
        for half in ("fit", "report"):
            cells.append(median([error(m["estimate_ms"], m["ms"]) for m in timed if m["half"] == half]))
        bare = [error(r, m["ms"]) for m in timed if m["half"] == "report" and (r := roofline(m)) is not None]
        lines.append(f"| {' | '.join(key)} | {len(members)} | {len(members) - len(timed)} | {cells[0]} | "
                     f"{cells[1]} | {median(bare)} |")  # fmt: skip
    return lines


def order(facts: list[Fact]) -> tuple[int, int, list[str]]:
    """(pairs in the right order, pairs, the wrong ones) of XLA against Pallas where the gap is above GAP."""
    shapes: dict[tuple[str, str, str], dict[str, Fact]] = collections.defaultdict(dict)
    for fact in facts:
        if "estimate_ms" in fact:
            shapes[fact["chip"], fact["operation"], fact["shape"]][fact["implementation"]] = fact
    right = total = 0
    wrong = []
    for (chip, operation, shape), members in sorted(shapes.items()):
        if "xla" not in members or "pallas" not in members:
            continue
        xla, pallas = members["xla"], members["pallas"]
        ratio = xla["ms"] / pallas["ms"]
        if max(ratio, 1 / ratio) <= 1 + GAP:
            continue
        total += 1
        predicted = xla["estimate_ms"] / pallas["estimate_ms"]
        if (predicted > 1) == (ratio > 1):
            right += 1
        else:
            wrong.append(
                f"{chip} {operation} {shape}: XLA / Pallas measured {ratio:.2f}, estimated {predicted:.2f}"
            )
    return right, total, wrong


def summary(facts: list[Fact]) -> str:
    right, total, wrong = order(facts)
    lines = by_operation(facts)
    timed = [f for f in facts if "estimate_ms" in f]
    lines += [
        "",
        f"{len(facts)} entries of {len({f['operation'] for f in facts})} operations: "
        f"{len(timed)} estimated, {len(facts) - len(timed)} refused or not compiled.",
        "",
        "XLA against Pallas of the same shape, measured more than 10 % apart: "
        f"{right} of {total} in the right order.",
    ]
    lines += [f"Wrong: {text}." for text in wrong]
    return "\n".join(lines)


def every_entry(facts: list[Fact]) -> str:
    lines = [
        "| entry | arguments | half | measured ms | estimate ms | roofline ms |",
        "|---|---|---|---|---|---|",
    ]
    for fact in sorted(facts, key=lambda f: f["name"]):
        bare = roofline(fact)
        value = f"{fact['estimate_ms']:.4g}" if "estimate_ms" in fact else fact["refusal"]
        arguments = fact["arguments"].replace("|", "/")
        lines.append(f"| {fact['name']} | {arguments} | {fact['half']} | {fact['ms']:.4g} | {value} | "
                     f"{'–' if bare is None else f'{bare:.4g}'} |")  # fmt: skip
    return "\n".join(lines)
