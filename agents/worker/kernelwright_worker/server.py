"""The router: one thread between the daemon's pipe, the fork servers, and the pipes of running jobs.

It never runs user code and never blocks on a job. It owns deadlines and limits, decides how a job ended, and ends
everything when the daemon goes away.
"""

from __future__ import annotations

import argparse
import os
import selectors
import shutil
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError
from kernelwright.v1 import worker_pb2

from kernelwright_worker import PROTOCOL_VERSION, forkserver, framing, memory, messages, plan
from kernelwright_worker.jobs import Job, Outcome, Part
from kernelwright_worker.sandbox import bubblewrap, linux
from kernelwright_worker.templates import Template, Templates

_READ_BYTES = 1 << 20
_WATCH_SECONDS = 0.05
_PARTS_PER_JOB = 4
_DRAIN_SECONDS = 5.0
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
    linux.die_with_parent(signal.SIGKILL) if options.level == "bubblewrap" else None
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    return Router(requests, replies, options).run()


class Router:
    """State of the connection."""

    def __init__(self, requests: int, replies: int, options: argparse.Namespace) -> None:
        self._options = options
        self._requests, self._replies = requests, replies
        self._decoder = framing.FrameDecoder()
        self._selector = selectors.DefaultSelector()
        self._server_pid, first = forkserver.start(options.level)
        self._templates = Templates(first, self._release)
        self._first = first
        self._ready: dict[str, Any] | None = None
        self._hello: worker_pb2.WorkerRequest | None = None
        self._parallel = 1
        self._queue: deque[Job] = deque()
        self._running: dict[int, Job] = {}
        self._parts: dict[int, Part] = {}
        self._next_part = 0
        self._stopping = False
        self._next_watch = 0.0
        self._visible = bubblewrap.visible_paths([*options.read_only, *options.runtime])

    def run(self) -> int:
        """The event loop."""
        self._watch(self._requests, self._read_requests)
        self._watch(self._first.fileno(), lambda: self._read_server(None))
        while not (self._stopping and not self._running):
            for key, _events in self._selector.select(self._timeout()):
                if key.fd in self._selector.get_map():  # an earlier handler may have closed it
                    key.data()
            self._check_limits()
            self._reap()
        self._first.close()
        for template in self._templates.all():
            self._templates.discard(template, unusable=False)
        try:
            os.kill(self._server_pid, signal.SIGKILL)
            os.waitpid(self._server_pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        return 0

    # ---- daemon

    def _read_requests(self) -> None:
        data = os.read(self._requests, _READ_BYTES)
        if not data:
            self._stop()
            return
        try:
            frames = self._decoder.feed(data)
        except framing.FramingError as error:
            self._send(worker_pb2.WorkerReply(protocol_error=f"{error}: the connection is closed"))
            self._stop()
            return
        for frame in frames:
            request = worker_pb2.WorkerRequest()
            try:
                request.ParseFromString(frame)
            except DecodeError as error:
                self._send(worker_pb2.WorkerReply(protocol_error=f"not a WorkerRequest: {error}"))
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

    def _say_hello(self) -> None:
        if self._hello is None or self._ready is None:
            return
        reply = worker_pb2.HelloReply(
            protocol_version=PROTOCOL_VERSION,
            versions=self._ready["versions"],
            python=os.path.abspath(self._python()),
            sandbox=_SANDBOX[self._options.level],
            sandbox_detail=self._options.detail,
            pid=os.getpid(),
            start_milliseconds=self._start_milliseconds(),
            private_namespaces=self._options.level == "bubblewrap",
            problem=self._ready["problem"],
        )
        self._send(worker_pb2.WorkerReply(id=self._hello.id, hello=reply))

    @staticmethod
    def _python() -> str:
        import sys

        return sys.executable

    def _start_milliseconds(self) -> int:
        started = self._options.started
        return max(1, (time.monotonic_ns() - started) // 1_000_000) if started else 0

    def _refuse(self, request: int, why: str) -> None:
        self._send(worker_pb2.WorkerReply(id=request, protocol_error=why))

    def _send(self, reply: worker_pb2.WorkerReply) -> None:
        try:
            framing.write_all(self._replies, framing.encode_frame(reply.SerializeToString()))
        except BrokenPipeError:
            self._stop()

    def _stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        self._unwatch(self._requests)
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
                self._parts[part.number] = part
                self._place(part)

    def _place(self, part: Part) -> None:
        template, new = self._templates.find(part.modules)
        if template is None:
            self._spawn(part, None)
            return
        if new:
            self._watch(template.channel.fileno(), lambda: self._read_server(template))
        if template.ready:
            self._spawn(part, template)
        else:
            template.waiting.append(part)

    def _spawn(self, part: Part, template: Template | None) -> None:
        if part.ended:
            return
        ends = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
        part.result_pipe, part.log_pipe, part.status_pipe = (reader for reader, _ in ends)
        writers = [writer for _, writer in ends]
        if self._options.level != "bubblewrap":
            part.folder = tempfile.mkdtemp(prefix="kernelwright-job-")
        spec = messages.ProcessSpec(
            part=part.number,
            kind=part.kind,
            role=part.role,
            level=self._options.level,
            file_bytes=part.limits.file_bytes,
            cpu_seconds=2 + part.limits.deadline_milliseconds * (os.cpu_count() or 1) // 1000,
            folder=part.folder,
            visible=part.visible,
            hidden=part.hidden,
        )
        channel = template.channel if template else self._first
        part.started = time.monotonic()
        part.template = template
        if template:
            template.running += 1
        try:
            messages.send(channel, forkserver.to_message(spec), [part.payload, *writers, *part.peers])
        except OSError as error:
            self._end_part_unstarted(part, f"its fork server has gone: {error}")
        for descriptor in (part.payload, *writers, *part.peers):
            os.close(descriptor)
        part.payload, part.peers = -1, []
        for pipe in (part.result_pipe, part.log_pipe, part.status_pipe):
            if pipe >= 0:
                os.set_blocking(pipe, False)
                self._watch(pipe, lambda pipe=pipe: self._read_pipe(part, pipe))

    def _end_part_unstarted(self, part: Part, why: str) -> None:
        part.killed, part.killed_detail = Outcome.SANDBOX, f"the process could not be started: {why}"
        self._end_part(part)

    def _read_server(self, template: Template | None) -> None:
        channel = template.channel if template else self._first
        try:
            message, _descriptors = messages.receive(channel)
        except OSError:
            message = None
        if message is None:
            self._server_gone(template)
        elif message["op"] == "ready":
            self._ready = message
            self._say_hello()
            self._start_jobs()
        elif message["op"] == "template_started":
            self._templates.started(message["key"], message["pid"])
        elif message["op"] == "template" and template is not None:
            if message["unusable"]:
                self._respawn(self._templates.discard(template, unusable=True))
            else:
                template.ready = True
                waiting, template.waiting = template.waiting, []
                for part in waiting:
                    self._spawn(part, template)
        elif message["op"] == "spawned":
            self._spawned(message["part"], message["pid"])
        elif message["op"] == "failed" and message["part"] in self._parts:
            self._end_part_unstarted(self._parts[message["part"]], message["reason"])

    def _respawn(self, waiting: list[Part]) -> None:
        for part in waiting:
            self._spawn(part, None)

    def _server_gone(self, template: Template | None) -> None:
        if template is not None:
            self._respawn(self._templates.discard(template, unusable=True))
            return
        self._unwatch(self._first.fileno())
        if not self._stopping:
            self._send(worker_pb2.WorkerReply(protocol_error="the worker's fork server ended: start a new worker"))
            self._stop()

    def _spawned(self, number: int, pid: int) -> None:
        part = self._parts.get(number)
        if part is None or part.ended:
            return
        part.pid = pid
        try:
            part.pidfd = os.pidfd_open(pid)
        except OSError:
            part.pidfd = -1  # it has ended already; its status pipe says how
        if part.killed:
            self._kill_part(part, part.killed, part.killed_detail)

    def _read_pipe(self, part: Part, pipe: int) -> None:
        try:
            data = os.read(pipe, _READ_BYTES)
        except BlockingIOError:
            return
        if pipe == part.log_pipe:
            self._pass_log(part, part.log.feed(data) if data else part.log.finish())
        elif pipe == part.result_pipe:
            part.take_result(data)
        else:
            part.status += data
        if not data:
            self._unwatch(pipe)
            os.close(pipe)
            if pipe == part.log_pipe:
                part.log_pipe = -1
            elif pipe == part.result_pipe:
                part.result_pipe = -1
            else:
                part.status_pipe = -1
                self._end_part(part)

    def _pass_log(self, part: Part, lines: list[str]) -> None:
        for text in lines:
            log = worker_pb2.JobLog(role=part.role, text=text)
            self._send(worker_pb2.WorkerReply(id=part.job.id, log=log))

    def _end_part(self, part: Part) -> None:
        """The watching process has gone: with it, or now, everything that the job's process started."""
        if part.ended:
            return
        part.ended = True
        self._sweep(part)
        for name in ("result_pipe", "log_pipe", "status_pipe"):
            self._drain(part, getattr(part, name), name)
            setattr(part, name, -1)
        if part.pidfd >= 0:
            os.close(part.pidfd)
        for descriptor in (part.payload, *part.peers):
            if descriptor >= 0:
                os.close(descriptor)
        part.payload, part.peers, part.pidfd = -1, [], -1
        if part.folder:
            shutil.rmtree(part.folder, ignore_errors=True)
        if part.template is not None:
            part.template.running -= 1
        self._parts.pop(part.number, None)
        job = part.job
        if part is job.parts[0] or part.killed or part.conclusion().outcome != Outcome.DONE:
            for other in job.parts:  # nobody waits for the rest any more
                if not other.ended and other.kind == "subject" and not job.cancelled:
                    other.grace = time.monotonic() + _GRACE_SECONDS  # it ends by itself, and tells what it leaves
                elif not other.ended:
                    self._kill_part(other, Outcome.CANCELLED, "another process of its job ended first")
        if job.finished():
            self._finish(job)

    def _drain(self, part: Part, pipe: int, name: str) -> None:
        if pipe < 0:
            return
        self._unwatch(pipe)
        limit = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < limit:
            try:
                data = os.read(pipe, _READ_BYTES)
            except OSError:
                break
            if not data:
                break
            if name == "log_pipe":
                self._pass_log(part, part.log.feed(data))
            elif name == "result_pipe":
                part.take_result(data)
            else:
                part.status += data
        if name == "log_pipe":
            self._pass_log(part, part.log.finish())
        os.close(pipe)

    def _sweep(self, part: Part) -> None:
        """Without a process namespace, orphans of a job come to this process: end them."""
        if self._options.level == "bubblewrap" or not part.pid:
            return
        known = {self._server_pid, *(t.pid for t in self._templates.all())}
        known |= {p.pid for p in self._parts.values()}
        for pid in memory.children(os.getpid()):
            if pid not in known:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue

    def _finish(self, job: Job) -> None:
        self._running.pop(job.id, None)
        result = self._conclude(job)
        result.milliseconds = int((time.monotonic() - job.started) * 1000)
        self._send(worker_pb2.WorkerReply(id=job.id, result=result))
        self._start_jobs()

    @staticmethod
    def _conclude(job: Job) -> worker_pb2.JobResult:
        if job.cancelled:
            return worker_pb2.JobResult(outcome=Outcome.CANCELLED, detail=job.parts[0].killed_detail)
        blamed = [p for p in job.parts if p.killed and p.killed != Outcome.CANCELLED]
        blamed += job.parts[1:]
        for part in blamed:
            conclusion = part.conclusion()
            if conclusion.outcome not in (Outcome.DONE, Outcome.CANCELLED):
                return conclusion
        result = job.parts[0].conclusion()
        plan.note_leftovers(result, job.parts[1:])
        return result

    def _finish_waiting(self, job: Job, why: str) -> None:
        result = worker_pb2.JobResult(outcome=Outcome.CANCELLED, detail=why)
        self._send(worker_pb2.WorkerReply(id=job.id, result=result))

    # ---- ending processes

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
            if not part.ended:
                self._kill_part(part, Outcome.CANCELLED, why)

    def _kill_part(self, part: Part, outcome: int, why: str) -> None:
        if not part.killed:
            part.killed, part.killed_detail = outcome, why
        if not part.started:  # still waits for a template
            self._end_part(part)
            return
        if part.pidfd < 0:
            return  # not reported yet: _spawned kills it; or it has ended
        if self._options.level != "bubblewrap":
            for pid in _descendants(part.pid):
                _kill(pid)
        try:
            signal.pidfd_send_signal(part.pidfd, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _timeout(self) -> float | None:
        if not self._parts and not any(not t.ready for t in self._templates.all()):
            return None
        return _WATCH_SECONDS

    def _check_limits(self) -> None:
        now = time.monotonic()
        if now < self._next_watch:
            return
        self._next_watch = now + _WATCH_SECONDS
        for template in self._templates.overdue(now):
            self._respawn(self._templates.discard(template, unusable=True))
        for part in list(self._parts.values()):
            if not part.started or part.killed:
                continue
            limits = part.limits
            if part.grace and now >= part.grace:
                self._kill_part(part, Outcome.CANCELLED, "another process of its job ended first")
            elif now >= part.deadline:
                seconds = limits.deadline_milliseconds / 1000
                self._kill_part(part, Outcome.DEADLINE, f"took longer than the limit of {seconds:g} s")
            elif part.pid and memory.tree_bytes(part.pid) > limits.memory_bytes:
                mib = limits.memory_bytes >> 20
                self._kill_part(part, Outcome.MEMORY, f"used more memory than the limit of {mib} MiB")
            elif part.folder and memory.folder_bytes(part.folder) > limits.file_bytes:
                mib = limits.file_bytes >> 20
                self._kill_part(part, Outcome.DISK, f"filled its private folder past the limit of {mib} MiB")

    def _reap(self) -> None:
        """Orphans that came here, as to process 1."""
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass

    # ---- descriptors

    def _watch(self, descriptor: int, handler: Callable[[], None]) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, handler)

    def _unwatch(self, descriptor: int) -> None:
        try:
            self._selector.unregister(descriptor)
        except (KeyError, ValueError):
            pass

    def _release(self, template: Template) -> None:
        self._unwatch(template.channel.fileno())
        template.channel.close()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    pending = memory.children(pid)
    while pending:
        child = pending.pop()
        found.append(child)
        pending += memory.children(child)
    return found
