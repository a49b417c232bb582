"""A system-call filter for code that nobody trusts, written as a classic BPF program.

It refuses with EPERM what a traced or interpreted kernel never needs and what has been a way out of
sandboxes: tracing other processes, namespaces and mounts, keys, BPF, io_uring, kernel modules, clocks, and
outgoing connections (a socket file of a daemon on a read-only mount can still be connected to). It does not
need libseccomp.
"""

from __future__ import annotations

import ctypes
import platform
import struct

from kernelwright_worker.sandbox import linux

_LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_SET = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_JUMP_GREATER_EQUAL = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000
_EPERM, _ENOSYS = 1, 38

_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_FIRST_ARGUMENT = 0, 4, 16
_X32_BIT = 0x40000000
_SECCOMP_MODE_FILTER = 2
_NAMESPACE_FLAGS = 0x7E020080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET,TIME}
_AF_UNIX = 1

# name: (x86-64, aarch64); None where the architecture has no such call.
_DENIED: dict[str, tuple[int | None, int]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "syslog": (103, 116),
    "connect": (42, 203),
}
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_SOCKET = (41, 198)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def build_filter(machine: str) -> bytes:
    """Returns the BPF program for an architecture. Raises KeyError for one that is not known."""
    audit, column = _ARCHITECTURES[machine]
    refuse = _instruction(_RETURN, _ERRNO | _EPERM)
    program = [
        _instruction(_LOAD_WORD, _OFFSET_ARCHITECTURE),
        _instruction(_JUMP_EQUAL, audit, 1, 0),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD_WORD, _OFFSET_NUMBER),
    ]
    if column == 0:  # the x32 table would give other numbers to the same calls
        program += [_instruction(_JUMP_GREATER_EQUAL, _X32_BIT, 0, 1), refuse]
    for numbers in _DENIED.values():
        number = numbers[column]
        if number is not None:
            program += [_instruction(_JUMP_EQUAL, number, 0, 1), refuse]
    # clone3 hides its flags behind a pointer: "not there" makes the C library fall back to clone.
    program += [
        _instruction(_JUMP_EQUAL, _CLONE3[column], 0, 1),
        _instruction(_RETURN, _ERRNO | _ENOSYS),
        _instruction(_JUMP_EQUAL, _CLONE[column], 0, 4),
        _instruction(_LOAD_WORD, _OFFSET_FIRST_ARGUMENT),
        _instruction(_JUMP_SET, _NAMESPACE_FLAGS, 0, 1),
        refuse,
        _instruction(_RETURN, _ALLOW),
        _instruction(_JUMP_EQUAL, _SOCKET[column], 0, 3),
        _instruction(_LOAD_WORD, _OFFSET_FIRST_ARGUMENT),
        _instruction(_JUMP_EQUAL, _AF_UNIX, 1, 0),
        refuse,
        _instruction(_RETURN, _ALLOW),
    ]
    return b"".join(program)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def install() -> None:
    """Filters this process and its descendants from now on. Raises OSError or KeyError."""
    code = build_filter(platform.machine())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p).value)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.prctl(linux.PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program))
