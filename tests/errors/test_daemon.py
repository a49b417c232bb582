"""The daemon's part in trouble: a second one, a stale socket, kills at any moment, a client that leaves."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import stat
import subprocess
from typing import Any

from harness import INTERNAL, LIMIT, RESULT, USAGE, Kernelwright, all_processes, wait_until

INPUTS = ("--inputs", "x=bf16[8192,1024]", "--chip", "v5e")


def start_tune(kw: Kernelwright, workspace: pathlib.Path) -> subprocess.Popen[str]:
    return kw.start("tune", f"{workspace}/softmax.py::softmax", *INPUTS, "--json")


def events(kw: Kernelwright, run: str) -> list[dict[str, Any]]:
    """All stored events of a run."""
    return list(kw.run("runs", "export", run).expect(RESULT).json["events"])


def passed(kw: Kernelwright, run: str) -> set[str]:
    """Candidates whose evaluation has been reported."""
    return {
        event["candidate_changed"]["candidate"]["id"]
        for event in events(kw, run)
        if event.get("candidate_changed", {}).get("candidate", {}).get("status") in ("passed", "failed")
    }


def test_one_daemon_many_first_commands(kw: Kernelwright) -> None:
    commands = [kw.start("runs", "list", "--json") for _ in range(6)]
    for command in commands:
        out, err = command.communicate(timeout=60)
        assert command.returncode == RESULT, out + err
    daemons = [p for p in all_processes().values() if p.command.endswith("serve") and p.parent == os.getpid()]
    assert len([p for p in daemons if p.state != "Z"]) <= 1
    assert kw.daemon_pid() is not None


def test_one_daemon_second_serve_says_who_serves(kw: Kernelwright) -> None:
    kw.run("runs", "list", "--json").expect(RESULT)
    pid = kw.daemon_pid()
    result = kw.run("serve", limit=30).expect(RESULT, USAGE)
    result.says(str(pid))
    assert kw.daemon_pid() == pid


def test_stale_socket_is_replaced(kw: Kernelwright) -> None:
    kw.run("runs", "list", "--json").expect(RESULT)
    pid = kw.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: kw.daemon_pid() is None, 10, "the daemon's end")
    assert kw.discovery.exists(), "SIGKILL leaves the files behind; that is the case meant here"
    kw.run("runs", "list", "--json").expect(RESULT)
    assert kw.daemon_pid() not in (None, pid)


def test_nonsense_in_the_discovery_file(kw: Kernelwright) -> None:
    folder = kw.discovery.parent
    folder.mkdir(mode=0o700, exist_ok=True)
    kw.discovery.write_text('{"pid": 1, "socket": ')
    kw.discovery.chmod(0o600)
    kw.run("runs", "list", "--json").expect(RESULT)


def test_runtime_folder_is_private(kw: Kernelwright) -> None:
    kw.run("runs", "list", "--json").expect(RESULT)
    folder = kw.discovery.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(kw.discovery.stat().st_mode) == 0o600
    listening = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True).stdout
    assert f"pid={kw.daemon_pid()}," not in listening, "no port may be open"


def test_runtime_folder_that_others_can_write_is_refused(kw: Kernelwright) -> None:
    folder = kw.discovery.parent
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    kw.run("runs", "list", "--json").expect(3).says(str(folder))


def test_log_before_show_daemon_killed_then_resumed(kw: Kernelwright, workspace: pathlib.Path) -> None:
    process = start_tune(kw, workspace)
    run = kw.first_run()
    before = wait_until(lambda: passed(kw, run), 120, "the first evaluated candidate")
    pid = kw.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode in (LIMIT, INTERNAL), "the client must not wait for a dead daemon"

    record = kw.run("runs", "show", run, "--json").expect(RESULT).json
    assert record["status"] == "interrupted"
    result = kw.run("runs", "resume", run, "--json").expect(RESULT).json
    assert result["status"] in ("improved", "no_improvement")
    known = {row["id"] for row in result["candidates"]}
    assert before <= known, "an evaluation that was reported is gone"
    sequences = [event["sequence"] for event in events(kw, run)]
    assert sequences == sorted(sequences, key=int)
    assert len(set(sequences)) == len(sequences)
    kept = [event["run_resumed"] for event in events(kw, run) if "run_resumed" in event]
    assert kept and int(kept[0]["kept_evaluations"]) >= len(before)


def test_worker_killed_the_run_goes_on(kw: Kernelwright, workspace: pathlib.Path) -> None:
    process = start_tune(kw, workspace)
    run = kw.first_run()
    wait_until(lambda: passed(kw, run), 120, "the first evaluated candidate")
    for worker in kw.workers():
        try:
            os.kill(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    out, err = process.communicate(timeout=300)
    assert process.returncode == RESULT, out + err
    assert json.loads(out)["status"] in ("improved", "no_improvement")


def test_interrupt_cancels_and_keeps_what_was_found(kw: Kernelwright, workspace: pathlib.Path) -> None:
    process = start_tune(kw, workspace)
    run = kw.first_run()
    before = wait_until(lambda: passed(kw, run), 120, "the first evaluated candidate")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (RESULT, LIMIT), out + err
    record = kw.run("runs", "show", run, "--json").expect(RESULT).json
    assert record["status"] in ("cancelled", "improved", "no_improvement")
    assert before <= {row["id"] for row in record["candidates"]}
    # Its jobs end with it; the fork server itself may stay for the next command.
    wait_until(lambda: len(kw.workers()) <= 4, 20, "the end of the cancelled jobs")


def test_a_killed_client_does_not_stop_the_run(kw: Kernelwright, workspace: pathlib.Path) -> None:
    process = start_tune(kw, workspace)
    run = kw.first_run()
    process.kill()
    process.communicate()
    watched = kw.run("runs", "watch", run, limit=300).expect(RESULT)
    assert watched.seconds >= 0
    record = kw.run("runs", "show", run, "--json").expect(RESULT).json
    assert record["status"] in ("improved", "no_improvement")


def test_no_orphans_after_the_daemon_is_killed(kw: Kernelwright, workspace: pathlib.Path) -> None:
    process = start_tune(kw, workspace)
    kw.first_run()
    below = {p.pid for p in wait_until(kw.workers, 60, "a worker")}
    pid = kw.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)

    def alive() -> set[int]:
        return {p.pid for p in all_processes().values() if p.pid in below and p.state != "Z"}

    wait_until(lambda: not alive(), 20, "the end of everything that the daemon had started")
