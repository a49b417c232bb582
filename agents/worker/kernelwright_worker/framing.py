"""Frames of the worker protocol: the length of a message as a protobuf varint, then the message."""

from __future__ import annotations

import os
import socket

# A longer frame is a broken peer, not a message: the largest real ones are arrays of a check.
MAX_FRAME_BYTES = 2**31 - 1
_MAX_VARINT_BYTES = 10


class FramingError(Exception):
    """The bytes are not a sequence of frames; the stream cannot be used any more."""


def encode_frame(message: bytes) -> bytes:
    """Returns the frame of a serialized message."""
    length = len(message)
    head = bytearray()
    while length >= 0x80:
        head.append((length & 0x7F) | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + message


class FrameDecoder:
    """Cuts a byte stream into messages, however it arrives in pieces."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._max_bytes = max_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Adds bytes; returns the messages that are now complete. Raises FramingError."""
        self._buffer += data
        messages: list[bytes] = []
        while (header := self._read_varint()) is not None:
            size, length = header
            if length > self._max_bytes:
                raise FramingError(f"a frame of {length} bytes is over the limit of {self._max_bytes} bytes")
            if len(self._buffer) < size + length:
                break
            messages.append(bytes(self._buffer[size : size + length]))
            del self._buffer[: size + length]
        return messages

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._buffer)

    def _read_varint(self) -> tuple[int, int] | None:
        value = 0
        for position, byte in enumerate(self._buffer[:_MAX_VARINT_BYTES]):
            value |= (byte & 0x7F) << (7 * position)
            if not byte & 0x80:
                return position + 1, value
        if len(self._buffer) >= _MAX_VARINT_BYTES:
            raise FramingError("a frame's length is not a varint")
        return None


def write_all(descriptor: int, data: bytes) -> None:
    """Writes everything to a blocking descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def receive_message(channel: socket.socket, decoder: FrameDecoder) -> bytes | None:
    """Reads one message from a blocking stream socket; None when the other side has gone."""
    pending = decoder.feed(b"")
    while not pending:
        data = channel.recv(1 << 20)
        if not data:
            return None
        pending = decoder.feed(data)
    if len(pending) != 1:
        raise FramingError("the other side sent a message out of turn")
    return pending[0]
