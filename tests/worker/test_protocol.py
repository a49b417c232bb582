"""The connection: hello, order, cancelling, ends of all kinds."""

from __future__ import annotations

import os
import pathlib
import subprocess
import time

import pytest
from kernelwright.v1 import worker_pb2
from kernelwright_worker import framing
from worker.client import DATA, Outcome, Worker, array, command, environment, source, trace_job
from worker.conftest import Write

FOREVER = """
    def f(x):
        while True:
            pass
"""


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pids: set[int], seconds: float = 20) -> set[int]:
    limit = time.monotonic() + seconds
    while (left := {p for p in pids if alive(p)}) and time.monotonic() < limit:
        time.sleep(0.02)
    return left


def tree(pid: int) -> set[int]:
    """A process and its descendants."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                    parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {pid}
    while more := {p for p, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def test_hello_says_what_the_worker_is(shared_worker: tuple[Worker, worker_pb2.HelloReply]) -> None:
    hello = shared_worker[1]
    assert hello.protocol_version == 1
    assert {"python", "jax", "jaxlib", "libtpu", "numpy", "worker"} <= set(hello.versions)
    assert hello.sandbox in (hello.BUBBLEWRAP, hello.LANDLOCK)
    assert hello.private_namespaces == (hello.sandbox == hello.BUBBLEWRAP)
    assert 0 < hello.start_milliseconds < 60_000
    assert not hello.problem


def test_requests_that_make_no_sense_are_answered_and_the_connection_goes_on() -> None:
    with Worker(DATA) as worker:
        worker.submit(trace_job(source(DATA / "kernels.py", "add_one"), array("x", "float32", 16, 128)))
        assert "Hello" in worker.receive().protocol_error
        worker.hello()
        worker.send_bytes(framing.encode_frame(b"\xff\xff\xff"))
        assert "WorkerRequest" in worker.receive().protocol_error
        worker.send(worker_pb2.WorkerRequest())
        assert worker.receive().protocol_error
        worker.submit(worker_pb2.Job())
        assert "no work" in worker.receive().protocol_error
        worker.submit(trace_job(worker_pb2.Source(file="relative.py", function="f")))
        assert "not absolute" in worker.receive().protocol_error
        worker.send_bytes(b"\xff" * 12)
        assert "closed" in worker.receive().protocol_error
        assert worker.close() == 0


def test_jobs_beyond_the_parallel_ones_wait_in_order(worker: Worker) -> None:
    job = trace_job(source(DATA / "kernels.py", "add_one"), array("x", "float32", 16, 128))
    numbers = [worker.submit(job) for _ in range(6)]
    found: list[int] = []
    while len(found) < len(numbers):
        reply = worker.receive()
        if reply.HasField("result"):
            assert reply.result.outcome == Outcome.DONE, reply.result.detail
            found.append(reply.id)
    assert sorted(found) == numbers


def test_cancel_ends_a_running_job_and_a_waiting_one(write: Write, import_root: pathlib.Path) -> None:
    endless = trace_job(source(write("endless.py", FOREVER), "f"), array("x", "float32", 8, 128))
    with Worker(import_root) as worker:
        worker.hello(parallel_jobs=1)
        running, waiting = worker.submit(endless), worker.submit(endless)
        for number in (waiting, running):
            worker.send(worker_pb2.WorkerRequest(cancel=worker_pb2.CancelJob(job=number)))
            started = time.monotonic()
            assert worker.result(number).outcome == Outcome.CANCELLED
            assert time.monotonic() - started < 5
        right = trace_job(
            source(write("right.py", "def f(x):\n    return x\n"), "f"), array("x", "float32", 8)
        )
        assert worker.run(right).outcome == Outcome.DONE


def test_shutdown_answers_every_job_and_leaves_nothing(write: Write, import_root: pathlib.Path) -> None:
    endless = trace_job(source(write("endless.py", FOREVER), "f"), array("x", "float32", 8, 128))
    with Worker(import_root) as worker:
        worker.hello(parallel_jobs=1)
        processes = tree(worker.process.pid)
        numbers = [worker.submit(endless), worker.submit(endless)]
        worker.send(worker_pb2.WorkerRequest(shutdown=worker_pb2.Shutdown()))
        outcomes = {worker.receive().id: True for _ in numbers}
        assert sorted(outcomes) == numbers
        assert worker.process.wait(30) == 0
        assert not wait_until_gone(processes)


@pytest.mark.parametrize("sandbox", ["auto", "landlock", "none"])
def test_no_orphans_when_the_daemon_is_killed(sandbox: str, write: Write, import_root: pathlib.Path) -> None:
    path = write(
        "endless.py",
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)

        def f(x):
            time.sleep(600)
        """,
    )
    request = worker_pb2.WorkerRequest(id=1, hello=worker_pb2.Hello(protocol_version=1, parallel_jobs=1))
    job = trace_job(source(path, "f"), array("x", "float32", 8, 128))
    frames = framing.encode_frame(request.SerializeToString())
    frames += framing.encode_frame(worker_pb2.WorkerRequest(id=2, job=job).SerializeToString())
    (path.parent / "frames").write_bytes(frames)
    # A process in the daemon's place: it starts the worker, and dies without a word.
    script = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "p.stdin.write(open(sys.argv[1], 'rb').read()); p.stdin.flush()\n"
        "print(p.pid, flush=True); p.stdout.read(1); print('hello', flush=True); time.sleep(600)\n"
    )
    arguments = command("--sandbox", sandbox, "--read-only", str(import_root))
    daemon = subprocess.Popen(
        [arguments[0], "-c", script, str(path.parent / "frames"), *arguments],
        stdout=subprocess.PIPE,
        env=environment(),
        cwd="/",
        text=True,
    )
    assert daemon.stdout is not None
    worker = int(daemon.stdout.readline())
    assert daemon.stdout.readline() == "hello\n"
    wanted = 6  # worker, fork server, watcher, job, what the job forked; with bubblewrap one more in front
    limit = time.monotonic() + 30
    while len(tree(worker)) < wanted - (sandbox != "auto") and time.monotonic() < limit:
        time.sleep(0.02)
    processes = tree(worker)
    assert len(processes) >= 5
    daemon.kill()
    daemon.wait()
    daemon.stdout.close()
    assert not wait_until_gone(processes)


