"""The Kernelwright worker: traces, compiles and judges kernels, each in a process of its own."""

__version__ = "0.1.0"
PROTOCOL_VERSION = 1
