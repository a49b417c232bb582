"""Which folders a job may read: system, interpreter with its packages, the user's import roots."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

# Read by the dynamic loader, the C library, and libtpu (which counts processors).
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store")
SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/sys/devices/system",
)


def interpreter_paths() -> list[str]:
    """Folders that this interpreter needs, links followed as well as not."""
    found = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    found += [p for p in sys.path if p and os.path.exists(p)]
    executable = sys.executable
    while os.path.islink(executable):  # a virtual environment may point through a chain of links
        found.append(os.path.dirname(executable))
        executable = os.path.normpath(os.path.join(os.path.dirname(executable), os.readlink(executable)))
    return found


def minimal(paths: Iterable[str], forbidden: Sequence[str] = ("/",)) -> list[str]:
    """Absolute existing paths, real ones added, without those that lie below another one, parents first.

    A path in `forbidden` (the root, a home folder) is left out: it would show far more than was meant.
    """
    wanted: set[str] = set()
    for path in paths:
        absolute = os.path.abspath(path)
        for candidate in (absolute, os.path.realpath(absolute)):
            if candidate not in forbidden and os.path.exists(candidate):
                wanted.add(candidate)
    kept: list[str] = []
    for path in sorted(wanted):
        if not any(path == other or path.startswith(other + "/") for other in kept):
            kept.append(path)
    return kept
