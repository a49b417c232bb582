"""Which files and functions took part in a trace: the key of a cache, and where a retuning may edit."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

from kernelwright.v1 import worker_pb2

from kernelwright_worker.frontend import spans
from kernelwright_worker.frontend.overlay import Overlay, is_library

# Identified by their versions, which every result names; their thousands of frames would hide the rest.
_TOOLCHAIN = (
    "/jax/_src/",
    "/jax/interpreters/",
    "/jaxlib/",
    "/numpy/",
    "/ml_dtypes/",
    "/kernelwright_worker/",
)


class Closure:
    """Collects functions as they are entered; a context manager around imports and tracing."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._entered: dict[types.CodeType, None] = {}

    def __enter__(self) -> Closure:
        entered = self._entered

        def profile(frame: types.FrameType, event: str, _argument: Any) -> None:
            if event == "call":
                entered[frame.f_code] = None

        sys.setprofile(profile)
        return self

    def __exit__(self, *_exception: object) -> None:
        sys.setprofile(None)

    def files(self) -> list[worker_pb2.ClosureFile]:
        """Files that were imported from the user's folders or entered while tracing, user files first."""
        found: dict[str, worker_pb2.ClosureFile] = {}
        for path in self._overlay.used:
            found[path] = worker_pb2.ClosureFile(
                path=path, sha256=self._overlay.sha256(path), is_user_file=not is_library(path)
            )
        for code in self._entered:
            path = code.co_filename
            if path not in found and not self._is_interesting(path):
                continue
            if path not in found:
                self._overlay.text(path)
                found[path] = worker_pb2.ClosureFile(
                    path=path, sha256=self._overlay.sha256(path), is_user_file=not is_library(path)
                )
            name = spans.qualified_name(code)
            if not name.startswith("<") and name not in found[path].functions:
                found[path].functions.append(name)
        return sorted(found.values(), key=lambda f: (not f.is_user_file, f.path))

    @staticmethod
    def _is_interesting(path: str) -> bool:
        if path.startswith("<") or any(part in path for part in _TOOLCHAIN) or not os.path.isabs(path):
            return False
        standard = os.path.dirname(os.__file__) + os.sep
        if path.startswith(standard) and "-packages" not in path[len(standard) :]:
            return False
        return os.path.isfile(path)
