"""A job and its processes, as the router sees them: deadlines, output so far, how each ended."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
from typing import Any

from kernelwright.v1 import worker_pb2

from kernelwright_worker.framing import FrameDecoder, FramingError

Outcome = worker_pb2.JobResult

MAX_LOG_LINE = 4096
MAX_LOG_BYTES = 1 << 20
MAX_RESULT_BYTES = 1 << 29
_LAST_LINES = 20
_DEFAULT_DEADLINE_MILLISECONDS = 300_000
_DEFAULT_MEMORY_BYTES = 8 << 30
_DEFAULT_FILE_BYTES = 1 << 30


def with_defaults(limits: worker_pb2.Limits) -> worker_pb2.Limits:
    """Limits with every 0 replaced: no process runs without any."""
    return worker_pb2.Limits(
        deadline_milliseconds=limits.deadline_milliseconds or _DEFAULT_DEADLINE_MILLISECONDS,
        memory_bytes=limits.memory_bytes or _DEFAULT_MEMORY_BYTES,
        file_bytes=limits.file_bytes or _DEFAULT_FILE_BYTES,
    )


class LogLines:
    """Cuts what a process prints into lines of bounded length and bounded total."""

    def __init__(self) -> None:
        self._partial = b""
        self._sent = 0
        self.last: list[str] = []

    def feed(self, data: bytes) -> list[str]:
        """Adds output; returns the lines to pass on."""
        self._partial += data
        pieces = self._partial.split(b"\n")
        self._partial = pieces.pop()
        while len(self._partial) >= MAX_LOG_LINE:
            pieces.append(self._partial[:MAX_LOG_LINE])
            self._partial = self._partial[MAX_LOG_LINE:]
        return self._admit(pieces)

    def finish(self) -> list[str]:
        """The rest, when the process has ended."""
        rest, self._partial = self._partial, b""
        return self._admit([rest] if rest else [])

    def _admit(self, pieces: list[bytes]) -> list[str]:
        lines: list[str] = []
        for piece in pieces:
            for start in range(0, max(len(piece), 1), MAX_LOG_LINE):
                text = piece[start : start + MAX_LOG_LINE].decode("utf-8", "replace").rstrip("\r")
                # A replaced byte takes three: keep the promise in bytes.
                text = text.encode()[:MAX_LOG_LINE].decode("utf-8", "ignore")
                self.last = [*self.last, text][-_LAST_LINES:]
                if self._sent <= MAX_LOG_BYTES:
                    self._sent += len(text) + 1
                    full = self._sent > MAX_LOG_BYTES
                    lines.append("… more output is not passed on" if full else text)
        return lines


@dataclasses.dataclass
class Part:
    """One process of a job."""

    number: int
    job: Job
    role: str
    kind: str
    limits: worker_pb2.Limits
    payload: int  # descriptor of an anonymous file
    peers: list[int] = dataclasses.field(default_factory=list)
    modules: tuple[str, ...] = ()
    visible: list[str] = dataclasses.field(default_factory=list)
    hidden: list[str] = dataclasses.field(default_factory=list)
    folder: str = ""
    started: float = 0.0  # monotonic; 0 while it waits for its fork server
    grace: float = 0.0  # monotonic; by then it must have ended by itself, since its job is over
    template: Any = None  # Template that it was forked from, None for the first fork server
    pid: int = 0
    pidfd: int = -1
    result_pipe: int = -1
    log_pipe: int = -1
    status_pipe: int = -1
    decoder: FrameDecoder = dataclasses.field(default_factory=lambda: FrameDecoder(MAX_RESULT_BYTES))
    messages: list[bytes] = dataclasses.field(default_factory=list)
    log: LogLines = dataclasses.field(default_factory=LogLines)
    status: bytes = b""
    killed: int = 0  # outcome that the router decided on before it killed the process
    killed_detail: str = ""
    broken_result: str = ""
    gone: bool = False  # the watching process has ended, and the kernel is done with all that it left
    reported: bool = False  # its status pipe is closed
    ended: bool = False

    @property
    def deadline(self) -> float:
        """Monotonic time at which the process is killed."""
        return self.started + self.limits.deadline_milliseconds / 1000

    def take_result(self, data: bytes) -> None:
        """Adds bytes of the private result pipe."""
        if self.broken_result:
            return
        try:
            self.messages += self.decoder.feed(data)
        except FramingError as error:
            self.broken_result = str(error)

    def report(self) -> dict[str, Any]:
        """What the watching process said about the end."""
        try:
            found = json.loads(self.status.splitlines()[0]) if self.status else {}
        except ValueError:
            found = {}
        return found if isinstance(found, dict) else {}

    def conclusion(self) -> worker_pb2.JobResult:
        """How the process ended, as a result. Call once it has ended."""
        report = self.report()
        # An end of its own that was only noticed after the rest of the job had been cancelled is still its
        # own.
        own_end = self.killed == Outcome.CANCELLED and ("signal" in report or report.get("exit"))
        if self.killed and not own_end:
            return self._failure(self.killed, self.killed_detail)
        if "setup" in report:
            return self._failure(Outcome.SANDBOX, f"the process could not be isolated: {report['setup']}")
        if report.get("signal") == signal.SIGXFSZ:
            return self._failure(
                Outcome.DISK, f"a file grew past the limit of {self.limits.file_bytes} bytes"
            )
        if report.get("signal") == signal.SIGXCPU:
            return self._failure(Outcome.DEADLINE, "the limit of processor time was reached")
        if "signal" in report:
            return self._failure(Outcome.CRASHED, f"ended by {_signal_name(report['signal'])}")
        if self.broken_result:
            return self._failure(Outcome.CRASHED, f"its result pipe is broken: {self.broken_result}")
        if self.kind == "subject":
            if report.get("exit") == 0:
                return worker_pb2.JobResult(outcome=Outcome.DONE)
            return self._failure(Outcome.CRASHED, f"ended early: {_exit_text(report)}")
        if len(self.messages) != 1 or self.decoder.pending:
            return self._failure(Outcome.CRASHED, f"ended without a result: {_exit_text(report)}")
        result = worker_pb2.JobResult()
        try:
            result.ParseFromString(self.messages[0])
        except Exception as error:  # protobuf's DecodeError; anything odd is the process's fault
            return self._failure(Outcome.CRASHED, f"its result cannot be read: {error}")
        if result.outcome == Outcome.OUTCOME_UNSPECIFIED:
            return self._failure(Outcome.CRASHED, "its result has no outcome")
        return result

    def leftover(self) -> int:
        """Processes that were alive when the job's own process had ended."""
        return int(self.report().get("leftover", 0))

    def _failure(self, outcome: int, detail: str) -> worker_pb2.JobResult:
        if self.log.last and outcome in (Outcome.CRASHED, Outcome.SANDBOX, Outcome.MEMORY):
            detail += "\nLast lines of its log:\n" + "\n".join(self.log.last)
        result = worker_pb2.JobResult(detail=detail, role=self.role)
        result.outcome = outcome  # type: ignore[assignment]
        return result


@dataclasses.dataclass
class Job:
    """A job that was accepted."""

    id: int
    request: worker_pb2.Job | None  # dropped once its processes have their payloads
    parts: list[Part] = dataclasses.field(default_factory=list)
    started: float = dataclasses.field(default_factory=time.monotonic)
    cancelled: bool = False

    def finished(self) -> bool:
        """Whether all of its processes have ended."""
        return bool(self.parts) and all(p.ended for p in self.parts)


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    return f"{name} (a check inside a library failed)" if name == "SIGABRT" else name


def _exit_text(report: dict[str, Any]) -> str:
    if "exit" in report:
        return f"exit status {report['exit']}"
    return "it was killed from outside"
