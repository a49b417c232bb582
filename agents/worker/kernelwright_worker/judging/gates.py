"""The verdicts of one judge job, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Iterable

from kernelwright.v1 import worker_pb2

Status = worker_pb2.GateResult

KERNEL_GATES = ("G20", "G21")
ORIGINAL_GATES = ("G30", "G31", "G42", "G43", "G45", "G50", "G52")
CANDIDATE_GATES = ("G30", "G31", "G40", "G42", "G43", "G45", "G46", "G50", "G52")


class Gates:
    """A gate without a verdict is "not run", and that is never a pass."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        self._failed: dict[str, str] = {}
        self._passed: dict[str, str] = {}
        self._not_run: dict[str, str] = {}

    def fail(self, gate: str, reason: str) -> None:
        """The first reason counts."""
        if gate in self._names:
            self._failed.setdefault(gate, reason)

    def passed(self, gate: str, reason: str = "") -> None:
        """Holds unless something fails it as well."""
        if gate in self._names:
            self._passed.setdefault(gate, reason)

    def not_run(self, gate: str, reason: str) -> None:
        """Why there is no verdict."""
        self._not_run.setdefault(gate, reason)

    @property
    def failures(self) -> list[str]:
        """Gates that failed, in order."""
        return [g for g in self._names if g in self._failed]

    def results(self, stopped: str) -> list[worker_pb2.GateResult]:
        """All verdicts; `stopped` is the reason of gates that nobody came to."""
        found: list[worker_pb2.GateResult] = []
        for gate in self._names:
            if gate in self._failed:
                found.append(worker_pb2.GateResult(gate=gate, status=Status.FAIL, reason=self._failed[gate]))
            elif gate in self._passed:
                found.append(worker_pb2.GateResult(gate=gate, status=Status.PASS, reason=self._passed[gate]))
            else:
                reason = self._not_run.get(gate, stopped)
                found.append(worker_pb2.GateResult(gate=gate, status=Status.NOT_RUN, reason=reason))
        return found
