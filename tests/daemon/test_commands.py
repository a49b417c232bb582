"""The commands as a user types them: streams, exit codes, Ctrl-C, a terminal, --apply."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from daemon.machine import REPOSITORY, Machine

GOLDEN = REPOSITORY / "daemon" / "cli" / "testdata"


def improved(machine: Machine, target: Path | None = None, exit_code: int = 0) -> dict[str, Any]:
    result = json.loads((GOLDEN / "improved.json").read_text())
    if target is not None:
        edit = result["results"][0]["best"]["edits"][0]
        edit["file"] = str(target)
        edit["base_sha256"] = hashlib.sha256(target.read_bytes()).hexdigest()
        edit["new_text"] = "BM = 512\n"
    return {"status": "improved", "exit_code": exit_code, "result": result}


def candidate(status: str) -> dict[str, Any]:
    row = {"id": "c1", "status": status, "what": "bm=512"}
    return {"kind": "candidate_changed", "payload": {"chip": "v5e", "candidate": row}}


def test_json_is_one_object_on_standard_output(machine: Machine) -> None:
    script = machine.script("k.jsonl", candidate("compiling"), candidate("passed"), improved(machine))
    done = machine.run("optimize", script, "--json")
    assert done.returncode == 0
    result = json.loads(done.stdout)
    assert result["schema_version"] == 1
    assert result["status"] == "improved"
    assert result["chip"] == "v5e"
    assert result["original"]["estimate_ms"] == 11.77
    assert "passed" in done.stderr


def test_diff_is_alone_on_standard_output(machine: Machine) -> None:
    done = machine.run("optimize", machine.script("k.jsonl", improved(machine)), "--diff")
    assert done.stdout == json.loads((GOLDEN / "improved.json").read_text())["best"]["diff"]
    assert "13.18x faster (estimated)" in done.stderr


def test_apply_writes_an_unchanged_file_only(machine: Machine) -> None:
    target = machine.root / "matmul.py"
    target.write_text("BM = 128\n")
    other = machine.root / "other.py"
    other.write_text("mine\n")
    script = machine.script("k.jsonl", improved(machine, target))
    done = machine.run("optimize", script, "--apply")
    assert done.returncode == 0, done.stderr
    assert target.read_text() == "BM = 512\n"
    assert other.read_text() == "mine\n"

    target.write_text("BM = 129  # newer work\n")
    done = machine.run("runs", "show", "r1", "--apply")
    assert done.returncode == 2
    assert "has changed since" in done.stderr
    assert "runs show r1 --diff" in done.stderr
    assert target.read_text() == "BM = 129  # newer work\n"
    shown = machine.json("runs", "show", "r1", "--apply")
    assert shown["applied"] is False
    assert shown["apply_error"]["kind"] == "conflict"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("optimize",), 2, "target is required"),
        (("nonsense",), 2, "nonsense"),
        (("optimize", "k.py::"), 2, "FILE.py::function"),
        (("optimize", "missing.py::f"), 2, "no such file"),
        (("optimize", "k.py", "--budget", "soon"), 2, "--budget"),
        (("optimize", "k.py", "--sandbox", "hope"), 2, "--sandbox"),
        (("optimize", "k.py", "--diff", "--apply"), 2, "--apply"),
        (("runs", "show", "nope"), 2, "no run nope"),
        (("runs", "prune"), 2, "--older-than"),
    ],
)
def test_wrong_usage_says_what_to_do(
    machine: Machine, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = machine.run(*arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    done = machine.run(*arguments, "--json")
    assert done.returncode == code
    error = json.loads(done.stdout)
    assert error["schema_version"] == 1
    assert error["exit_code"] == code
    assert set(error["error"]) == {"kind", "message", "where", "remedy"}


@pytest.mark.parametrize(
    "command",
    [
        ("serve",),
        ("optimize",),
        ("tune",),
        ("doctor",),
        ("stop",),
        ("version",),
        ("runs", "list"),
        ("runs", "show"),
        ("runs", "watch"),
        ("runs", "resume"),
        ("runs", "export"),
        ("runs", "prune"),
    ],
)
def test_every_command_has_help_with_examples_and_the_shared_flags(
    machine: Machine, command: tuple[str, ...]
) -> None:
    done = machine.run(*command, "--help")
    assert done.returncode == 0
    assert "Examples:\n  kernelwright " + " ".join(command) in done.stdout
    for flag in ("--json", "--chip", "--timeout", "--budget", "--in-process", "--python", "--sandbox"):
        assert flag in done.stdout
    assert "--build-number" not in done.stdout
    assert machine.daemons() == []


def test_the_exit_code_is_the_runs(machine: Machine) -> None:
    failed = json.loads((GOLDEN / "failed.json").read_text())
    script = machine.script("k.jsonl", {"status": "failed", "exit_code": 1, "result": failed})
    done = machine.run("tune", script)
    assert done.returncode == 1
    assert "G31 fail" in done.stdout


def test_flags_reach_the_engine_and_the_store(machine: Machine) -> None:
    script = machine.script("k.jsonl", improved(machine))
    machine.run("optimize", script + "::mm", "--chip", "v5e,v6e", "--chip", "v5p")
    (run,) = machine.json("runs", "list")["runs"]
    assert run["chips"] == ["v5e", "v6e", "v5p"]
    assert run["function"] == "mm"
    assert run["file"] == script


@pytest.mark.parametrize("where", [(), ("--in-process",)])
def test_ctrl_c_cancels_and_keeps_what_was_found(machine: Machine, where: tuple[str, ...]) -> None:
    script = machine.script("k.jsonl", candidate("compiling"), candidate("passed"), {"wait": True})
    process = machine.start("optimize", script, "--plain", "--json", *where)
    assert process.stderr is not None
    while "passed" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=20)
    assert "cancelling" in error
    assert json.loads(out)["status"] == "cancelled"
    assert process.returncode == 4


def test_leaving_a_watch_does_not_cancel(machine: Machine) -> None:
    script = machine.script("k.jsonl", {"wait": True})
    first = machine.start("optimize", script)
    assert first.stderr is not None
    first.stderr.readline()
    watch = machine.start("runs", "watch", "r1")
    assert watch.stderr is not None
    watch.stderr.readline()
    watch.send_signal(signal.SIGINT)
    _, error = watch.communicate(timeout=20)
    assert "the run goes on" in error
    assert first.poll() is None
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=20)


def test_export_and_prune(machine: Machine) -> None:
    machine.run("optimize", machine.script("k.jsonl", improved(machine)))
    done = machine.run("runs", "export", "r1")
    assert json.loads(done.stdout)["run"] == "r1"
    target = machine.root / "out.json"
    assert machine.run("runs", "export", "r1", "-o", str(target)).returncode == 0
    assert target.read_text() == done.stdout
    assert machine.json("runs", "prune", "--keep", "0", "--dry-run") == {
        "schema_version": 1,
        "runs": 1,
        "freed_bytes": 1000,
        "dry_run": True,
    }


def read_terminal(machine: Machine, *arguments: str, **variables: str) -> str:
    main, side = pty.openpty()
    environment = {**machine.environment(), "TERM": "xterm", **variables}
    process = subprocess.Popen(
        [str(machine.program), *arguments],
        env=environment,
        stdin=side,
        stdout=side,
        stderr=side,
        cwd=machine.root,
        start_new_session=True,
    )
    os.close(side)
    text = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        text += part
    process.wait(timeout=20)
    os.close(main)
    return text.decode()


def test_a_terminal_gets_lines_that_change_and_colours(machine: Machine) -> None:
    script = machine.script("k.jsonl", candidate("compiling"), candidate("passed"), improved(machine))
    text = read_terminal(machine, "optimize", script)
    assert "\x1b[J" in text
    assert "\x1b[32m+BM = 512\x1b[0m" in text
    for plain in (("--plain", {}), ("", {"NO_COLOR": "1"}), ("", {"TERM": "dumb"})):
        flag, variables = plain
        arguments = ("optimize", script, *([flag] if flag else []))
        assert "\x1b" not in read_terminal(machine, *arguments, **variables)


def test_doctor_reports_the_daemon(machine: Machine) -> None:
    report = machine.json("doctor")
    assert report["status"] == "ok"
    assert report["items"][0]["name"] == "daemon"
    assert str(machine.discovery()["pid"]) in report["items"][0]["value"]


def test_version_asks_nobody(machine: Machine) -> None:
    version = machine.json("version")
    assert version["protocol"] == {"min": 1, "max": 1}
    assert machine.daemons() == []


def test_a_socket_path_that_is_too_long_is_explained(machine: Machine) -> None:
    deep = machine.root / ("d" * 90)
    deep.mkdir()
    machine.variables["XDG_RUNTIME_DIR"] = str(deep)
    done = machine.run("runs", "list")
    assert done.returncode == 3
    assert "XDG_RUNTIME_DIR" in done.stderr
    assert machine.run("runs", "list", "--in-process").returncode == 0
