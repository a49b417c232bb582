"""Drives the built binary as a user would: private folders, its own daemon, a look at what is left."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

TOP = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = TOP / "examples"
BINARY = pathlib.Path(os.environ.get("KW_BINARY", TOP / "build" / "kernelwright"))

# Exit codes of every command (docs/json.md).
RESULT, USER_CODE, USAGE, ENVIRONMENT, LIMIT, INTERNAL = range(6)

PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
    """Orphans of our descendants become our own children, so that nothing can leave the tree unseen."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = ctypes.c_int()
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def data_folder() -> pathlib.Path:
    """The folder of our Python environment, by the rule of docs/environment.md."""
    given = os.environ.get("KERNELWRIGHT_HOME")
    if given:
        return pathlib.Path(given)
    share = os.environ.get("XDG_DATA_HOME") or str(pathlib.Path.home() / ".local" / "share")
    return pathlib.Path(share) / "kernelwright"


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    state: str
    command: str


def all_processes() -> dict[int, Process]:
    found: dict[int, Process] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The name in parentheses may hold anything, so read from its end.
            after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "cmdline").read_bytes().split(b"\0")
            command = b" ".join(words).decode(errors="replace").strip()
            found[int(entry.name)] = Process(int(entry.name), int(after_name[1]), after_name[0], command)
    return found


def descendants(root: int) -> list[Process]:
    """Living processes below `root`, zombies left out."""
    processes = all_processes()
    below = {root}
    grew = True
    while grew:
        new = {p.pid for p in processes.values() if p.parent in below} - below
        below |= new
        grew = bool(new)
    return [processes[pid] for pid in sorted(below - {root}) if processes[pid].state != "Z"]


def wait_until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Polls until `condition` gives something true and returns that; fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen within {seconds:.0f} s: {what}")
        time.sleep(0.02)


@dataclass
class Result:
    """How one command ended."""

    arguments: list[str]
    code: int
    out: str
    err: str
    seconds: float

    @property
    def text(self) -> str:
        """Everything that a user of the shell sees."""
        return self.out + self.err

    @property
    def json(self) -> dict[str, Any]:
        """The one object on standard output."""
        try:
            value = json.loads(self.out)
        except ValueError as error:
            raise AssertionError(f"standard output is not one JSON object ({error}):\n{self}") from error
        assert isinstance(value, dict), f"not an object:\n{self}"
        return value

    def expect(self, *codes: int) -> Result:
        assert self.code in codes, f"exit code {self.code}, expected {' or '.join(map(str, codes))}:\n{self}"
        return self

    def says(self, *words: str) -> Result:
        """Each of `words` is in what was printed, whatever its case."""
        for word in words:
            assert word.lower() in self.text.lower(), f"nothing about {word!r} in:\n{self}"
        return self

    def __str__(self) -> str:
        return (
            f"$ kernelwright {' '.join(self.arguments)}   [exit {self.code}, {self.seconds:.1f} s]\n"
            f"--- stdout\n{self.out[-6000:]}\n--- stderr\n{self.err[-6000:]}"
        )


