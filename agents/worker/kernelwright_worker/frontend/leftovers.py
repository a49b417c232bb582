"""Finds threads and processes that user code started and that are still alive after its call."""

from __future__ import annotations

import os
import sys
import threading
import time

from kernelwright_worker.frontend.overlay import is_library
from kernelwright_worker.memory import children

_PATIENCE_SECONDS = 0.5  # for a thread that is just ending


def find(known: set[int]) -> str:
    """Describes what lives on, empty if nothing does. `known`: threads from before the user's code."""
    limit = time.monotonic() + _PATIENCE_SECONDS
    while (found := _now(known)) and time.monotonic() < limit:
        time.sleep(0.01)
    return found


def threads() -> set[int]:
    """Ids of the Python threads that live."""
    return {t.ident for t in threading.enumerate() if t.ident is not None}


def _now(known: set[int]) -> str:
    found: list[str] = []
    for thread in threading.enumerate():
        # The runtime calls back on its own threads, which Python then shows as dummies.
        own = isinstance(thread, threading._DummyThread) or thread is threading.main_thread()
        if not own and thread.ident not in known:
            found.append(f"thread {thread.name!r}")
    named = {t.ident for t in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident not in named and ident not in known and _is_user_code(frame):
            found.append("a thread without a name")
    processes = children(os.getpid())
    if processes:
        found.append(f"{len(processes)} process(es)")
    return ", ".join(found)


def _is_user_code(frame: object) -> bool:
    while frame is not None:
        code = getattr(frame, "f_code", None)
        if code is not None and not is_library(code.co_filename):
            return True
        frame = getattr(frame, "f_back", None)
    return False
