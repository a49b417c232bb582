"""Fixtures of the end-to-end tests; what they do is in harness.py."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from harness import BINARY, EXAMPLES, Kernelwright, private_installation


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run the tests that take long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    left_out = pytest.mark.skip(reason="takes long; runs with scripts/test --full")
    for item in items:
        if "full" in item.keywords:
            item.add_marker(left_out)


def _home() -> pathlib.Path:
    # Short, because a Unix socket's path ends at 107 characters; pytest's own folders can be longer.
    return pathlib.Path(tempfile.mkdtemp(prefix="kw-", dir=os.environ.get("KW_TEST_TMP", "/tmp")))


def _require_binary() -> None:
    assert BINARY.is_file(), f"{BINARY} is missing: run scripts/build"


@pytest.fixture
def kw() -> Iterator[Kernelwright]:
    """A Kernelwright of this test alone: nothing stored, no daemon yet."""
    _require_binary()
    with private_installation(_home()) as kernelwright:
        yield kernelwright


@pytest.fixture(scope="module")
def shared() -> Iterator[Kernelwright]:
    """One Kernelwright for the tests of a file that do not disturb each other: its worker stays warm."""
    _require_binary()
    with private_installation(_home()) as kernelwright:
        yield kernelwright


@pytest.fixture
def workspace(tmp_path: pathlib.Path) -> pathlib.Path:
    """A user's folder with a copy of the examples."""
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder
