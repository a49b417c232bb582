"""Roles candidate and oracle of a judge job."""
import socket
from kernelwright.v1 import worker_pb2
def serve(job: worker_pb2.JudgeJob, role: str, channel: socket.socket) -> None:
    raise NotImplementedError
