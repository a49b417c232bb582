"""Job processes as the router runs them: started through a fork server, heard through pipes, held to their
limits.

One thread serves all of them; nothing here waits for a process. A process counts as ended when the process
that watches over it has gone, and with it everything that the job's process started.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from typing import Any

from kernelwright_worker import forkserver, memory, messages
from kernelwright_worker.jobs import Outcome, Part
from kernelwright_worker.templates import Template, Templates

READ_BYTES = 1 << 20
WATCH_SECONDS = 0.05
_DRAIN_SECONDS = 5.0


class Loop:
    """Calls a handler when its descriptor can be read."""

    def __init__(self) -> None:
        self._selector = selectors.PollSelector()  # not epoll: standard input may be a plain file

    def watch(self, descriptor: int, handler: Callable[[], None]) -> None:
        """Adds a descriptor."""
        self._selector.register(descriptor, selectors.EVENT_READ, handler)

    def unwatch(self, descriptor: int) -> None:
        """Removes a descriptor, before it is closed."""
        try:
            self._selector.unregister(descriptor)
        except (KeyError, ValueError):
            pass

    def turn(self, timeout: float | None) -> None:
        """Waits for events and handles them."""
        for key, _events in self._selector.select(timeout):
            if key.fd in self._selector.get_map():  # an earlier handler may have closed it
                key.data()


class Processes:
    """All processes of running jobs, and the fork servers that they come from."""

    def __init__(
        self,
        loop: Loop,
        level: str,
        on_ready: Callable[[dict[str, Any]], None],
        on_log: Callable[[Part, list[str]], None],
        on_end: Callable[[Part], None],
        on_lost: Callable[[], None],
    ) -> None:
        """`on_ready`: jax is imported; `on_log`: lines that a process printed; `on_end`: a process has ended;
        `on_lost`: the first fork server has gone, nothing can be started any more."""
        self._loop = loop
        self._level = level
        self._on_ready, self._on_log, self._on_end, self._on_lost = on_ready, on_log, on_end, on_lost
        self.server_pid, self._first = forkserver.start(level)
        self._templates = Templates(self._first, self._release)
        self._parts: dict[int, Part] = {}
        self._next_watch = 0.0
        loop.watch(self._first.fileno(), lambda: self._read_server(None))

    # ---- starting

    def start(self, part: Part) -> None:
        """Starts a process, from the fork server that has its imports."""
        self._parts[part.number] = part
        template, new = self._templates.find(part.modules)
        if template is None:
            self._spawn(part, None)
            return
        if new:
            self._watch_template(template)
        if template.ready:
            self._spawn(part, template)
        else:
            template.waiting.append(part)

    def _watch_template(self, template: Template) -> None:
        self._loop.watch(template.channel.fileno(), lambda: self._read_server(template))

    def _spawn(self, part: Part, template: Template | None) -> None:
        if part.ended:
            return
        ends = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
        part.result_pipe, part.log_pipe, part.status_pipe = (reader for reader, _ in ends)
        writers = [writer for _, writer in ends]
        if self._level != "bubblewrap":
            part.folder = tempfile.mkdtemp(prefix="kernelwright-job-")
        spec = messages.ProcessSpec(
            part=part.number,
            kind=part.kind,
            role=part.role,
            level=self._level,
            file_bytes=part.limits.file_bytes,
            cpu_seconds=2 + part.limits.deadline_milliseconds * (os.cpu_count() or 1) // 1000,
            folder=part.folder,
            visible=part.visible,
            hidden=part.hidden,
        )
        part.started = time.monotonic()
        part.template = template
        if template:
            template.running += 1
        for pipe in (part.result_pipe, part.log_pipe, part.status_pipe):
            os.set_blocking(pipe, False)
            self._watch_pipe(part, pipe)
        channel: socket.socket = template.channel if template else self._first
        problem = ""
        try:
            messages.send(channel, forkserver.to_message(spec), [part.payload, *writers, *part.peers])
        except OSError as error:
            problem = f"its fork server has gone: {error}"
        for descriptor in (part.payload, *writers, *part.peers):
            os.close(descriptor)
        part.payload, part.peers = -1, []
        if problem:
            self._end_unstarted(part, problem)

    def _watch_pipe(self, part: Part, pipe: int) -> None:
        self._loop.watch(pipe, lambda: self._read_pipe(part, pipe))

    def _end_unstarted(self, part: Part, why: str) -> None:
        part.killed, part.killed_detail = Outcome.SANDBOX, f"the process could not be started: {why}"
        self._end(part)

    # ---- fork servers

    def _read_server(self, template: Template | None) -> None:
        channel = template.channel if template else self._first
        try:
            message, _descriptors = messages.receive(channel)
        except OSError:
            message = None
        if message is None:
            self._server_gone(template)
        elif message["op"] == "ready":
            self._on_ready(message)
        elif message["op"] == "template_started":
            self._templates.started(message["key"], message["pid"])
        elif message["op"] == "template" and template is not None:
            self._template_ready(template, bool(message["unusable"]))
        elif message["op"] == "spawned":
            self._spawned(message["part"], message["pid"])
        elif message["op"] == "failed" and message["part"] in self._parts:
            self._end_unstarted(self._parts[message["part"]], message["reason"])

    def _template_ready(self, template: Template, unusable: bool) -> None:
        if unusable:
            self._spawn_all(self._templates.discard(template, unusable=True), None)
            return
        template.ready = True
        waiting, template.waiting = template.waiting, []
        self._spawn_all(waiting, template)

    def _spawn_all(self, waiting: list[Part], template: Template | None) -> None:
        for part in waiting:
            self._spawn(part, template)

    def _server_gone(self, template: Template | None) -> None:
        for part in list(self._parts.values()):
            if part.started and part.template is template and not part.pid:
                self._gone(part)  # nobody will tell its process id; it dies with its fork server
        if template is not None:
            self._spawn_all(self._templates.discard(template, unusable=True), None)
            return
        self._loop.unwatch(self._first.fileno())
        self._on_lost()

    def _spawned(self, number: int, pid: int) -> None:
        part = self._parts.get(number)
        if part is None or part.ended:
            return
        part.pid = pid
        try:
            part.pidfd = os.pidfd_open(pid)
        except OSError:
            self._gone(part)  # already; its status pipe says how
            return
        self._loop.watch(part.pidfd, lambda: self._gone(part))
        if part.killed:
            self.kill(part, part.killed, part.killed_detail)

    def _gone(self, part: Part) -> None:
        """Only now nothing is left: the status pipe closes a little before the namespace is emptied."""
        part.gone = True
        if part.pidfd >= 0:
            self._loop.unwatch(part.pidfd)
        if part.reported:
            self._end(part)

    def _release(self, template: Template) -> None:
        self._loop.unwatch(template.channel.fileno())
        template.channel.close()

    # ---- pipes

    def _read_pipe(self, part: Part, pipe: int) -> None:
        try:
            data = os.read(pipe, READ_BYTES)
        except BlockingIOError:
            return
        self._take(part, pipe, data)
        if data:
            return
        self._loop.unwatch(pipe)
        os.close(pipe)
        if pipe == part.log_pipe:
            self._on_log(part, part.log.finish())
            part.log_pipe = -1
        elif pipe == part.result_pipe:
            part.result_pipe = -1
        else:
            part.status_pipe = -1
            part.reported = True
            if part.gone:
                self._end(part)

    def _take(self, part: Part, pipe: int, data: bytes) -> None:
        if pipe == part.log_pipe:
            self._on_log(part, part.log.feed(data))
        elif pipe == part.result_pipe:
            part.take_result(data)
        else:
            part.status += data

    def _drain(self, part: Part, pipe: int) -> None:
        """Takes what is still in a pipe. Ends without its end of file: a process outside our reach may hold
        it.
        """
        self._loop.unwatch(pipe)
        limit = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < limit:
            try:
                data = os.read(pipe, READ_BYTES)
            except OSError:
                break
            if not data:
                break
            self._take(part, pipe, data)
        if pipe == part.log_pipe:
            self._on_log(part, part.log.finish())

    # ---- ending

    def kill(self, part: Part, outcome: int, why: str) -> None:
        """Ends a process with everything it started; `on_end` follows."""
        if part.ended:
            return
        if not part.killed:
            part.killed, part.killed_detail = outcome, why
        if not part.started:  # still waits for a template
            self._end(part)
            return
        if part.pidfd < 0:
            return  # not reported yet: then _spawned kills it; or it has ended
        if self._level != "bubblewrap":
            for pid in memory.descendants(part.pid):
                _kill(pid)
        try:
            signal.pidfd_send_signal(part.pidfd, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _end(self, part: Part) -> None:
        if part.ended:
            return
        part.ended = True
        self._sweep(part)
        for pipe in (part.result_pipe, part.log_pipe, part.status_pipe):
            if pipe >= 0:
                self._drain(part, pipe)
                os.close(pipe)
        part.result_pipe = part.log_pipe = part.status_pipe = -1
        self._loop.unwatch(part.pidfd)
        for descriptor in (part.payload, part.pidfd, *part.peers):
            if descriptor >= 0:
                os.close(descriptor)
        part.payload, part.pidfd, part.peers = -1, -1, []
        if part.folder:
            shutil.rmtree(part.folder, ignore_errors=True)
        if part.template is not None:
            part.template.running -= 1
        self._parts.pop(part.number, None)
        self._on_end(part)

    def _sweep(self, part: Part) -> None:
        """Without a process namespace, orphans of a job come to this process: ends them."""
        if self._level == "bubblewrap" or not part.pid:
            return
        known = {self.server_pid, *(t.pid for t in self._templates.all())}
        known |= {p.pid for p in self._parts.values()}
        for pid in memory.children(os.getpid()):
            if pid not in known:
                _kill(pid)

    def check_limits(self) -> None:
        """Kills what is over its limits. Call at least every `timeout()` seconds."""
        now = time.monotonic()
        if now < self._next_watch:
            return
        self._next_watch = now + WATCH_SECONDS
        for template in self._templates.overdue(now):
            self._spawn_all(self._templates.discard(template, unusable=True), None)
        for part in list(self._parts.values()):
            if part.started and not part.killed:
                self._check(part, now)

    def _check(self, part: Part, now: float) -> None:
        limits = part.limits
        if part.grace and now >= part.grace:
            self.kill(part, Outcome.CANCELLED, "another process of its job ended first")
        elif now >= part.deadline:
            seconds = limits.deadline_milliseconds / 1000
            self.kill(part, Outcome.DEADLINE, f"took longer than the limit of {seconds:g} s")
        elif part.pid and memory.tree_bytes(part.pid) > limits.memory_bytes:
            mib = limits.memory_bytes >> 20
            self.kill(part, Outcome.MEMORY, f"used more memory than the limit of {mib} MiB")
        elif part.folder and memory.folder_bytes(part.folder) > limits.file_bytes:
            mib = limits.file_bytes >> 20
            self.kill(part, Outcome.DISK, f"filled its private folder past the limit of {mib} MiB")

    def timeout(self) -> float | None:
        """Seconds until limits must be looked at again; None when there is nothing to watch."""
        busy = self._parts or any(not t.ready for t in self._templates.all())
        return WATCH_SECONDS if busy else None

    def close(self) -> None:
        """Ends the fork servers. Jobs must have ended."""
        self._first.close()
        for template in self._templates.all():
            self._templates.discard(template, unusable=False)
        _kill(self.server_pid)
        try:
            os.waitpid(self.server_pid, 0)
        except ChildProcessError:
            pass


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
