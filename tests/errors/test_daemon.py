"""The daemon's part in trouble, with real runs: a second one, a stale socket, kills, a client that leaves.

The same and more with a scripted engine, in milliseconds, is in tests/daemon.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess

from harness import LIMIT, RESULT, USAGE, Kernelwright, all_processes, wait_until

INPUTS = ("--inputs", "x=bf16[8192,1024]", "--chip", "v5e", "--max-compiles", "7")


def start_tune(kw: Kernelwright, workspace: pathlib.Path) -> subprocess.Popen[str]:
    return kw.start("tune", f"{workspace}/softmax.py::softmax", *INPUTS, "--json")


def evaluated(kw: Kernelwright, run: str) -> set[str]:
    """Candidates that were reported as done, the original (c0) apart."""
    rows = [e["payload"]["candidate"] for e in kw.events(run, "candidate_changed")]
    return {row["id"] for row in rows if row["status"] in ("passed", "failed")} - {"c0"}


def compiled(kw: Kernelwright, run: str) -> set[str]:
    """Candidates with an estimate that clients have seen."""
    rows = [e["payload"]["candidate"] for e in kw.events(run, "candidate_changed")]
    return {row["content_sha256"] for row in rows if row["estimate_ms"] > 0}


def kill_daemon(kw: Kernelwright) -> int:
    pid = kw.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: kw.daemon_pid() is None, 10, "the daemon's end")
    return pid


def test_one_daemon_second_serve_says_who_serves(kw: Kernelwright) -> None:
    kw.run("runs", "list", "--json").expect(RESULT)
    pid = kw.daemon_pid()
    kw.run("serve", limit=30).expect(RESULT, USAGE).says(str(pid))
    assert kw.daemon_pid() == pid


def test_stale_socket_is_replaced(kw: Kernelwright) -> None:
    kw.run("runs", "list", "--json").expect(RESULT)
    pid = kill_daemon(kw)
    assert kw.discovery.exists(), "SIGKILL leaves the files behind; that is the case meant here"
    kw.run("runs", "list", "--json").expect(RESULT)
    assert kw.daemon_pid() not in (None, pid)


def test_runtime_folder_that_was_open_to_others_is_closed(kw: Kernelwright) -> None:
    folder = kw.discovery.parent
    folder.mkdir()
    folder.chmod(0o777)
    kw.run("runs", "list", "--json").expect(RESULT)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_log_before_show_daemon_killed_then_resumed(kw: Kernelwright, workspace: pathlib.Path) -> None:
    process = start_tune(kw, workspace)
    run = kw.first_run()
    before = wait_until(lambda: compiled(kw, run), 180, "the first estimate")
    kill_daemon(kw)
    out, err = process.communicate(timeout=60)
    assert process.returncode not in (None, RESULT), "the client must not wait for a dead daemon"
    assert f"runs resume {run}" in out + err

    assert kw.run_status(run) == "interrupted"
    result = kw.run("runs", "resume", run, "--json").expect(RESULT).json
    assert result["status"] in ("improved", "no_improvement")
    assert before <= compiled(kw, run), "an estimate that was reported is gone"
    numbers = [event["seq"] for event in kw.events(run)]
    assert numbers == sorted(set(numbers))
    (resumed,) = kw.events(run, "run_resumed")
    assert int(resumed["payload"]["kept_evaluations"]) >= len(before)


def test_worker_killed_the_run_goes_on(kw: Kernelwright, workspace: pathlib.Path) -> None:
    process = start_tune(kw, workspace)
    run = kw.first_run()
    wait_until(lambda: compiled(kw, run), 180, "the first estimate")
    for worker in kw.workers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert process.returncode == RESULT, out + err
    assert json.loads(out)["status"] in ("improved", "no_improvement")


def test_interrupt_cancels_and_keeps_what_was_found(kw: Kernelwright, workspace: pathlib.Path) -> None:
    process = start_tune(kw, workspace)
    run = kw.first_run()
    before = wait_until(lambda: evaluated(kw, run), 180, "the first evaluated candidate")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (RESULT, LIMIT), out + err
    assert kw.run_status(run) in ("cancelled", "improved", "no_improvement")
    assert before <= {row["id"] for row in json.loads(out)["candidates"]}


def test_a_killed_client_does_not_stop_the_run(kw: Kernelwright, workspace: pathlib.Path) -> None:
    process = start_tune(kw, workspace)
    run = kw.first_run()
    process.kill()
    process.communicate()
    shown = kw.run("runs", "watch", run, "--json", limit=300).expect(RESULT).json
    assert shown["status"] in ("improved", "no_improvement")


def test_no_orphans_after_the_daemon_is_killed(kw: Kernelwright, workspace: pathlib.Path) -> None:
    process = start_tune(kw, workspace)
    kw.first_run()
    below = {p.pid for p in wait_until(kw.workers, 60, "a worker")}
    kill_daemon(kw)
    process.communicate(timeout=60)

    def alive() -> set[int]:
        return {p.pid for p in all_processes().values() if p.pid in below and p.state != "Z"}

    wait_until(lambda: not alive(), 20, "the end of everything that the daemon had started")
