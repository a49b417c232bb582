"""Fixtures of the worker's tests."""

from __future__ import annotations

import pathlib
import textwrap
from collections.abc import Callable, Iterator

import pytest
from kernelwright.v1 import worker_pb2
from worker.client import DATA, Worker

Write = Callable[[str, str], pathlib.Path]


@pytest.fixture(scope="session")
def import_root(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder that the shared worker may read."""
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="session")
def shared_worker(import_root: pathlib.Path) -> Iterator[tuple[Worker, worker_pb2.HelloReply]]:
    """One worker for all tests that do not harm it."""
    with Worker(import_root, DATA) as worker:
        yield worker, worker.hello(parallel_jobs=3)


@pytest.fixture
def worker(shared_worker: tuple[Worker, worker_pb2.HelloReply]) -> Worker:
    """The shared worker, connected."""
    return shared_worker[0]


@pytest.fixture
def folder(import_root: pathlib.Path, request: pytest.FixtureRequest) -> pathlib.Path:
    """A folder of this test alone, below the import root."""
    found: pathlib.Path = import_root / request.node.name.replace("[", "_").replace("]", "").replace("/", "_")
    found.mkdir(exist_ok=True)
    return found


@pytest.fixture
def write(folder: pathlib.Path) -> Write:
    """Writes a file below the test's folder."""

    def do(name: str, text: str) -> pathlib.Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    return do
