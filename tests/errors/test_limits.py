"""A job that runs into a limit: it alone ends, the reason is said, and what it started is gone."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

import pytest
from harness import ENVIRONMENT, LIMIT, USER_CODE, Kernelwright

KERNEL = (pathlib.Path(__file__).parent / "data" / "double.py").read_text()


def write(folder: pathlib.Path, addition: str) -> pathlib.Path:
    path = folder / "kernel.py"
    path.write_text(KERNEL + addition)
    return path


def test_endless_import_is_ended_by_the_timeout(kw: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "\nwhile True:\n    pass\n")
    result = kw.optimize(f"{path}::double", "--timeout", "3s").expect(LIMIT)
    result.says("3 s")
    assert result.seconds < 30


def test_sleeping_grandchildren_do_not_outlive_the_timeout(kw: Kernelwright, tmp_path: pathlib.Path) -> None:
    # A process that left its group and keeps the pipes open must neither extend the time nor survive.
    path = write(
        tmp_path,
        "\nimport subprocess, time\n"
        "subprocess.Popen(['sleep', '471'], start_new_session=True)\n"
        "time.sleep(471)\n",
    )
    result = kw.optimize(f"{path}::double", "--timeout", "3s").expect(LIMIT)
    assert result.seconds < 30
    assert "sleep 471" not in [p.command for p in kw.workers()]


def test_memory_limit_ends_the_job_and_says_how_much(kw: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "\nblocks = []\nwhile True:\n    blocks.append(bytearray(b'x' * (64 << 20)))\n")
    result = kw.optimize(f"{path}::double")
    result.expect(LIMIT, USER_CODE).says("memory")
    assert re.search(r"\d+(\.\d+)? ?[GM]i?B", result.text), result


def test_crash_of_the_users_code_is_told_from_a_limit(kw: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "\nimport ctypes\nctypes.string_at(0)\n")
    kw.optimize(f"{path}::double").expect(USER_CODE).says("SIGSEGV")


def test_the_daemon_serves_on_after_each(kw: Kernelwright, tmp_path: pathlib.Path) -> None:
    bad = write(tmp_path, "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    kw.optimize(f"{bad}::double").expect(USER_CODE, LIMIT)
    pid = kw.daemon_pid()
    good = write(tmp_path, "")
    result = kw.run("tune", f"{good}::double", "--chip", "v5e", "--json").expect(0)
    assert result.json["status"] in ("improved", "no_improvement")
    assert kw.daemon_pid() == pid


def test_budget_used_up_is_a_result(kw: Kernelwright, workspace: pathlib.Path) -> None:
    result = kw.optimize(f"{workspace}/matmul_blocks128.py::matmul", "--budget", "1s")
    result.expect(0, LIMIT)
    assert result.json["status"] in ("improved", "no_improvement", "cancelled")


def _can_mount() -> bool:
    command = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


needs_mount = pytest.mark.skipif(not _can_mount(), reason="needs the right to mount, to make a full disk")


def full_disk(folder: pathlib.Path, size: str) -> list[str]:
    """A program that runs the rest of its arguments with a tiny file system at `folder`."""
    script = f'mount -t tmpfs -o size={size},mode=0700 tmpfs "{folder}" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


@needs_mount
def test_disk_full_under_the_store(kw: Kernelwright, workspace: pathlib.Path) -> None:
    path = workspace / "matmul_blocks128.py"
    before = path.read_bytes()
    result = kw.optimize(
        f"{path}::matmul", "--in-process", before=full_disk(kw.home / "state", "128k")
    ).expect(ENVIRONMENT, LIMIT)
    result.says("space", str(kw.home / "state"))
    assert path.read_bytes() == before


@needs_mount
def test_disk_full_under_the_cache_costs_only_the_cache(kw: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "")
    result = kw.optimize(f"{path}::double", "--in-process", before=full_disk(kw.home / "cache", "64k"))
    result.expect(0, ENVIRONMENT)
    if result.code == ENVIRONMENT:
        result.says("space", str(kw.home / "cache"))
