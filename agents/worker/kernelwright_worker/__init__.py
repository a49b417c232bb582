"""The Kernelwright worker: a fork server that traces, compiles and judges kernels in processes of their own."""

__version__ = "0.1.0"
PROTOCOL_VERSION = 1
