"""Records the first calls of one function while the user's own program runs.

The function is replaced, once its module has been executed, by one that notes its arguments and calls it.
A function of the program's main script cannot be replaced; its calls are seen by a profile hook, which sees
what the function's body sees: under `jax.jit` that is shapes and types without values.

A record is written after each call, so that a program which is ended early leaves what it had: `OUT`
(JSON: per call the path, type, shape or value of each leaf) and `OUT.N.npz` (arrays of call N, as bytes).
"""

from __future__ import annotations

import functools
import importlib.abc
import inspect
import json
import os
import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

_VERSION = 1


def install() -> None:
    """Watches for the function that the environment names."""
    recorder = Recorder(
        file=os.path.realpath(os.environ["KERNELWRIGHT_CAPTURE_FILE"]),
        function=os.environ["KERNELWRIGHT_CAPTURE_FUNCTION"],
        out=os.environ["KERNELWRIGHT_CAPTURE_OUT"],
        calls=int(os.environ.get("KERNELWRIGHT_CAPTURE_CALLS", "3")),
        value_bytes=int(os.environ.get("KERNELWRIGHT_CAPTURE_BYTES", str(16 << 20))),
    )
    sys.meta_path.insert(0, _Finder(recorder))
    if any(os.path.realpath(word) == recorder.file for word in sys.orig_argv[1:]):
        _watch_main(recorder)


class Recorder:
    """Keeps the first calls with different shapes or values of statics."""

    def __init__(self, file: str, function: str, out: str, calls: int, value_bytes: int) -> None:
        self.file = file
        self.function = function
        self._out = out
        self._most = calls
        self._value_bytes = value_bytes
        self._calls: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._busy = threading.local()

    @property
    def full(self) -> bool:
        """Whether nothing more is wanted."""
        return len(self._calls) >= self._most

    def record(self, signature: inspect.Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Notes a call; never lets an error of its own reach the program."""
        if self.full or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            bound = signature.bind(*args, **kwargs).arguments
            self.note(dict(bound), signature)
        except Exception as error:
            print(f"kernelwright capture: a call could not be recorded: {error}", file=sys.stderr)
        finally:
            self._busy.now = False

    def note(self, arguments: dict[str, Any], signature: inspect.Signature | None) -> None:
        """Notes arguments by parameter name."""
        leaves, arrays = describe(arguments, signature)
        with self._lock:
            if self.full or any(_shape_of(c["leaves"]) == _shape_of(leaves) for c in self._calls):
                return
            number = len(self._calls) + 1
            kept = self._save(number, leaves, arrays)
            self._calls.append({"leaves": leaves, "values": kept})
            record = {"version": _VERSION, "file": self.file, "function": self.function, "calls": self._calls}
            text = json.dumps(record, indent=1)
            partial = f"{self._out}.{os.getpid()}.partial"
            with open(partial, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(partial, self._out)

    def _save(self, number: int, leaves: list[dict[str, Any]], arrays: dict[int, Any]) -> str | None:
        import numpy as np

        left = self._value_bytes
        chosen: dict[str, Any] = {}
        for index, array in arrays.items():
            if array.nbytes <= left:
                left -= array.nbytes
                leaves[index]["key"] = str(index)
                chosen[str(index)] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        if not chosen:
            return None
        path = f"{self._out}.{number}.npz"
        with open(path, "wb") as file:
            np.savez(file, **chosen)
        return os.path.basename(path)


def describe(
    arguments: dict[str, Any], signature: inspect.Signature | None
) -> tuple[list[dict[str, Any]], dict[int, Any]]:
    """Leaves of the arguments, and the arrays among them that have values, by the leaf's index."""
    import jax

    leaves: list[dict[str, Any]] = []
    arrays: dict[int, Any] = {}
    for name, value in arguments.items():
        parameter = signature.parameters.get(name) if signature else None
        if name in ("self", "cls") and not leaves:
            continue
        if parameter is not None and parameter.default is value:
            continue
        for path, leaf in jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda x: x is None)[0]:
            if leaf is None:
                continue
            where = name + "".join(_step(key) for key in path)
            entry, array = _leaf(where, leaf)
            if array is not None:
                arrays[len(leaves)] = array
            leaves.append(entry)
    return leaves, arrays


