"""The router: one thread between the daemon's pipe and the processes of running jobs.

It never runs user code and never waits for a job. It decides which processes a job needs and how the job
ended, and ends everything when the daemon goes away.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import deque
from typing import Any

from google.protobuf.message import DecodeError
from kernelwright.v1 import worker_pb2

from kernelwright_worker import PROTOCOL_VERSION, framing, plan
from kernelwright_worker.jobs import Job, Outcome, Part
from kernelwright_worker.processes import READ_BYTES, Loop, Processes
from kernelwright_worker.sandbox import bubblewrap, linux

_PARTS_PER_JOB = 4
_GRACE_SECONDS = 2.0
_SANDBOX = {
    "bubblewrap": worker_pb2.HelloReply.BUBBLEWRAP,
    "landlock": worker_pb2.HelloReply.LANDLOCK,
    "none": worker_pb2.HelloReply.NONE,
}


def serve(requests: int, replies: int, options: argparse.Namespace) -> int:
    """Runs until the daemon closes its end or asks for the end. Returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the daemon's to handle
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if options.level == "bubblewrap":
        linux.die_with_parent(signal.SIGKILL)  # bubblewrap's own process, which a kill of the worker hits
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    return Router(requests, replies, options).run()


class Router:
    """State of the connection."""

    def __init__(self, requests: int, replies: int, options: argparse.Namespace) -> None:
        self._options = options
        self._requests, self._replies = requests, replies
        self._decoder = framing.FrameDecoder()
        self._loop = Loop()
        self._ready: dict[str, Any] | None = None
        self._hello: worker_pb2.WorkerRequest | None = None
        self._parallel = 1
        self._queue: deque[Job] = deque()
        self._running: dict[int, Job] = {}
        self._next_part = 0
        self._stopping = False
        self._visible = bubblewrap.visible_paths([*options.read_only, *options.runtime])
        self._processes = Processes(
            self._loop, options.level, self._jax_ready, self._pass_log, self._part_ended, self._lost
        )

    def run(self) -> int:
        """The event loop."""
        self._loop.watch(self._requests, self._read_requests)
        while not (self._stopping and not self._running):
            self._loop.turn(self._processes.timeout())
            self._processes.check_limits()
            self._reap()
        self._processes.close()
        return 0

    # ---- daemon

    def _read_requests(self) -> None:
        data = os.read(self._requests, READ_BYTES)
        if not data:
            self._stop()
            return
        try:
            frames = self._decoder.feed(data)
        except framing.FramingError as error:
            self._refuse(0, f"{error}: the connection is closed")
            self._stop()
            return
        for frame in frames:
            request = worker_pb2.WorkerRequest()
            try:
                request.ParseFromString(frame)
            except DecodeError as error:
                self._refuse(0, f"not a WorkerRequest: {error}")
                continue
            self._handle(request)

    def _handle(self, request: worker_pb2.WorkerRequest) -> None:
        kind = request.WhichOneof("kind")
        if kind == "hello":
            self._hello = request
            self._parallel = max(1, request.hello.parallel_jobs)
            self._say_hello()
        elif kind == "shutdown":
            self._stop()
        elif kind == "cancel":
            self._cancel(request.cancel.job)
        elif kind == "job" and self._hello is None:
            self._refuse(request.id, "the first request must be Hello")
        elif kind == "job" and self._known(request.id):
            self._refuse(request.id, f"a job with id {request.id} is running or waiting")
        elif kind == "job":
            self._queue.append(Job(request.id, request.job))
            self._start_jobs()
        else:
            self._refuse(request.id, "the request names nothing that this worker knows")

    def _known(self, job: int) -> bool:
        return job in self._running or any(j.id == job for j in self._queue)

    def _jax_ready(self, message: dict[str, Any]) -> None:
        self._ready = message
        self._say_hello()
        self._start_jobs()

    def _say_hello(self) -> None:
        if self._hello is None or self._ready is None:
            return
        started = self._options.started
        reply = worker_pb2.HelloReply(
            protocol_version=PROTOCOL_VERSION,
            versions=self._ready["versions"],
            python=sys.executable,
            sandbox=_SANDBOX[self._options.level],
            sandbox_detail=self._options.detail,
            pid=os.getpid(),
            start_milliseconds=max(1, (time.monotonic_ns() - started) // 1_000_000) if started else 0,
            private_namespaces=self._options.level == "bubblewrap",
            problem=self._ready["problem"],
        )
        self._send(worker_pb2.WorkerReply(id=self._hello.id, hello=reply))

    def _refuse(self, request: int, why: str) -> None:
        self._send(worker_pb2.WorkerReply(id=request, protocol_error=why))

    def _send(self, reply: worker_pb2.WorkerReply) -> None:
        try:
            framing.write_all(self._replies, framing.encode_frame(reply.SerializeToString()))
        except BrokenPipeError:
            self._stop()

    def _lost(self) -> None:
        if not self._stopping:
            self._refuse(0, "the worker's fork server ended: start a new worker")
            self._stop()

    def _stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        self._loop.unwatch(self._requests)
        while self._queue:
            self._finish_waiting(self._queue.popleft(), "the worker was asked to end")
        for job in list(self._running.values()):
            self._kill_job(job, "the worker was asked to end")

    # ---- jobs

    def _start_jobs(self) -> None:
        while self._queue and len(self._running) < self._parallel and self._ready is not None:
            job = self._queue.popleft()
            job.started = time.monotonic()
            numbers = range(self._next_part, self._next_part + _PARTS_PER_JOB)
            self._next_part += _PARTS_PER_JOB
            try:
                job.parts = plan.make_parts(job, numbers, self._visible, self._ready["loaded"])
            except plan.PlanError as error:
                self._refuse(job.id, str(error))
                continue
            job.request = None
            self._running[job.id] = job
            for part in job.parts:
                self._processes.start(part)

    def _pass_log(self, part: Part, lines: list[str]) -> None:
        for text in lines:
            log = worker_pb2.JobLog(role=part.role, text=text)
            self._send(worker_pb2.WorkerReply(id=part.job.id, log=log))

    def _part_ended(self, part: Part) -> None:
        job = part.job
        if part is job.parts[0] or part.killed or part.conclusion().outcome != Outcome.DONE:
            for other in job.parts:  # nobody waits for the rest any more
                if not other.ended and other.kind == "subject" and not job.cancelled:
                    # It ends by itself, and tells what it leaves behind.
                    other.grace = time.monotonic() + _GRACE_SECONDS
                elif not other.ended:
                    why = "another process of its job ended first"
                    self._processes.kill(other, Outcome.CANCELLED, why)
        if job.finished():
            self._finish(job)

    def _finish(self, job: Job) -> None:
        if self._running.pop(job.id, None) is None:
            return
        result = self._conclude(job)
        result.milliseconds = int((time.monotonic() - job.started) * 1000)
        self._send(worker_pb2.WorkerReply(id=job.id, result=result))
        self._start_jobs()

    @staticmethod
    def _conclude(job: Job) -> worker_pb2.JobResult:
        if job.cancelled:
            return worker_pb2.JobResult(outcome=Outcome.CANCELLED, detail=job.parts[0].killed_detail)
        # A limit that was hit explains everything else; then what befell candidate and oracle.
        blamed = [p for p in job.parts if p.killed and p.killed != Outcome.CANCELLED]
        for part in [*blamed, *job.parts[1:]]:
            conclusion = part.conclusion()
            if conclusion.outcome not in (Outcome.DONE, Outcome.CANCELLED):
                return conclusion
        result = job.parts[0].conclusion()
        plan.note_leftovers(result, job.parts[1:])
        return result

    def _finish_waiting(self, job: Job, why: str) -> None:
        result = worker_pb2.JobResult(outcome=Outcome.CANCELLED, detail=why)
        self._send(worker_pb2.WorkerReply(id=job.id, result=result))

    def _cancel(self, number: int) -> None:
        if number in self._running:
            self._kill_job(self._running[number], "cancelled")
            return
        for job in self._queue:
            if job.id == number:
                self._queue.remove(job)
                self._finish_waiting(job, "cancelled while it waited")
                return

    def _kill_job(self, job: Job, why: str) -> None:
        job.cancelled = True
        for part in job.parts:
            self._processes.kill(part, Outcome.CANCELLED, why)

    @staticmethod
    def _reap() -> None:
        """Orphans that came here, as to process 1."""
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
