"""Runs the role of a job's process and sends its result."""

from __future__ import annotations

import errno
import os
import socket
import traceback

from kernelwright.v1 import worker_pb2
from kernelwright_worker import framing
from kernelwright_worker.roles import compile as compile_role
from kernelwright_worker.roles import judge, probe, subject, trace

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def run(kind: str, role: str, payload: int, result: int, peers: list[int]) -> None:
    """Returns once the result is written. `peers` are the sockets of the other processes of a judge job."""
    data = _read(payload)
    os.close(payload)
    channels = [socket.socket(fileno=p) for p in peers]
    if kind == "subject":
        os.close(result)
        subject.serve(worker_pb2.JudgeJob.FromString(data), role, channels[0])
        return
    reply = worker_pb2.JobResult(role=role)
    try:
        if kind == "trace":
            reply.trace.CopyFrom(trace.run(worker_pb2.TraceJob.FromString(data)))
        elif kind == "compile":
            reply.compile.CopyFrom(compile_role.run(worker_pb2.CompileJob.FromString(data)))
        elif kind == "probe":
            reply.probe.CopyFrom(probe.run(worker_pb2.ProbeJob.FromString(data)))
        else:
            reply.judge.CopyFrom(judge.run(worker_pb2.JudgeJob.FromString(data), *channels))
        reply.outcome = worker_pb2.JobResult.DONE
    except MemoryError:
        _fail(reply, worker_pb2.JobResult.MEMORY)
    except OSError as error:
        disk = error.errno in _NO_SPACE
        _fail(reply, worker_pb2.JobResult.DISK if disk else worker_pb2.JobResult.CRASHED)
    framing.write_all(result, framing.encode_frame(reply.SerializeToString()))
    os.close(result)


def _fail(reply: worker_pb2.JobResult, outcome: worker_pb2.JobResult.Outcome) -> None:
    reply.outcome = outcome
    reply.detail = traceback.format_exc(limit=-8)


def _read(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    pieces: list[bytes] = []
    while data := os.read(descriptor, 1 << 20):
        pieces.append(data)
    return b"".join(pieces)
