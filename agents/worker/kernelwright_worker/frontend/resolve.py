"""Finds the function that a job names: `f`, `Class.method`, `Outer.Inner.method`."""

from __future__ import annotations

import difflib
import inspect
import types
from collections.abc import Callable
from typing import Any


class ResolveError(Exception):
    """There is no such function, or it cannot be called; the text says what there is."""


def resolve(module: types.ModuleType, qualified: str) -> Callable[..., Any]:
    """Returns the callable. Raises ResolveError."""
    owner: Any = module
    names = qualified.split(".")
    for position, name in enumerate(names):
        try:
            static = inspect.getattr_static(owner, name)
        except AttributeError:
            raise ResolveError(_missing(module, owner, names[:position], name)) from None
        if inspect.isclass(owner) and position == len(names) - 1 and _needs_instance(static):
            return _bind(owner, name, qualified)
        owner = getattr(owner, name)
    if inspect.isclass(owner):
        methods = ", ".join(f"{qualified}.{n}" for n in _functions(owner)) or "none"
        raise ResolveError(f"{qualified} is a class, name one of its methods: {methods}")
    if not callable(owner):
        raise ResolveError(f"{qualified} is a {type(owner).__name__}, not a function")
    found: Callable[..., Any] = owner
    return found


def _needs_instance(static: Any) -> bool:
    return (
        callable(static)
        and not isinstance(static, (staticmethod, classmethod))
        and not inspect.isclass(static)
    )


def _bind(owner: type, name: str, qualified: str) -> Callable[..., Any]:
    try:
        instance = owner()
    except Exception as error:
        raise ResolveError(
            f"{qualified} needs an instance and {owner.__name__}() cannot make one without arguments "
            f"({type(error).__name__}: {error}): write a function in the module that builds it and calls "
            "the method"
        ) from error
    bound: Callable[..., Any] = getattr(instance, name)
    return bound


def _functions(owner: Any) -> list[str]:
    return sorted(
        n for n, v in vars(owner).items() if callable(v) and not n.startswith("__") and _is_own(owner, v)
    )


def _is_own(owner: Any, value: Any) -> bool:
    module = owner.__name__ if inspect.ismodule(owner) else owner.__module__
    return getattr(value, "__module__", module) == module


def _missing(module: types.ModuleType, owner: Any, path: list[str], name: str) -> str:
    where = ".".join(path) if path else module.__file__ or module.__name__
    known = _functions(owner) if inspect.ismodule(owner) or inspect.isclass(owner) else []
    close = difflib.get_close_matches(name, known, 3)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    elif known:
        hint = f"it has {', '.join(known[:20])}"
    else:
        hint = "it has no functions"
    return f"there is no {name!r} in {where}: {hint}"
