"""File-system rules by Landlock, for machines that deny namespaces."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable

from kernelwright_worker.sandbox import linux

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FIRST_ABI = (1 << 13) - 1  # execute … make_sym
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
_NET_BIND_TCP, _NET_CONNECT_TCP = 1, 2
_SCOPE_ABSTRACT_SOCKET, _SCOPE_SIGNAL = 1, 2
READ = EXECUTE | READ_FILE | READ_DIR


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def abi() -> int:
    """Version of Landlock in this kernel; 0 without it."""
    try:
        return linux.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    except OSError:
        return 0


def _all_rights(version: int) -> int:
    rights = _FIRST_ABI
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        if version >= since:
            rights |= right
    return rights


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Leaves this process and its descendants these paths alone. Paths that do not exist are passed over."""
    version = abi()
    if version < 1:
        raise OSError("this kernel has no Landlock")
    rights = _all_rights(version)
    ruleset = _Ruleset(
        rights,
        _NET_BIND_TCP | _NET_CONNECT_TCP if version >= 4 else 0,
        _SCOPE_ABSTRACT_SOCKET | _SCOPE_SIGNAL if version >= 6 else 0,
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    descriptor = linux.syscall(_CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    try:
        for path in readable:
            _allow(descriptor, path, READ & rights)
        for path in writable:
            _allow(descriptor, path, rights)
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        linux.syscall(_RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= _ON_FILES
        rule = _PathBeneath(rights, parent)
        linux.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)
