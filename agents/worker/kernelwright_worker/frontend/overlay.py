"""Imports a user's file and its neighbours from the texts that a job names, under the user's own paths.

Whatever is imported below the import root is loaded from source by this module, never from a bytecode cache:
the text that ran is known, hashed, and shown in tracebacks, also when the editor has not saved it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import sys
import types
from collections.abc import Mapping, Sequence

from kernelwright_worker.imports import import_root


class ImportFailed(Exception):
    """The file cannot be found or named as a module; the text says why and what to do."""


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads one user file."""

    def __init__(self, fullname: str, path: str, overlay: Overlay) -> None:
        super().__init__(fullname, path)
        self._overlay = overlay

    def get_data(self, path: str) -> bytes:
        return self._overlay.text(path)

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class Overlay(importlib.abc.MetaPathFinder):
    """Finder of user modules; installed with `install`."""

    def __init__(self, entry: str, texts: Mapping[str, bytes]) -> None:
        self.entry = os.path.abspath(entry)
        self.root, self.module_name = import_root(self.entry)
        self._texts = {os.path.abspath(p): t for p, t in texts.items()}
        self._folders = {os.path.dirname(p) for p in self._texts}
        self.used: dict[str, bytes] = {}

    def text(self, path: str) -> bytes:
        """Text of a file as this job uses it; remembered, so that it is read once."""
        path = os.path.abspath(path)
        if path not in self.used:
            data = self._texts.get(path)
            if data is None:
                with open(path, "rb") as file:
                    data = file.read()
            self.used[path] = data
            lines = importlib.util.decode_source(data).splitlines(keepends=True)
            # No time stamp: linecache then never compares it with the disk.
            linecache.cache[path] = (len(data), None, lines, path)
        return self.used[path]

    def sha256(self, path: str) -> str:
        """Hash of the text that was used."""
        return hashlib.sha256(self.used[path]).hexdigest()

    def install(self) -> None:
        """Makes the import root importable, before everything else as for a script."""
        sys.meta_path.insert(0, self)
        if self.root not in sys.path:
            sys.path.insert(0, self.root)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Answers for modules below the import root and leaves the rest to Python."""
        tail = fullname.rpartition(".")[2]
        for folder in [self.root] if path is None else path:
            if not self._is_user_folder(folder):
                if path is None:
                    continue
                return None
            package = os.path.join(folder, tail)
            initial = os.path.join(package, "__init__.py")
            if self._exists(initial):
                return self._spec(fullname, initial, [package])
            if self._exists(package + ".py"):
                return self._spec(fullname, package + ".py", None)
        return None

    def load_entry(self) -> types.ModuleType:
        """Imports the entry file. Raises what its code raises, or ImportFailed."""
        if not self._exists(self.entry):
            raise ImportFailed(
                f"{self.entry} does not exist, or lies outside the folders that the worker may read: "
                "start the worker with its folder as an import root"
            )
        parent = self.module_name.rpartition(".")[0]
        name = self.module_name
        if parent:
            importlib.import_module(parent)
        if not parent and (name in sys.modules or name in sys.stdlib_module_names or "." in name):
            name = "_kernelwright_" + name.replace(".", "_")  # never stands in for a library of that name
        if name in sys.modules:  # the entry is a package's __init__, or its package imports it
            return sys.modules[name]
        is_package = os.path.basename(self.entry) == "__init__.py"
        spec = self._spec(name, self.entry, [os.path.dirname(self.entry)] if is_package else None)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            assert spec.loader is not None
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        if parent:
            setattr(sys.modules[parent], name.rpartition(".")[2], module)
        return module

    def _spec(self, fullname: str, file: str, locations: list[str] | None) -> importlib.machinery.ModuleSpec:
        loader = _Loader(fullname, file, self)
        spec = importlib.util.spec_from_file_location(
            fullname, file, loader=loader, submodule_search_locations=locations
        )
        assert spec is not None
        return spec

    def _exists(self, path: str) -> bool:
        return path in self._texts or os.path.isfile(path)

    def _is_user_folder(self, folder: str) -> bool:
        folder = os.path.abspath(folder)
        if is_library(folder):
            return False
        return folder == self.root or folder.startswith(self.root + os.sep) or folder in self._folders


_LIBRARY_ROOTS = tuple(
    {os.path.dirname(os.__file__), sys.prefix + os.sep + "lib", sys.base_prefix + os.sep + "lib"}
)


def is_library(path: str) -> bool:
    """Whether a path belongs to an installed package or the standard library."""
    if "/site-packages/" in path + "/" or "/dist-packages/" in path + "/" or path.startswith("<"):
        return True
    return any(path.startswith(root + os.sep) for root in _LIBRARY_ROOTS)
