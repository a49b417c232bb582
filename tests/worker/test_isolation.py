"""What a candidate may not do, and what happens when it tries."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Iterator

import pytest
from kernelwright.v1 import worker_pb2
from worker.client import DATA, Outcome, Worker, array, judge_job, source, trace_job
from worker.conftest import Write

X = array("x", "float32", 8, 128)
FORK_AND_SLEEP = "import os, time; os.fork(); os.write(1, b'x'); time.sleep(600)"
LEVELS = ["bubblewrap", "landlock"]


@pytest.fixture(scope="module", params=LEVELS)
def confined(request: pytest.FixtureRequest, import_root: pathlib.Path) -> Iterator[Worker]:
    """A worker at each level that confines."""
    with Worker(import_root, DATA, sandbox=request.param) as worker:
        hello = worker.hello(parallel_jobs=3)
        assert hello.sandbox == hello.Sandbox.Value(request.param.upper())
        yield worker


def attempt(worker: Worker, path: pathlib.Path, **limits: int) -> worker_pb2.JobResult:
    values = {"deadline_milliseconds": 30_000, **limits}
    return worker.run(trace_job(source(path, "f"), X, limits=worker_pb2.Limits(**values)))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("network", "import socket; socket.create_connection(('127.0.0.1', 80), 1)"),
        ("socket_file", "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/docker.sock')"),
        ("write_beside", "open(__file__ + '.new', 'w').write('#')"),
        ("write_usr", "open('/usr/kernelwright-test', 'w')"),
        ("write_shared_memory_of_all", "open('/proc/sys/kernel/core_pattern', 'w').write('x')"),
        ("home", "import os; assert any(os.path.isfile(os.path.join(HOME, n)) for n in os.listdir(HOME))"),
        ("passwords", "open('/etc/shadow').read()"),
        ("namespaces", "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0"),
        ("mount", "import ctypes; assert ctypes.CDLL(None).mount(b'x', b'/usr', b'tmpfs', 0, None) == 0"),
        ("trace_process", "import ctypes; assert ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0"),
        (
            "signal_worker",
            "import os; os.kill(os.getppid(), 9) if os.getppid() > 1 else os.kill(1, 0) or exit(1)",
        ),
    ],
)
def test_forbidden(confined: Worker, write: Write, name: str, code: str) -> None:
    del name
    path = write("bad.py", f"HOME = {os.path.expanduser('~')!r}\n\n\ndef f(x):\n    {code}\n    return x\n")
    found = attempt(confined, path)
    if found.outcome == Outcome.DONE:
        assert found.trace.HasField("error"), "it was allowed"
    else:
        assert found.outcome == Outcome.CRASHED


def test_the_file_itself_cannot_be_changed(confined: Worker, write: Write) -> None:
    path = write("bad.py", "def f(x):\n    open(__file__, 'a').write('#')\n    return x\n")
    before = path.read_bytes()
    attempt(confined, path)
    assert path.read_bytes() == before


def test_environment_and_files_show_nothing(confined: Worker, write: Write) -> None:
    path = write(
        "look.py",
        """
        import os

        def f(x):
            assert "secret" not in str(dict(os.environ))
            assert "PYTHONPATH" not in os.environ
            with open(os.path.join(os.environ["TMPDIR"], "scratch"), "w") as file:
                file.write("mine")
            assert os.listdir(os.environ["TMPDIR"]).count("scratch") == 1
            return x
        """,
    )
    for _ in range(2):  # nothing of the first is there for the second
        found = attempt(confined, path)
        assert found.outcome == Outcome.DONE, found.detail
        assert not found.trace.HasField("error"), found.trace.error.traceback


def test_siblings_do_not_see_each_other(confined: Worker, write: Write) -> None:
    wait = write(
        "wait.py",
        """
        import os, time

        def f(x):
            with open(os.path.join(os.environ["TMPDIR"], "secret"), "w") as file:
                file.write("s3cr3t of the sibling")
            print("ready", flush=True)
            time.sleep(600)
        """,
    )
    look = write(
        "look.py",
        """
        import glob, os

        def f(x):
            found = []
            private = ("/tmp/*", "/tmp/*/*", "/dev/shm/*", "/proc/[0-9]*/root/tmp/*", "/proc/[0-9]*/cwd/*")
            for pattern in private:
                for path in glob.glob(pattern):
                    if os.path.basename(path) == "secret":
                        try:
                            open(path).read()
                        except OSError:
                            continue
                        found.append(path)
            own = (str(os.getpid()), str(os.getppid()))
            for path in glob.glob("/proc/[0-9]*/environ"):
                if path.split("/")[2] not in own:
                    try:
                        open(path).read()
                    except OSError:
                        continue
                    found.append(path)
            assert not found, found
            return x
        """,
    )
    sibling = confined.submit(trace_job(source(wait, "f"), X))
    while not (reply := confined.receive()).HasField("log"):
        assert not reply.HasField("result"), reply.result
    found = attempt(confined, look)
    confined.send(worker_pb2.WorkerRequest(cancel=worker_pb2.CancelJob(job=sibling)))
    assert confined.result(sibling).outcome == Outcome.CANCELLED
    assert found.outcome == Outcome.DONE, found.detail
    assert not found.trace.HasField("error"), found.trace.error.traceback


@pytest.mark.parametrize(
    ("name", "code", "outcome", "part"),
    [
        (
            "memory",
            "a = []\n    while True: a.append(bytearray(b'x') * (1 << 25))",
            Outcome.MEMORY,
            "1024 MiB",
        ),
        ("endless", "while True: pass", Outcome.DEADLINE, "limit of 2 s"),
        ("asleep", "import time; time.sleep(60)", Outcome.DEADLINE, "limit of 2 s"),
        ("segfault", "import ctypes; ctypes.string_at(0)", Outcome.CRASHED, "SIGSEGV"),
        ("abort", "import os; os.abort()", Outcome.CRASHED, "SIGABRT"),
        ("killed", "import os; os.kill(os.getpid(), 9)", Outcome.CRASHED, "SIGKILL"),
        ("exit_0", "import os; os._exit(0)", Outcome.CRASHED, "exit status 0"),
        ("exit_3", "import os; print('last words', flush=True); os._exit(3)", Outcome.CRASHED, "last words"),
        (
            "disk",
            "import os\n    for i in range(99):\n"
            "        with open(os.environ['TMPDIR'] + f'/{i}', 'wb') as out: out.write(b'x' * (1 << 24))",
            Outcome.DISK,
            "private folder",
        ),
        (
            "one_file",
            "import os\n    with open(os.environ['TMPDIR'] + '/f', 'wb') as out: out.truncate(1 << 40)",
            Outcome.DISK,
            "File too large",
        ),
    ],
)
def test_limits(
    confined: Worker, write: Write, name: str, code: str, outcome: Outcome.Outcome, part: str
) -> None:
    path = write("bad.py", f"def f(x):\n    {code}\n    return x\n")
    wait = 2_000 if outcome == Outcome.DEADLINE else 60_000
    found = attempt(confined, path, deadline_milliseconds=wait, memory_bytes=1 << 30, file_bytes=64 << 20)
    assert found.outcome == outcome, (name, found.detail, found.trace.error.traceback)
    assert part in found.detail
    assert found.role == "candidate"
    assert not found.HasField("trace")


def test_everything_it_started_is_ended(confined: Worker, write: Write) -> None:
    mark = f"kernelwright-test-{os.getpid()}-{time.monotonic_ns()}"
    path = write(
        "daemon.py",
        f"""
        import os, subprocess, sys

        def f(x):
            for new_session in (False, True):
                # Parent and child both live on: the child is an orphan once the parent is ended.
                started = subprocess.Popen(
                    [sys.executable, "-c", {FORK_AND_SLEEP!r}, {mark!r}],
                    start_new_session=new_session,
                    stdout=subprocess.PIPE,
                )
                assert started.stdout.read(2) == b"xx"
            if os.fork() == 0:
                if os.fork() == 0:
                    os.setsid()
                    os.execv(sys.executable, [sys.executable, "-c", {FORK_AND_SLEEP!r}, {mark!r}])
                os._exit(0)
            return x
        """,
    )
    found = attempt(confined, path)
    assert found.outcome == Outcome.DONE, found.detail
    assert not found.trace.HasField("error"), found.trace.error.traceback
    left = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark.encode() in pathlib.Path("/proc", name, "cmdline").read_bytes():
                left.append(name)
        except OSError:
            continue
    assert not left


def test_a_candidate_cannot_read_the_reference(worker: Worker, write: Write) -> None:
    reference = write(
        "reference.py",
        "SECRET = 'how it is ' 'judged'  # how it is judged\n\n\ndef f(x):\n    return x + 1\n",
    )
    candidate = write(
        "candidate.py",
        """
        import gc, os, sys
        from kernels import add_one

        def f(x):
            here = os.path.dirname(os.path.abspath(__file__))
            for name in os.listdir(here):
                path = os.path.join(here, name)
                if os.path.isfile(path):
                    assert "how it is " + "judged" not in open(path).read(), path
            for found in gc.get_objects():
                if str(type(found).__module__).startswith("kernelwright.v1"):
                    assert b"how it is " + b"judged" not in found.SerializeToString()
            assert "reference" not in sys.modules
            return add_one(x)
        """,
    )
    text = candidate.read_text().replace("from kernels", f"sys.path.append({str(DATA)!r})\nfrom kernels")
    job = judge_job(
        source(candidate, "f", text=text), source(reference, "f"), [array("x", "float32", 16, 128)]
    )
    found = worker.run(job)
    assert found.outcome == Outcome.DONE, found.detail
    assert not found.judge.HasField("candidate_error"), found.judge.candidate_error.traceback


def test_installed_packages_are_imported_once(
    tmp_path: pathlib.Path, import_root: pathlib.Path, write: Write
) -> None:
    installed = tmp_path / "site"
    installed.mkdir()
    (installed / "slowly.py").write_text("import os\nPID = os.getpid()\nprint('slowly imported')\n")
    (installed / "threaded.py").write_text(
        "import threading, time, os\nPID = os.getpid()\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    text = "import os\nimport {0}\n\n\ndef f(x):\n    print('shared', {0}.PID != os.getpid())\n    return x\n"
    with Worker(import_root, extra=["--runtime", str(installed)]) as worker:
        worker.hello()
        for module, shared in (("slowly", "True"), ("threaded", "False")):
            path = write(f"uses_{module}.py", text.format(module))
            for number in range(2):
                changed = path.read_text() + f"# {number}\n"
                found = worker.run(trace_job(source(path, "f", text=changed), X))
                assert found.outcome == Outcome.DONE, found.detail
                assert not found.trace.HasField("error"), found.trace.error.traceback
                # Printed while importing: only where the job's own process had to do it.
                assert [log.text for log in worker.logs if log.text.startswith("shared")] == [
                    f"shared {shared}"
                ]


def test_user_modules_never_run_outside_a_job(worker: Worker, write: Write) -> None:
    write("helper.py", "import os\nPID = os.getpid()\nSTATE = []\n")
    text = "import os\nimport helper\n\n\ndef f(x):\n    helper.STATE.append(1)\n"
    text += "    assert helper.STATE == [1]\n"
    path = write("entry.py", text + "    assert helper.PID == os.getpid()\n    return x\n")
    for _ in range(2):
        found = attempt(worker, path)
        assert not found.trace.HasField("error"), found.trace.error.traceback
