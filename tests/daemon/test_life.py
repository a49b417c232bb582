"""The daemon as real processes: one of many starts serves, the dead are replaced, the busy never are."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from typing import Any

from daemon.machine import Machine

WAIT: dict[str, Any] = {"wait": True}


def running(machine: Machine, *flags: str) -> subprocess.Popen[str]:
    """A run that goes on until it is cancelled; returns once its first event is shown."""
    process = machine.start("optimize", machine.script("busy.jsonl", WAIT), "--plain", *flags)
    assert process.stderr is not None
    line = process.stderr.readline()
    while line and "(run r" not in line:
        line = process.stderr.readline()
    assert line
    return process


def test_one_daemon_serves_twenty_parallel_starts(machine: Machine) -> None:
    """OneDaemon, C05."""
    processes = [machine.start("runs", "list", "--json") for _ in range(20)]
    for process in processes:
        out, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
        assert json.loads(out)["runs"] == []
    assert machine.daemons() == [machine.discovery()["pid"]]
    assert machine.log.count("serving:") == 1


def test_parallel_serves_have_one_winner(machine: Machine) -> None:
    """C08: the losers say who serves and leave its socket alone."""
    processes = [machine.start("serve") for _ in range(8)]
    losers = []
    for process in processes:
        try:
            _, error = process.communicate(timeout=3)
        except subprocess.TimeoutExpired:
            continue
        assert process.returncode == 2, error
        assert "another daemon serves already" in error
        losers.append(process)
    assert len(losers) == 7
    assert machine.run("runs", "list").returncode == 0
    (winner,) = [process for process in processes if process not in losers]
    winner.send_signal(signal.SIGTERM)
    assert winner.wait(timeout=20) == 0
    assert not (machine.runtime / "daemon.sock").exists()
    assert not (machine.runtime / "daemon.json").exists()


def test_folder_and_files_are_private(machine: Machine) -> None:
    machine.run("runs", "list")
    assert stat.S_IMODE(machine.runtime.stat().st_mode) == 0o700
    for entry in machine.runtime.iterdir():
        assert stat.S_IMODE(entry.stat().st_mode) == 0o600, entry


def test_the_daemon_leaves_the_starters_session(machine: Machine) -> None:
    machine.run("runs", "list")
    pid = machine.discovery()["pid"]
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    for number in (0, 1, 2):
        assert "pipe" not in os.readlink(f"/proc/{pid}/fd/{number}")


def test_stale_socket_after_sigkill_is_replaced(machine: Machine) -> None:
    machine.run("runs", "list")
    first = machine.discovery()["pid"]
    os.kill(first, signal.SIGKILL)
    machine.await_end(first)
    assert (machine.runtime / "daemon.sock").exists()
    done = machine.run("runs", "list")
    assert done.returncode == 0, done.stderr
    assert machine.discovery()["pid"] != first


def test_damaged_discovery_file_is_replaced(machine: Machine) -> None:
    machine.run("runs", "list")
    machine.run("stop")
    (machine.runtime / "daemon.json").write_text('{"schema_version": 1, "sock')
    (machine.runtime / "daemon.json").chmod(0o600)
    done = machine.run("runs", "list")
    assert done.returncode == 0, done.stderr


def test_c06_lost_discovery_file_is_found_by_the_lock(machine: Machine) -> None:
    machine.variables["KERNELWRIGHT_SELF_CHECK"] = "50ms"
    machine.run("runs", "list")
    first = machine.discovery()["pid"]
    (machine.runtime / "daemon.json").unlink()
    # The daemon announces itself again; a client that comes first waits for that and starts no second one.
    done = machine.run("runs", "list")
    assert done.returncode == 0, done.stderr
    assert machine.discovery()["pid"] == first
    assert machine.daemons() == [first]


def test_c06_doctor_names_daemons_that_clients_do_not_find(machine: Machine) -> None:
    machine.run("runs", "list")
    pid = machine.discovery()["pid"]
    machine.variables["TMPDIR"] = str(machine.root / "tmp")
    machine.run("stop")
    hidden = machine.root / "tmp" / f"kernelwright-{os.getuid()}"
    hidden.parent.mkdir()
    other = Machine(machine.root, machine.program, {"TMPDIR": str(hidden.parent), "XDG_RUNTIME_DIR": ""})
    if (machine.root / "run").exists() and os.path.isdir(f"/run/user/{os.getuid()}"):
        return  # that place comes before the temporary folder
    other.run("runs", "list")
    items = machine.json("doctor")["items"]
    (stray,) = [item for item in items if item["name"] == "other daemon"]
    assert str(hidden) in stray["value"]
    assert str(pid) not in stray["value"]
    other.run("stop")


def test_c07_a_daemon_that_dies_at_its_start_is_reported_at_once(machine: Machine) -> None:
    machine.variables["KERNELWRIGHT_LOG"] = "nonsense"
    done = machine.run("runs", "list")
    assert done.returncode == 2, done.stderr
    assert "nonsense" in done.stderr


def test_c15_idle_daemon_ends(machine: Machine) -> None:
    machine.variables["KERNELWRIGHT_IDLE_EXIT"] = "300ms"
    machine.run("runs", "list")
    machine.await_end(machine.discovery()["pid"])
    assert not (machine.runtime / "daemon.sock").exists()
    assert "no client and no work" in machine.log


def test_newer_client_replaces_an_idle_older_daemon(machine: Machine) -> None:
    """C02, C04."""
    machine.run("runs", "list", "--build-number", "5")
    first = machine.discovery()["pid"]
    done = machine.run("runs", "list", "--build-number", "6")
    assert done.returncode == 0, done.stderr
    assert "replaced the older, idle daemon" in done.stderr
    assert f"process {first}, started 20" in done.stderr
    assert machine.discovery()["build"] == 6
    assert len(machine.daemons()) == 1


def test_c01_older_client_uses_a_newer_daemon(machine: Machine) -> None:
    machine.run("runs", "list", "--build-number", "6")
    first = machine.discovery()["pid"]
    for build in ("5", "6", "5", "4"):
        assert machine.run("runs", "list", "--build-number", build).returncode == 0
    assert machine.discovery()["pid"] == first


def test_twenty_newer_clients_replace_an_older_daemon_once(machine: Machine) -> None:
    machine.run("runs", "list", "--build-number", "5")
    processes = [machine.start("runs", "list", "--build-number", "6") for _ in range(20)]
    for process in processes:
        _, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
    assert machine.log.count("serving:") == 2
    assert len(machine.daemons()) == 1


def test_c03_a_busy_daemon_is_never_replaced(machine: Machine) -> None:
    busy = running(machine, "--build-number", "5")
    first = machine.discovery()["pid"]
    done = machine.run("runs", "list", "--build-number", "6")
    assert done.returncode == 0, done.stderr
    assert "it is busy with 1 run" in done.stderr
    assert machine.discovery()["pid"] == first
    # C10: with protocols that do not fit, the text says which side to update and who is busy.
    done = machine.run("runs", "list", "--build-number", "6", "--protocol", "2")
    assert done.returncode == 3
    assert f"process {first}" in done.stderr
    assert "The daemon is the side to update" in done.stderr
    stopped = machine.run("stop", "--build-number", "5")
    assert stopped.returncode == 2
    assert "--force" in stopped.stderr
    busy.send_signal(signal.SIGINT)
    busy.communicate(timeout=20)
    assert machine.run("runs", "list", "--build-number", "6", "--protocol", "2").returncode == 0
    assert machine.discovery()["build"] == 6


def test_c10_an_older_client_is_told_to_update(machine: Machine) -> None:
    machine.run("runs", "list", "--build-number", "6", "--protocol", "2-3")
    first = machine.discovery()["pid"]
    done = machine.run("runs", "list", "--build-number", "5", "--protocol", "1")
    assert done.returncode == 3
    assert "Update this client" in done.stderr
    # C11: both ends of the window still talk.
    for protocol in ("1-2", "3-4"):
        assert machine.run("runs", "list", "--build-number", "5", "--protocol", protocol).returncode == 0
    assert machine.discovery()["pid"] == first


def test_a_run_survives_its_client(machine: Machine) -> None:
    """C27, C28: the terminal dies, another one attaches and sees everything."""
    busy = running(machine)
    busy.kill()
    busy.wait()
    (run,) = machine.json("runs", "list")["runs"]
    assert run["status"] == "running"
    watch = machine.start("runs", "watch", run["run"], "--events")
    assert watch.stdout is not None
    assert json.loads(watch.stdout.readline())["kind"] == "run_started"
    watch.kill()
    watch.wait()
    assert machine.run("stop", "--force").returncode == 0


def test_sigkill_of_the_daemon_ends_the_client_with_a_remedy(machine: Machine) -> None:
    busy = running(machine)
    os.kill(machine.discovery()["pid"], signal.SIGKILL)
    _, error = busy.communicate(timeout=20)
    assert busy.returncode == 5
    assert "runs resume r1" in error


def test_sigterm_of_the_daemon_interrupts_runs(machine: Machine) -> None:
    busy = running(machine)
    pid = machine.discovery()["pid"]
    os.kill(pid, signal.SIGTERM)
    _, error = busy.communicate(timeout=20)
    assert busy.returncode == 4
    assert "runs resume r1" in error
    machine.await_end(pid)
    assert "a signal asked for it" in machine.log


def test_in_process_needs_no_daemon(machine: Machine) -> None:
    assert machine.run("runs", "list", "--in-process").returncode == 0
    assert machine.daemons() == []