def test_killing_the_worker_ends_its_jobs(write: Write, import_root: pathlib.Path) -> None:
    endless = trace_job(source(write("endless.py", FOREVER), "f"), array("x", "float32", 8, 128))
    with Worker(import_root) as worker:
        worker.hello()
        idle = len(tree(worker.process.pid))
        worker.submit(endless)
        limit = time.monotonic() + 30
        while len(tree(worker.process.pid)) < idle + 2 and time.monotonic() < limit:
            time.sleep(0.02)
        processes = tree(worker.process.pid)
        worker.process.kill()
        worker.process.wait()
        assert not wait_until_gone(processes)


def test_a_worker_without_a_daemon_ends(tmp_path: pathlib.Path) -> None:
    found = subprocess.run(
        command(), env=environment(), cwd="/", stdin=subprocess.DEVNULL, check=False, timeout=60
    )
    assert found.returncode == 0


def test_what_is_printed_is_a_log_and_never_a_result(worker: Worker, write: Write) -> None:
    path = write(
        "loud.py",
        """
        import os, sys
        forged = b"\\x02\\x08\\x01"
        for descriptor in range(1, 3):
            os.write(descriptor, forged + b"\\n" + b"x" * 5000 + b"\\n")
        print("outcome: DONE")

        def f(x):
            return x
        """,
    )
    found = worker.run(trace_job(source(path, "f"), array("x", "float32", 8, 128)))
    assert found.outcome == Outcome.DONE
    assert found.trace.HasField("program")
    assert all(log.role == "candidate" and len(log.text.encode()) <= 4096 for log in worker.logs)
    assert any(log.text == "outcome: DONE" for log in worker.logs)


def test_a_flood_of_output_is_cut(worker: Worker, write: Write) -> None:
    path = write(
        "flood.py", "for i in range(200000):\n    print('line', i, 'x' * 20)\n\n\ndef f(x):\n    return x\n"
    )
    found = worker.run(trace_job(source(path, "f"), array("x", "float32", 8, 128)))
    assert found.outcome == Outcome.DONE
    assert sum(len(log.text) + 1 for log in worker.logs) < (1 << 20) + 8192
    assert "not passed on" in worker.logs[-1].text
