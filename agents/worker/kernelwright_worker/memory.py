"""Resident memory of a process and everything it started."""

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


def tree_bytes(pid: int) -> int:
    """Sum over the descendants of `pid`, without itself. Pages shared after a fork count once per process."""
    return sum(_resident(p) for p in descendants(pid))


def descendants(pid: int) -> list[int]:
    """Everything that a process started, and what that started."""
    families = _families()
    found: list[int] = []
    pending = list(families.get(pid, ()))
    while pending:
        child = pending.pop()
        found.append(child)
        pending += families.get(child, ())
    return found


def children(pid: int) -> list[int]:
    """Children of a process that have not been waited for."""
    return _families().get(pid, [])


def _families() -> dict[int, list[int]]:
    """Children by parent, from one walk over /proc: not every kernel lists the children of a process."""
    found: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:  # inside a sandbox that hides it
        return found
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The command's name is in parentheses and may hold anything, also spaces and parentheses.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state != b"Z":
            found.setdefault(int(parent), []).append(int(name))
    return found


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def folder_bytes(folder: str) -> int:
    """Size of all files below a folder; those that vanish meanwhile do not count."""
    total = 0
    for base, _folders, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(base, name)).st_blocks * 512
            except OSError:
                continue
    return total
