"""Runs the role of a job's process and sends its result."""

from __future__ import annotations

import os
import socket
import traceback

from kernelwright.v1 import worker_pb2

from kernelwright_worker import framing
from kernelwright_worker.judging.peer import PeerGone
from kernelwright_worker.roles import compile as compile_role
from kernelwright_worker.roles import judge, probe, subject, trace


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
    except PeerGone as gone:  # the router puts a better reason in its place when it knows one
        reply.role = gone.role
        reply.outcome = worker_pb2.JobResult.CRASHED
        reply.detail = "the process ended by itself before its work was done"
    except MemoryError:
        _fail(reply, worker_pb2.JobResult.MEMORY)
    except OSError as error:
        _fail(reply, worker_pb2.JobResult.CRASHED)
        if error.errno in trace.NO_SPACE:
            reply.outcome = worker_pb2.JobResult.DISK
            reply.detail = f"its private folder is full, or a file grew past the limit: {error}"
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