def _leaf(path: str, value: Any) -> tuple[dict[str, Any], Any]:
    import jax
    import numpy as np

    if isinstance(value, (bool, int, float, str)) and not isinstance(value, np.generic):
        return {"path": path, "kind": "static", "value": value}, None
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "shape"):
        return {"path": path, "kind": "other", "type": type(value).__name__}, None
    if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        return {"path": path, "kind": "key", "shape": list(value.shape)}, None
    known = jax.dtypes.canonicalize_dtype(dtype)
    entry: dict[str, Any] = {"path": path, "kind": "array", "dtype": str(known), "shape": list(value.shape)}
    if isinstance(value, jax.core.Tracer):
        return entry, None
    array = np.asarray(value).astype(known)
    if known.kind in "iu" and array.size:
        entry["range"] = [int(array.min()), int(array.max())]
    return entry, array


def _step(key: Any) -> str:
    if hasattr(key, "name"):
        return f".{key.name}"
    if hasattr(key, "idx"):
        return f"[{key.idx}]"
    inner = key.key
    return f"[{inner}]" if isinstance(inner, int) else f"[{json.dumps(str(inner))}]"


def _shape_of(leaves: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(e["path"], e["kind"], e.get("dtype"), tuple(e.get("shape", ())), e.get("value")) for e in leaves]


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders find, and looks at what they found."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._inside = threading.local()

    def find_spec(self, name: str, path: Any = None, target: types.ModuleType | None = None) -> Any:
        """The spec of another finder, with a loader that wraps the function afterwards."""
        if getattr(self._inside, "now", False):
            return None
        self._inside.now = True
        try:
            for finder in sys.meta_path:
                find = None if finder is self else getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find else None
                if spec is None:
                    continue
                if spec.origin and os.path.realpath(spec.origin) == self._recorder.file and spec.loader:
                    _wrap_after(spec.loader, self._recorder)
                return spec
        finally:
            self._inside.now = False
        return None


def _wrap_after(loader: Any, recorder: Recorder) -> None:
    execute = loader.exec_module

    def exec_module(module: types.ModuleType) -> None:
        execute(module)
        _replace(module, recorder)

    loader.exec_module = exec_module


def _replace(module: types.ModuleType, recorder: Recorder) -> None:
    *owners, name = recorder.function.replace(".<locals>", "").split(".")
    owner: Any = module
    for part in owners:
        owner = getattr(owner, part, None)
    static = inspect.getattr_static(owner, name, None) if owner is not None else None
    if static is None:
        return
    if isinstance(static, (staticmethod, classmethod)):
        setattr(owner, name, type(static)(_recording(static.__func__, recorder)))
    elif isinstance(static, types.FunctionType):
        setattr(owner, name, _recording(static, recorder))
    elif callable(static):
        setattr(owner, name, _RecordingCallable(static, recorder))


def _recording(function: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder.record(signature, args, kwargs)
        return function(*args, **kwargs)

    return call


class _RecordingCallable:
    """Stands for a jitted function: everything but the call is the original's."""

    def __init__(self, original: Any, recorder: Recorder) -> None:
        self._original = original
        self._recorder = recorder
        self._signature = inspect.signature(original)
        functools.update_wrapper(self, original)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._recorder.record(self._signature, args, kwargs)
        return self._original(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def _watch_main(recorder: Recorder) -> None:
    """Sees the calls of a function of the main script by its code's file and name."""
    wanted = recorder.function.rpartition(".")[2]
    qualified = recorder.function

    def look(frame: types.FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name != wanted or os.path.realpath(code.co_filename) != recorder.file:
            return
        if getattr(code, "co_qualname", qualified) != qualified:
            return
        count = code.co_argcount + code.co_kwonlyargcount
        arguments = {name: frame.f_locals[name] for name in code.co_varnames[:count]}
        sys.setprofile(None)
        try:
            recorder.note(arguments, None)
        except Exception as error:
            print(f"kernelwright capture: a call could not be recorded: {error}", file=sys.stderr)
        finally:
            if not recorder.full:
                sys.setprofile(look)

    sys.setprofile(look)
    threading.setprofile(look)
