"""Resident memory of a process and everything it started."""

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


def tree_bytes(pid: int) -> int:
    """Sum over the descendants of `pid`, without itself. Pages shared after a fork count once per process."""
    total = 0
    pending = children(pid)
    while pending:
        child = pending.pop()
        total += _resident(child)
        pending += children(child)
    return total


def children(pid: int) -> list[int]:
    """Children of all threads of a process; empty when it has gone."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as listing:
                found += [int(p) for p in listing.read().split()]
    except OSError:
        pass
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
