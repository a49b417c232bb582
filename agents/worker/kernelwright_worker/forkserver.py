"""The processes that fork job processes: one with jax imported, and templates forked from it with more
imports.

A fork server has a single thread and has never started a jax backend, so that forking is safe. It executes
installed packages only, never a user's file, and it has never held a user's text: a child inherits nothing
from another job.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import signal
import socket
import sys
import time
import traceback
from typing import Any, NoReturn

from kernelwright_worker import child, messages
from kernelwright_worker.sandbox import linux


def start(level: str) -> tuple[int, socket.socket]:
    """Forks the first fork server. Returns its process id and the socket that commands it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours
    ours.close()
    _run(ForkServer(theirs, level), lambda server: server.import_jax())


def _run(server: ForkServer, prepare: Any) -> NoReturn:
    try:
        linux.die_with_parent(signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are watched through their status pipes
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        messages.send(server.control, prepare(server))
        server.loop()
    except BaseException:
        traceback.print_exc()
    os._exit(1)


class ForkServer:
    """Answers the router's commands until the router closes the socket."""

    def __init__(self, control: socket.socket, level: str) -> None:
        self.control = control
        self._level = level

    def import_jax(self) -> dict[str, Any]:
        """Imports what every job needs. Returns the message that tells the router."""
        started = time.monotonic()
        problem = ""
        try:
            from kernelwright_worker import toolchain

            toolchain.preload()
            versions = toolchain.versions()
            problem = toolchain.problem()
        except BaseException as error:
            versions = {"python": ".".join(map(str, sys.version_info[:3]))}
            problem = (
                f"the interpreter {sys.executable} cannot import jax with Pallas "
                f"({type(error).__name__}: {error}): run `{sys.executable} -m pip install -U 'jax[tpu]'`, "
                "or choose another interpreter with --python"
            )
        return {
            "op": "ready",
            "versions": versions,
            "problem": problem,
            "threads": thread_count(),
            "loaded": sorted(n for n in sys.modules if n.count(".") <= 3 and not n.startswith("_"))[:4000],
            "seconds": time.monotonic() - started,
        }

    def import_modules(self, modules: list[str]) -> dict[str, Any]:
        """Imports installed packages. The message returned says whether children may be forked now."""
        failed: list[str] = []
        for name in modules:
            try:
                importlib.import_module(name)
            except BaseException:
                failed.append(name)  # the job will meet the same error on its own line, and report it there
        reason = ""
        if thread_count() > 1:
            reason = "the imports started threads"
        elif _backend_started():
            reason = "the imports started a jax backend"
        return {"op": "template", "modules": modules, "failed": failed, "unusable": reason}

    def loop(self) -> None:
        """Serves commands; returns when the router has gone."""
        while True:
            message, descriptors = messages.receive(self.control)
            if message is None:
                os._exit(0)
            try:
                if message["op"] == "spawn":
                    self._spawn(messages.ProcessSpec(**message["spec"]), descriptors)
                elif message["op"] == "template":
                    self._fork_template(message["key"], message["modules"], descriptors[0])
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)

    def _spawn(self, spec: messages.ProcessSpec, descriptors: list[int]) -> None:
        own = -1
        try:
            if spec.level == "bubblewrap":
                own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
                linux.unshare(linux.CLONE_NEWPID)  # holds for the next child only: setns below takes it back
            pid = os.fork()
            if pid == 0:
                child.run(spec, descriptors)
            if own >= 0:
                self._return_to(own)
        except OSError as error:
            messages.send(self.control, {"op": "failed", "part": spec.part, "reason": str(error)})
            return
        finally:
            if own >= 0:
                os.close(own)
        messages.send(self.control, {"op": "spawned", "part": spec.part, "pid": pid})

    @staticmethod
    def _return_to(own: int) -> None:
        try:
            linux.setns(own, linux.CLONE_NEWPID)
        except OSError as error:  # nothing can be forked from here any more
            print(f"kernelwright worker: cannot leave a job's process namespace: {error}", file=sys.stderr)
            os._exit(1)

    def _fork_template(self, key: int, modules: list[str], channel: int) -> None:
        pid = os.fork()
        if pid == 0:
            self.control.close()
            control = socket.socket(fileno=os.dup(channel))
            os.close(channel)
            _run(ForkServer(control, self._level), lambda server: server.import_modules(modules))
        messages.send(self.control, {"op": "template_started", "key": key, "pid": pid})


def thread_count() -> int:
    """Threads of this process, native ones included."""
    return len(os.listdir("/proc/self/task"))


def _backend_started() -> bool:
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(getattr(bridge, "_backends", None))


def to_message(spec: messages.ProcessSpec) -> dict[str, Any]:
    """The command that forks a job process."""
    return {"op": "spawn", "spec": dataclasses.asdict(spec)}
