"""Started by Python in every process of `kernelwright capture`: its folder stands first in PYTHONPATH."""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _next_of_this_name() -> None:
    """Another sitecustomize that this one hides still runs."""
    import importlib.machinery
    import importlib.util

    rest = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


_next_of_this_name()
if "KERNELWRIGHT_CAPTURE_OUT" in os.environ:
    import kernelwright_capture

    kernelwright_capture.install()