@dataclass
class Kernelwright:
    """The binary with folders of its own below `home`."""

    home: pathlib.Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def environment(self, extra: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """What the command sees: no variable of the caller that could choose an interpreter or a folder."""
        chosen: dict[str, str | None] = {
            "HOME": str(self.home),
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "LANG": "C.UTF-8",
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "KERNELWRIGHT_HOME": str(data_folder()),
            "TMPDIR": str(self.home / "tmp"),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS"),
        }
        chosen.update(extra or {})
        return {name: value for name, value in chosen.items() if value is not None}

    def __post_init__(self) -> None:
        for name in ("state", "cache", "config", "tmp"):
            (self.home / name).mkdir(exist_ok=True)
        (self.home / "run").mkdir(mode=0o700, exist_ok=True)

    def start(
        self,
        *arguments: str | pathlib.Path,
        env: Mapping[str, str | None] | None = None,
        cwd: pathlib.Path | None = None,
        before: list[str] | None = None,
    ) -> subprocess.Popen[str]:
        """Starts a command and returns at once. `before` is a program that runs the binary (unshare …)."""
        process = subprocess.Popen(
            [*(before or []), str(BINARY), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(env),
            cwd=cwd or self.home,
        )
        self.started.append(process)
        return process

    def run(
        self,
        *arguments: str | pathlib.Path,
        env: Mapping[str, str | None] | None = None,
        cwd: pathlib.Path | None = None,
        before: list[str] | None = None,
        limit: float = 600,
    ) -> Result:
        """Runs a command to its end; one that takes longer than `limit` seconds fails the test."""
        begin = time.monotonic()
        process = self.start(*arguments, env=env, cwd=cwd, before=before)
        words = [str(a) for a in arguments]
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            took = time.monotonic() - begin
            raise AssertionError(f"no end in {limit:.0f} s:\n{Result(words, -9, out, err, took)}") from None
        return Result(words, process.returncode, out, err, time.monotonic() - begin)

    def optimize(self, target: str, *more: str, command: str = "optimize", **how: Any) -> Result:
        """`optimize TARGET --json …`, on v5e unless told otherwise."""
        chip = [] if any(a.startswith("--chip") for a in more) else ["--chip", "v5e"]
        return self.run(command, target, *chip, "--json", *more, **how)

    @property
    def discovery(self) -> pathlib.Path:
        return self.home / "run" / "kernelwright" / "daemon.json"

    def daemon_pid(self) -> int | None:
        """Process of the daemon that serves these folders, when one lives."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            pid = int(json.loads(self.discovery.read_text())["pid"])
            process = all_processes().get(pid)
            if process and process.state != "Z":
                return pid
        return None

    def first_run(self) -> str:
        """Id of the newest run, as soon as there is one."""

        def listed() -> Any:
            answer = self.run("runs", "list", "--json")
            return answer.code == RESULT and answer.json["runs"]

        return str(wait_until(listed, 60, "the start of a run")[0]["run"])

    def run_status(self, run: str) -> str:
        """Status of a run in the list, also of one that has no result yet."""
        runs = self.run("runs", "list", "--json").expect(RESULT).json["runs"]
        return next(str(r["status"]) for r in runs if r["run"] == run)

    def events(self, run: str, kind: str = "") -> list[dict[str, Any]]:
        """All stored events of a run, or those of one kind."""
        events = self.run("runs", "export", run).expect(RESULT).json["events"]
        return [e for e in events if kind in ("", e["kind"])]

    def workers(self) -> list[Process]:
        """Processes below the daemon."""
        pid = self.daemon_pid()
        return descendants(pid) if pid else []

    def stop(self) -> None:
        """Ends the commands that still run, and the daemon, politely."""
        for process in self.started:
            if process.poll() is None:
                process.terminate()
        for process in self.started:
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        pid = self.daemon_pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda: self.daemon_pid() is None, 30, f"the end of the daemon {pid} after SIGTERM")


def reap_adopted(own: set[int]) -> None:
    """Collects orphans that became our children and have ended, and no child that a Popen waits for."""
    me = os.getpid()
    for process in all_processes().values():
        if process.parent == me and process.state == "Z" and process.pid not in own:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def assert_nothing_left(before: set[int]) -> None:
    """NoOrphans: no process of ours lives that was not there `before`; those that do are named and ended."""

    def left() -> list[Process]:
        reap_adopted(before)
        return [p for p in descendants(os.getpid()) if p.pid not in before]

    deadline = time.monotonic() + 10
    while left() and time.monotonic() < deadline:
        time.sleep(0.05)
    still = left()
    for process in still:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    assert not still, "processes were left behind: " + "; ".join(f"{p.pid} {p.command[:120]}" for p in still)


@contextlib.contextmanager
def private_installation(parent: pathlib.Path) -> Iterator[Kernelwright]:
    """A Kernelwright with an empty home, stopped at the end; fails when anything of it survives."""
    before = {p.pid for p in descendants(os.getpid())}
    with adopting_orphans():
        kernelwright = Kernelwright(parent)
        try:
            yield kernelwright
        finally:
            kernelwright.stop()
            assert_nothing_left(before)
            shutil.rmtree(parent, ignore_errors=True)
