"""What the router tells the processes that fork, over a private socket: JSON with descriptors beside it.

These messages hold no user text: a process that forks children must never have had one candidate's code in
its memory, else the next child would inherit it. Payloads travel as descriptors of anonymous files.
"""

from __future__ import annotations

import array
import dataclasses
import json
import socket
from collections.abc import Sequence
from typing import Any

_MAX_BYTES = 1 << 18
_MAX_DESCRIPTORS = 8


@dataclasses.dataclass(frozen=True)
class ProcessSpec:
    """A job process to be forked. Descriptors in order: payload, result, log, status, then the peers'
    sockets.
    """

    part: int  # the router's number of the process
    kind: str  # "trace", "compile", "probe", "judge", "subject"
    role: str  # "candidate", "oracle", "judge"
    level: str  # "bubblewrap", "landlock", "none"
    file_bytes: int  # limit of the private folder
    cpu_seconds: int  # backstop behind the router's deadline
    folder: str  # private folder when there are no namespaces, else empty
    visible: list[str]  # paths that may be read beside the system's
    hidden: list[str]  # files that appear empty


def send(channel: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Sends one message. Raises OSError when the other side has gone."""
    data = json.dumps(message).encode()
    ancillary: list[tuple[int, int, Any]] = []
    if descriptors:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    channel.sendmsg([data], ancillary)


def receive(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Receives one message and its descriptors; None when the other side has gone."""
    data, ancillary, _flags, _address = channel.recvmsg(
        _MAX_BYTES, socket.CMSG_SPACE(_MAX_DESCRIPTORS * array.array("i").itemsize), socket.MSG_CMSG_CLOEXEC
    )
    descriptors = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(payload[: len(payload) - len(payload) % descriptors.itemsize])
    if not data:
        return None, list(descriptors)
    return json.loads(data), list(descriptors)
