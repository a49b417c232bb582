"""The result object of optimize and tune as docs/json.md has it, checked by hand-written types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NUMBER = (int, float)
TEXT = (str,)
OBJECT = (dict,)
LIST = (list,)
NULL = (type(None),)

TOP = {
    "schema_version": (int,),
    "command": TEXT,
    "run": TEXT,
    "status": TEXT,
    "message": TEXT,
    "exit_code": (int,),
    "file": TEXT,
    "function": TEXT,
    "reference": OBJECT,
    "inputs": TEXT,
    "inputs_origin": TEXT,
    "python": TEXT,
    "sandbox": TEXT,
    "results": LIST,
}
CHIP = {
    "chip": TEXT,
    "status": TEXT,
    "message": TEXT,
    "error": OBJECT + NULL,
    "original": OBJECT,
    "best": OBJECT + NULL,
    "speedup": NUMBER + NULL,
    "verdict": TEXT + NULL,
    "evidence": OBJECT + NULL,
    "bound": TEXT + NULL,
    "roofline_fraction": NUMBER + NULL,
    "plan": LIST,
    "candidates": LIST,
    "compiles": (int,),
    "compiles_cached": (int,),
    "seconds": NUMBER,
}
COST = {
    "estimate_ms": NUMBER,
    "evidence": OBJECT,
    "bound": TEXT,
    "roofline_fraction": NUMBER,
    "floor_ms": NUMBER,
    "dma_bytes": NUMBER,
    "kernels": LIST,
    "warnings": LIST,
}
BEST = {
    **COST,
    "id": TEXT,
    "what": TEXT,
    "content_sha256": TEXT,
    "file": TEXT,
    "diff": TEXT,
    "edits": LIST,
    "gates": LIST,
    "candidate_error": NUMBER,
    "reference_error": NUMBER,
}
EVIDENCE = {
    "class": TEXT,
    "method": TEXT,
    "chip": TEXT,
    "versions": OBJECT,
    "interval": LIST,
    "confidence": TEXT,
}
KERNEL = {
    "name": TEXT,
    "cycles": NUMBER,
    "dma_wait_cycles": NUMBER,
    "dma_bytes": NUMBER,
    "loop_iterations": NUMBER,
    "bound": TEXT,
}
GATE = {"gate": TEXT, "status": TEXT, "reason": TEXT}
EDIT = {"file": TEXT, "base_sha256": TEXT, "new_text": TEXT}
STEP = {
    "id": TEXT,
    "title": TEXT,
    "file": TEXT,
    "line": (int,),
    "end_line": (int,),
    "reason": TEXT,
    "expected_gain": TEXT,
    "evidence": TEXT,
    "content_sha256": TEXT,
}
CANDIDATE = {
    "id": TEXT,
    "status": TEXT,
    "what": TEXT,
    "gate": TEXT,
    "why": TEXT,
    "estimate_ms": NUMBER + NULL,
    "ranked_ms": NUMBER + NULL,
    "content_sha256": TEXT,
    "milliseconds": NUMBER,
    "compile_cached": (bool,),
}
REFERENCE = {"file": TEXT, "function": TEXT, "sha256": TEXT}
STATUSES = {"improved", "no_improvement", "failed", "cancelled"}


class Checker:
    def __init__(self) -> None:
        self.problems: list[str] = []

    def fields(self, where: str, value: Any, types: Mapping[str, tuple[type, ...]]) -> bool:
        if not isinstance(value, dict):
            self.problems.append(f"{where} is no object")
            return False
        for name, allowed in types.items():
            if name not in value:
                self.problems.append(f"{where}.{name} is missing")
            elif not isinstance(value[name], allowed) or (
                isinstance(value[name], bool) and bool not in allowed
            ):
                self.problems.append(f"{where}.{name} is a {type(value[name]).__name__}")
        return True

    def each(self, where: str, values: Any, types: Mapping[str, tuple[type, ...]]) -> None:
        for i, value in enumerate(values if isinstance(values, list) else []):
            self.fields(f"{where}[{i}]", value, types)

    def evidence(self, where: str, value: Any) -> None:
        if not self.fields(where, value, EVIDENCE):
            return
        interval = value.get("interval")
        if not isinstance(interval, list) or len(interval) != 2 or interval[0] > interval[1]:
            self.problems.append(f"{where}.interval is {interval}")
        if not value.get("versions") or not value.get("chip"):
            self.problems.append(f"{where} names no versions or no chip")

    def cost(self, where: str, value: Any, types: Mapping[str, tuple[type, ...]]) -> None:
        if self.fields(where, value, types):
            self.evidence(f"{where}.evidence", value.get("evidence"))
            self.each(f"{where}.kernels", value.get("kernels"), KERNEL)
            self.each(f"{where}.gates", value.get("gates"), GATE)
            self.each(f"{where}.edits", value.get("edits"), EDIT)

    def chip(self, where: str, value: Any) -> None:
        if not self.fields(where, value, CHIP):
            return
        if value.get("status") not in STATUSES:
            self.problems.append(f"{where}.status is {value.get('status')}")
        original = value.get("original") or {}
        self.fields(f"{where}.original", original, {"refusal": OBJECT + NULL, "gates": LIST})
        if original.get("estimate_ms") is not None:
            self.cost(f"{where}.original", original, COST)
        if value.get("best") is not None:
            self.cost(f"{where}.best", value["best"], BEST)
            self.evidence(f"{where}.evidence", value.get("evidence"))
        if value.get("status") == "improved" and not (value.get("best") or {}).get("edits"):
            self.problems.append(f"{where} is improved without edits")
        self.each(f"{where}.plan", value.get("plan"), STEP)
        self.each(f"{where}.candidates", value.get("candidates"), CANDIDATE)


def check_result(result: Any) -> list[str]:
    """What is wrong with a result object; empty when it keeps the contract."""
    checker = Checker()
    if not checker.fields("result", result, TOP):
        return checker.problems
    checker.fields("result.reference", result.get("reference"), REFERENCE)
    if result.get("status") not in STATUSES:
        checker.problems.append(f"result.status is {result.get('status')}")
    chips = result.get("results") or []
    for i, chip in enumerate(chips):
        checker.chip(f"results[{i}]", chip)
    if len(chips) == 1:
        for name, value in chips[0].items():
            if name != "message" and (name not in result or result[name] != value):
                checker.problems.append(f"result.{name} is not repeated at the top level")
    return checker.problems
