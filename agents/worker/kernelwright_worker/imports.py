"""Finds, without running anything, which installed packages a user's file will import.

These are imported once in a template process, so that a job does not pay for them again. User files are
followed, since they import packages too, but never named here: a template executes no user code.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Collection, Iterator, Mapping

_MAX_TEXT_BYTES = 2 << 20
_MAX_FILES = 200
_NEVER = {"__future__", "kernelwright", "kernelwright_worker", "antigravity", "this", "idlelib", "turtle"}


def import_root(file: str) -> tuple[str, str]:
    """Returns the folder that a file is imported from, and its dotted name there."""
    folder, base = os.path.split(file)
    names = [] if base == "__init__.py" else [os.path.splitext(base)[0]]
    while os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.basename(folder).isidentifier():
        folder, name = os.path.split(folder)
        names.insert(0, name)
    return folder, ".".join(names)


def installed_imports(entry: str, overlay: Mapping[str, bytes], loaded: Collection[str]) -> tuple[str, ...]:
    """Names of installed modules that `entry` and the user files it reaches import, sorted, without loaded
    ones.

    `overlay` has the texts that replace files on disk. A file that does not parse has no imports: the job
    that imports it will say so.
    """
    root, _name = import_root(entry)
    found: set[str] = set()
    pending, seen = [entry], {entry}
    while pending and len(seen) <= _MAX_FILES:
        path = pending.pop()
        for module, attribute in _imports(_text(path, overlay), _package_of(path)):
            local = [p for p in _local_files(root, module, attribute, overlay) if p not in seen]
            is_local = bool(_local_files(root, module.split(".")[0], "", overlay))
            seen.update(local)
            pending += local
            if not is_local and module.split(".")[0] not in sys.stdlib_module_names | _NEVER:
                found.add(module)
    return tuple(sorted(found - set(loaded)))


def _text(path: str, overlay: Mapping[str, bytes]) -> bytes:
    if path in overlay:
        return overlay[path]
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_TEXT_BYTES + 1)
    except OSError:
        return b""


def _package_of(path: str) -> str:
    _root, name = import_root(path)
    if os.path.basename(path) == "__init__.py":
        return name
    return name.rpartition(".")[0]


def _imports(text: bytes, package: str) -> Iterator[tuple[str, str]]:
    """Yields (module, name imported from it or empty) for every import statement."""
    if len(text) > _MAX_TEXT_BYTES:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, ""
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            if base:
                for alias in node.names:
                    yield base, alias.name


def _local_files(root: str, module: str, attribute: str, overlay: Mapping[str, bytes]) -> list[str]:
    """User files that importing `module` (and `attribute` from it) executes."""
    found: list[str] = []
    names = module.split(".") + ([attribute] if attribute and attribute != "*" else [])
    for count in range(1, len(names) + 1):
        stem = os.path.join(root, *names[:count])
        for path in (os.path.join(stem, "__init__.py"), stem + ".py"):
            if path in overlay or os.path.isfile(path):
                found.append(path)
                break
    return found
