"""A job's process: gives it namespaces, limits and nothing else, runs the role, and watches over what it
leaves.

Two processes come of one fork. The outer one (process 1 of its namespace where there is one) runs no user
code: it waits, reports how the inner one ended and what was still alive then, and its own end takes
everything along. The inner one gives up its rights and runs the role.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import traceback
from typing import NoReturn

from kernelwright_worker import memory
from kernelwright_worker.messages import ProcessSpec
from kernelwright_worker.sandbox import landlock, linux, paths, seccomp

_STATUS_SETUP_FAILED = 125
_MAX_PROCESSES = 2048
_MAX_OPEN_FILES = 1024
_SHARED_MEMORY_BYTES = 64 << 20


def run(spec: ProcessSpec, descriptors: list[int]) -> NoReturn:
    """Never returns. `descriptors` as in ProcessSpec."""
    status = descriptors[3]
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _close_all_but([0, 1, 2, *descriptors])
        os.setsid()
        linux.die_with_parent(signal.SIGKILL)
        _offer_to_the_memory_killer()
        if spec.level == "bubblewrap":
            _enter_namespaces(spec)
        else:
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        pid = os.fork()
        if pid == 0:
            _inner(spec, descriptors)
        for descriptor in (*descriptors[:3], *descriptors[4:]):
            os.close(descriptor)
        for standard in (1, 2):
            os.dup2(0, standard)
        linux.prctl(linux.PR_SET_DUMPABLE, 0)  # the inner process may not look into this one
        if spec.level == "bubblewrap":
            linux.drop_capabilities()
        _watch(pid, status, spec.level)
    except BaseException as error:
        _report(status, {"setup": f"{type(error).__name__}: {error}"})
    os._exit(0)


def _offer_to_the_memory_killer() -> None:
    """When the machine runs out of memory, a job goes before anything of the user's."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")
    except OSError:
        pass  # only an order of preference


def _watch(pid: int, status: int, level: str) -> None:
    while True:
        ended, code = os.waitpid(-1, 0)
        if ended == pid:
            break
    left = 0
    try:
        while True:
            ended, _ = os.waitpid(-1, os.WNOHANG)
            if ended == 0:  # children that live: what the inner process started and left behind
                left = max(1, len(memory.children(os.getpid())))
                break
    except ChildProcessError:
        pass
    report: dict[str, object] = {"leftover": left}
    if os.WIFSIGNALED(code):
        report["signal"] = os.WTERMSIG(code)
    else:
        report["exit"] = os.WEXITSTATUS(code)
    if level != "bubblewrap":  # there the kernel ends the whole namespace with this process
        _kill_children()
    _report(status, report)


def _kill_children() -> None:
    """Ends what is left. Each one's own children come to this process when it ends, so the list is read
    again.
    """
    while children := memory.children(os.getpid()):
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)  # this one, not any: what has only just come here has not been killed
            except (ProcessLookupError, ChildProcessError):
                continue


def _report(status: int, report: dict[str, object]) -> None:
    try:
        os.write(status, json.dumps(report).encode())
    except OSError:
        pass  # the router has gone, and with it the reader


def _enter_namespaces(spec: ProcessSpec) -> None:
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    harmless = linux.MS_NOSUID | linux.MS_NODEV
    # Read-only: files of /proc/sys belong to the user that this process still is.
    linux.mount("proc", "/proc", "proc", harmless | linux.MS_NOEXEC | linux.MS_RDONLY)
    below = [p for p in spec.visible if p.startswith("/tmp/")]
    opened = [(p, os.open(p, os.O_PATH | os.O_CLOEXEC)) for p in below]
    size = max(spec.file_bytes, 1 << 16)
    linux.mount("tmpfs", "/tmp", "tmpfs", harmless, f"size={size},mode=700")
    for path, descriptor in opened:
        _mount_point(path, os.path.isdir(path) or os.path.isdir(f"/proc/self/fd/{descriptor}"))
        linux.mount(f"/proc/self/fd/{descriptor}", path, None, linux.MS_BIND | linux.MS_REC)
        os.close(descriptor)
    linux.mount("tmpfs", "/dev/shm", "tmpfs", harmless, f"size={min(size, _SHARED_MEMORY_BYTES)},mode=700")
    for path in spec.hidden:
        if os.path.isfile(path):
            linux.mount("/dev/null", path, None, linux.MS_BIND)


def _mount_point(path: str, is_folder: bool) -> None:
    if is_folder:
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _inner(spec: ProcessSpec, descriptors: list[int]) -> NoReturn:
    payload, result, log, status, *peers = descriptors
    try:
        linux.die_with_parent(signal.SIGKILL)
        os.setpgid(0, 0)
        _limit(spec)
        folder = spec.folder or "/tmp"
        os.environ.update(HOME=folder, TMPDIR=folder)
        os.environ.pop("PYTHONPATH", None)
        os.chdir(folder)
        if spec.level == "bubblewrap":
            linux.drop_capabilities()
        elif spec.level == "landlock":
            _apply_landlock(spec)
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        if spec.level != "none":
            seccomp.install()
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    except BaseException as error:
        _report(status, {"setup": f"{type(error).__name__}: {error}"})
        os._exit(_STATUS_SETUP_FAILED)
    os.close(status)
    try:
        from kernelwright_worker.roles import dispatch

        dispatch.run(spec.kind, spec.role, payload, result, peers)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _apply_landlock(spec: ProcessSpec) -> None:
    readable = [*paths.SYSTEM_FOLDERS, *paths.SYSTEM_FILES, *spec.visible]
    readable += [
        "/proc/self",
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/filesystems",
        "/proc/version",
    ]
    devices = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full"]
    landlock.restrict(readable, [spec.folder, *devices])


def _limit(spec: ProcessSpec) -> None:
    def limit(kind: int, value: int) -> None:
        _soft, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))

    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    limit(resource.RLIMIT_FSIZE, spec.file_bytes)
    limit(resource.RLIMIT_CPU, spec.cpu_seconds)
    if spec.level == "bubblewrap":  # elsewhere the count covers everything the user runs
        limit(resource.RLIMIT_NPROC, _MAX_PROCESSES)


def _close_all_but(kept: list[int]) -> None:
    low = 0
    for descriptor in [*sorted(set(kept)), os.sysconf("SC_OPEN_MAX")]:
        if low < descriptor:  # an empty range would close everything: its end wraps around
            os.closerange(low, descriptor)
        low = descriptor + 1
