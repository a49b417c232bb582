"""Frames survive any cut, and broken streams are refused."""

from __future__ import annotations

import pytest
from kernelwright_worker.framing import FrameDecoder, FramingError, encode_frame


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 16383, 16384, 70000])
def test_round_trip_in_every_cut(size: int) -> None:
    message = bytes(i % 251 for i in range(size))
    stream = encode_frame(message) + encode_frame(b"next")
    for step in (1, 7, len(stream)) if size < 1000 else (997, len(stream)):
        decoder = FrameDecoder()
        found = [
            m for start in range(0, len(stream), step) for m in decoder.feed(stream[start : start + step])
        ]
        assert found == [message, b"next"]
        assert decoder.pending == 0


def test_a_frame_over_the_limit_is_refused() -> None:
    with pytest.raises(FramingError, match="over the limit"):
        FrameDecoder(max_bytes=10).feed(encode_frame(b"x" * 11))


def test_a_length_that_never_ends_is_refused() -> None:
    with pytest.raises(FramingError, match="varint"):
        FrameDecoder().feed(b"\xff" * 11)
