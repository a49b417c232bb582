"""The pages of the diagnostics are what the catalogue says."""

from __future__ import annotations

import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]


def test_pages_are_current() -> None:
    command = [sys.executable, str(TOP / "scripts" / "diagnostics_pages.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
