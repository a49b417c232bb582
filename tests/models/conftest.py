"""The binary with keys in its environment, and the server with faults."""

from __future__ import annotations

import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator

import pytest
from harness import BINARY, private_installation
from models.asker import KEY, Asker
from models.faulty_server import Server, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def asker() -> Iterator[Asker]:
    assert BINARY.is_file(), f"{BINARY} is missing: run scripts/build"
    home = pathlib.Path(tempfile.mkdtemp(prefix="kw-", dir=os.environ.get("KW_TEST_TMP", "/tmp")))
    with private_installation(home) as installation:
        asker = Asker(installation)
        yield asker
        # NoKeysOnDisk: whatever happened above, the key is in no output and in no file.
        for result in asker.results:
            assert KEY not in result.text, result
        found = subprocess.run(["grep", "-rl", KEY, str(home)], capture_output=True, text=True, check=False)
        assert found.stdout == ""
