"""System calls that Python's library lacks, through the C library.

Everything here is thin: a call either works or raises OSError with the name of what failed.
"""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def unshare(flags: int) -> None:
    """Moves this process (CLONE_NEWPID: its next children) into new namespaces."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Joins the namespace behind a descriptor."""
    _check(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(kind)), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2)."""
    result = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        data.encode() if data else None,
    )
    _check(result, f"mount on {target}")


def prctl(option: int, second: int = 0, third: int = 0) -> int:
    """prctl(2) with integer arguments."""
    zero = ctypes.c_ulong(0)
    return _check(
        _libc.prctl(ctypes.c_int(option), ctypes.c_ulong(second), ctypes.c_ulong(third), zero, zero), "prctl"
    )


def syscall(number: int, *arguments: object) -> int:
    """A raw system call; integers are passed as long."""
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _check(int(_libc.syscall(ctypes.c_long(number), *converted)), f"system call {number}")


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapabilityData(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


def drop_capabilities() -> None:
    """Gives up every capability, for good: bounding set, ambient set, and the sets in force."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break  # past the kernel's last one, or not allowed: then there is nothing to bound
    try:
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError:
        pass  # kernels without ambient capabilities
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    data = (_CapabilityData * 2)()
    _check(_libc.capset(ctypes.byref(header), data), "capset")


def die_with_parent(signal_number: int) -> None:
    """Asks the kernel to send a signal to this process when its parent ends."""
    prctl(PR_SET_PDEATHSIG, signal_number)
