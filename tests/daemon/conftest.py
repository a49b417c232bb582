"""A private machine for each test, with every daemon in it ended afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon.machine import REPOSITORY, Machine


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    build = Path(os.environ.get("KW_BUILD", REPOSITORY / "build"))
    program = build / "kernelwright-scripted"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    # Short, because a socket's path has at most 107 characters.
    root = tmp_path_factory.mktemp("m")
    for name in ("run", "state", "cache"):
        (root / name).mkdir(mode=0o700)
    machine = Machine(root, program)
    yield machine
    for pid in machine.daemons():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        machine.await_end(pid)
