"""Plays the daemon: starts a worker, sends requests, collects replies."""

from __future__ import annotations

import os
import pathlib
import select
import subprocess
import sys
import time
from collections.abc import Sequence

from kernelwright.v1 import ir_pb2, worker_pb2
from kernelwright_worker import framing

TOP = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(__file__).resolve().parent / "data"
PACKAGE = TOP / "agents" / "worker"
GENERATED = pathlib.Path(worker_pb2.__file__).resolve().parents[2]
Outcome = worker_pb2.JobResult
Gate = worker_pb2.GateResult


def python() -> str:
    """Interpreter of the worker: the product's environment where the tests know it, else their own."""
    environment = os.environ.get("KW_PYTHON_ENV", "")
    path = pathlib.Path(environment) / "bin" / "python"
    return str(path) if environment and path.exists() else sys.executable


def command(*arguments: str) -> list[str]:
    """Command line of a worker."""
    return [python(), "-m", "kernelwright_worker", "--runtime", str(GENERATED), *arguments]


def environment() -> dict[str, str]:
    """What the daemon passes: a secret too, so that tests can look for it."""
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(PACKAGE),
        "HOME": os.path.expanduser("~"),
        "API_KEY": "secret",
    }


class Worker:
    """A running worker. Use as a context manager."""

    def __init__(self, *read_only: pathlib.Path, sandbox: str = "auto", extra: Sequence[str] = ()) -> None:
        arguments = ["--sandbox", sandbox]
        for root in read_only:
            arguments += ["--read-only", str(root)]
        self.process = subprocess.Popen(
            command(*arguments, *extra),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            cwd="/",
        )
        self._decoder = framing.FrameDecoder()
        self._replies: list[worker_pb2.WorkerReply] = []
        self._last_id = 0
        self.logs: list[worker_pb2.JobLog] = []

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> int:
        """Closes the pipe, as a daemon that ends does; returns the exit status."""
        assert self.process.stdin is not None and self.process.stdout is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            return self.process.wait(60)
        finally:
            self.process.stdout.close()

    def send_bytes(self, data: bytes) -> None:
        """Sends anything at all."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, request: worker_pb2.WorkerRequest) -> int:
        """Sends a request under the next id."""
        self._last_id += 1
        request.id = self._last_id
        self.send_bytes(framing.encode_frame(request.SerializeToString()))
        return self._last_id

    def receive(self, seconds: float = 120) -> worker_pb2.WorkerReply:
        """The next reply."""
        limit = time.monotonic() + seconds
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        while not self._replies:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, limit - time.monotonic()))
            if not ready:
                raise TimeoutError("the worker does not answer")
            data = os.read(descriptor, 1 << 20)
            if not data:
                raise EOFError(f"the worker ended with status {self.process.wait()}")
            self._replies += [worker_pb2.WorkerReply.FromString(m) for m in self._decoder.feed(data)]
        return self._replies.pop(0)

    def hello(self, parallel_jobs: int = 2) -> worker_pb2.HelloReply:
        """Opens the connection."""
        request = worker_pb2.Hello(protocol_version=1, parallel_jobs=parallel_jobs)
        self.send(worker_pb2.WorkerRequest(hello=request))
        reply = self.receive()
        assert reply.HasField("hello"), reply
        return reply.hello

    def submit(self, job: worker_pb2.Job) -> int:
        """Sends a job; returns its id."""
        return self.send(worker_pb2.WorkerRequest(job=job))

    def result(self, job: int) -> worker_pb2.JobResult:
        """Waits for the result of a job, keeping what is logged meanwhile."""
        while True:
            reply = self.receive()
            if reply.HasField("log"):
                self.logs.append(reply.log)
            elif reply.HasField("result") and reply.id == job:
                return reply.result
            else:
                raise AssertionError(f"unexpected reply: {reply}")

    def run(self, job: worker_pb2.Job) -> worker_pb2.JobResult:
        """Carries out a job."""
        self.logs = []
        return self.result(self.submit(job))


def source(
    file: pathlib.Path, function: str, *others: pathlib.Path, text: str | None = None
) -> worker_pb2.Source:
    """A source with the texts of its files; `text` replaces that of the entry file."""
    found = worker_pb2.Source(file=str(file), function=function)
    for path in (file, *others):
        data = text.encode() if text is not None and path == file else path.read_bytes()
        found.files.append(worker_pb2.FileText(path=str(path), text=data))
    return found


def array(path: str, dtype: str, *dims: int) -> worker_pb2.InputSpec:
    """An array input."""
    kind = ir_pb2.TensorType(dtype=dtype, dims=dims)
    return worker_pb2.InputSpec(path=path, tensor=worker_pb2.TensorInput(type=kind))


def static(path: str, text: str) -> worker_pb2.InputSpec:
    """A static input, as JSON."""
    return worker_pb2.InputSpec(path=path, static_json=text)


def key(path: str) -> worker_pb2.InputSpec:
    """A PRNG key."""
    return worker_pb2.InputSpec(path=path, prng_key=True)


def trace_job(
    what: worker_pb2.Source,
    *inputs: worker_pb2.InputSpec,
    chips: Sequence[str] = ("v6e",),
    program: bool = True,
    artefacts: bool = False,
    limits: worker_pb2.Limits | None = None,
) -> worker_pb2.Job:
    """A trace."""
    trace = worker_pb2.TraceJob(
        source=what, inputs=inputs, chips=chips, want_program=program, want_artefacts=artefacts
    )
    return worker_pb2.Job(limits=limits or worker_pb2.Limits(deadline_milliseconds=60_000), trace=trace)


def judge_job(
    candidate: worker_pb2.Source,
    reference: worker_pb2.Source,
    *shapes: Sequence[worker_pb2.InputSpec],
    claims_kernel: bool = True,
    reference_only: bool = False,
    only: Sequence[str] = (),
) -> worker_pb2.Job:
    """A judgement at some shapes, by all gates or by some."""
    named = [worker_pb2.CheckShape(name=f"shape-{i}", inputs=s) for i, s in enumerate(shapes)]
    judge = worker_pb2.JudgeJob(
        candidate=candidate,
        reference=reference,
        shapes=named,
        seeds=[20_001, 20_002],
        claims_kernel=claims_kernel,
        reference_only=reference_only,
        only_gates=only,
        chip="v6e",
    )
    return worker_pb2.Job(limits=worker_pb2.Limits(deadline_milliseconds=120_000), judge=judge)


def gates(result: worker_pb2.JobResult, status: Gate.Status) -> dict[str, str]:
    """Gates with a verdict, and their reasons."""
    return {g.gate: g.reason for g in result.judge.gates if g.status == status}
