"""Role judge: draws inputs, has reference and candidate run, compares, gives verdicts. Holds no user code."""
import socket
from kernelwright.v1 import worker_pb2
def run(job: worker_pb2.JudgeJob, oracle: socket.socket, candidate: socket.socket) -> worker_pb2.JudgeResult:
    raise NotImplementedError
