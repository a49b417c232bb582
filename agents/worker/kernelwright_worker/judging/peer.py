"""The judge's end of the channel to a candidate or an oracle."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from kernelwright.v1 import worker_pb2

from kernelwright_worker import framing

_NONCE_BYTES = 16


class PeerGone(Exception):
    """The process has ended before its work was done; the router knows how."""

    def __init__(self, role: str) -> None:
        super().__init__(role)
        self.role = role


class WrongNonce(Exception):
    """The reply is not one to the request."""


class Peer:
    """Sends a request, waits for its reply."""

    def __init__(self, channel: socket.socket, role: str) -> None:
        self._channel = channel
        self._role = role
        self._decoder = framing.FrameDecoder()

    def ask(self, request: worker_pb2.RoleRequest) -> worker_pb2.RoleReply:
        """Raises PeerGone or WrongNonce."""
        self.send(request)
        return self.wait()

    def send(self, request: worker_pb2.RoleRequest) -> None:
        """First half of `ask`, so that two processes can work at the same time."""
        self._nonce = os.urandom(_NONCE_BYTES)
        request.nonce = self._nonce
        try:
            self._channel.sendall(framing.encode_frame(request.SerializeToString()))
        except OSError as error:
            raise PeerGone(self._role) from error

    def wait(self) -> worker_pb2.RoleReply:
        """Second half of `ask`."""
        try:
            message = framing.receive_message(self._channel, self._decoder)
        except OSError as error:
            raise PeerGone(self._role) from error
        except framing.FramingError as error:
            raise WrongNonce(f"its reply is not a frame: {error}") from error
        if message is None:
            raise PeerGone(self._role)
        try:
            reply = worker_pb2.RoleReply.FromString(message)
        except Exception as error:  # protobuf's DecodeError
            raise WrongNonce(f"its reply cannot be read: {error}") from error
        if reply.nonce != self._nonce:
            raise WrongNonce("its reply does not carry the request's nonce")
        return reply

    def close(self) -> None:
        """Tells the process that nothing more is wanted."""
        self._channel.close()


def request(
    specs: Sequence[worker_pb2.InputSpec],
    values: Sequence[worker_pb2.Tensor] = (),
    *,
    interpret: bool = False,
    seed: int = 0,
    widen: bool = False,
    ghost: int = 0,
    want_program: bool = False,
    zero_memory: bool = False,
) -> worker_pb2.RoleRequest:
    """A request without its nonce. Ranges of integers are left out: they tell how values were drawn."""
    blind: list[worker_pb2.InputSpec] = []
    for spec in specs:
        copy = worker_pb2.InputSpec()
        copy.CopyFrom(spec)
        if copy.WhichOneof("kind") == "tensor":
            copy.tensor.has_range = False
            copy.tensor.low = copy.tensor.high = 0
        blind.append(copy)
    return worker_pb2.RoleRequest(
        inputs=blind,
        tensors=values,
        interpret_tpu=interpret,
        interpreter_seed=seed,
        widen=widen,
        ghost_kernel=ghost,
        want_program=want_program,
        zero_memory=zero_memory,
    )
