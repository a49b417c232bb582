"""Which processes a job needs, and what each of them is told: never more than its role may know."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection

from kernelwright.v1 import worker_pb2

from kernelwright_worker.imports import installed_imports
from kernelwright_worker.jobs import Job, Part, with_defaults


class PlanError(Exception):
    """The job's request cannot be carried out."""


def make_parts(job: Job, numbers: range, visible: list[str], loaded: Collection[str]) -> list[Part]:
    """Makes the processes of a job; the first one gives the job's result. Takes payloads out of
    `job.request`.
    """
    request = job.request
    assert request is not None
    limits = with_defaults(request.limits)
    kind = request.WhichOneof("kind")

    def part(
        offset: int, role: str, what: str, payload: bytes, source: worker_pb2.Source | None = None
    ) -> Part:
        made = Part(numbers[offset], job, role, what, limits, _memory_file(payload), visible=visible)
        if source is not None:
            overlay = {f.path: f.text for f in source.files}
            made.modules = installed_imports(source.file, overlay, loaded)
            made.hidden = sorted(overlay)
        return made

    if kind == "trace":
        _check_source(request.trace.source)
        return [part(0, "candidate", "trace", request.trace.SerializeToString(), request.trace.source)]
    if kind == "compile":
        return [part(0, "judge", "compile", request.compile.SerializeToString())]
    if kind == "probe":
        return [part(0, "judge", "probe", request.probe.SerializeToString())]
    if kind == "judge":
        return _judge_parts(request.judge, part)
    raise PlanError("the job names no work")


def _judge_parts(judge: worker_pb2.JudgeJob, part: object) -> list[Part]:
    make = part
    assert callable(make)
    _check_source(judge.reference)
    if not judge.reference_only:
        _check_source(judge.candidate)
    blind = worker_pb2.JudgeJob()
    blind.CopyFrom(judge)
    blind.ClearField("candidate")
    blind.ClearField("reference")
    parts: list[Part] = [make(0, "judge", "judge", blind.SerializeToString())]
    sources = [("oracle", judge.reference)]
    # The original itself is judged as a candidate: its text once in each role.
    sources.append(("candidate", judge.reference if judge.reference_only else judge.candidate))
    for offset, (role, source) in enumerate(sources, 1):
        told = worker_pb2.JudgeJob(candidate=source, chip=judge.chip, reference_only=judge.reference_only)
        subject: Part = make(offset, role, "subject", told.SerializeToString(), source)
        ours, theirs = socket.socketpair()
        parts[0].peers.append(ours.detach())
        subject.peers.append(theirs.detach())
        parts.append(subject)
    if not judge.reference_only:
        candidate = parts[-1]
        reference_files = {judge.reference.file, *(f.path for f in judge.reference.files)}
        candidate.hidden = sorted({*candidate.hidden, *reference_files})
    return parts


def _check_source(source: worker_pb2.Source) -> None:
    if not source.file or not source.function:
        raise PlanError("the source names no file or no function")
    for path in [source.file, *(f.path for f in source.files)]:
        if not os.path.isabs(path):
            raise PlanError(f"the path {path!r} is not absolute")


def _memory_file(payload: bytes) -> int:
    descriptor = os.memfd_create("payload", os.MFD_CLOEXEC)
    view = memoryview(payload)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def note_leftovers(result: worker_pb2.JobResult, subjects: list[Part]) -> None:
    """Adds to the verdict what only the watching process knows: processes left alive when the candidate had
    ended.
    """
    for part in subjects:
        if part.role == "candidate" and part.leftover() and result.HasField("judge"):
            gates = [g for g in result.judge.gates if g.gate == "G52"] or [result.judge.gates.add(gate="G52")]
            gates[0].status = worker_pb2.GateResult.FAIL
            gates[
                0
            ].reason = f"{part.leftover()} process(es) that it started were still alive when it had ended"
