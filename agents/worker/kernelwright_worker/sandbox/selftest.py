"""Tries, inside bubblewrap, what every job needs: namespaces of its own with private mounts.

Run as a program by the launcher. Exit status 0 when it works; else the reason is on standard error. Some
containers allow bubblewrap itself and refuse this.
"""

from __future__ import annotations

import os
import sys

from kernelwright_worker.sandbox import linux


def main() -> int:
    """Returns the exit status."""
    try:
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        linux.unshare(linux.CLONE_NEWPID)
        child = os.fork()
        if child == 0:
            os._exit(_try_mounts())
        linux.setns(own, linux.CLONE_NEWPID)
        _pid, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    except OSError as error:
        print(f"namespaces for jobs: {error}", file=sys.stderr)
        return 1


def _try_mounts() -> int:
    try:
        linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("proc", "/proc", "proc", linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV)
        linux.mount("tmpfs", "/tmp", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=65536")
        linux.drop_capabilities()
    except OSError as error:
        print(f"mounts for jobs: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
