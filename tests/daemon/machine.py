"""A private machine for a test: own runtime, state and cache folders.

The program under test is `kernelwright-scripted`: the real commands, client, daemon and transport over an
engine that plays a script, so that busy, slow and failing runs can be had without JAX. KW_BUILD names the
build folder.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass
class Machine:
    """Runs the program with folders of its own."""

    root: Path
    program: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def runtime(self) -> Path:
        return self.root / "run" / "kernelwright"

    @property
    def log(self) -> str:
        path = self.root / "state" / "kernelwright" / "daemon.log"
        return path.read_text() if path.exists() else ""

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "XDG_RUNTIME_DIR": str(self.root / "run"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            **self.variables,
        }

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen(
            [str(self.program), *arguments], env=self.environment(), cwd=self.root, text=True, **options
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, error = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, error)

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        return json.loads(done.stdout)

    def script(self, name: str, *steps: dict[str, Any]) -> str:
        """A file whose run plays these steps."""
        path = self.root / name
        path.write_text("".join(json.dumps(step) + "\n" for step in steps))
        return str(path)

    def discovery(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.runtime / "daemon.json").read_text())
        return value

    def daemons(self) -> list[int]:
        """Processes that run `serve` with this machine's folders, by their own environment."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                environment = (entry / "environ").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            mine = f"XDG_RUNTIME_DIR={self.root / 'run'}".encode() in environment
            if mine and b"serve" in words and state != "Z":
                found.append(int(entry.name))
        return found

    def await_end(self, pid: int, seconds: float = 20) -> None:
        """Waits for a process that need not be a child of ours."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        ready, _, _ = select.select([handle], [], [], seconds)
        os.close(handle)
        assert ready, f"process {pid} has not ended"
