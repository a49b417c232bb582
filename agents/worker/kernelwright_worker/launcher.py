"""Chooses how jobs are isolated and starts the worker that way.

Order: bubblewrap, then Landlock with seccomp. Nothing weaker is taken unless the user asked for it by name.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import NoReturn

from kernelwright_worker import environment
from kernelwright_worker.sandbox import bubblewrap, landlock

EXIT_ENVIRONMENT = 3
PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_INSTALL = "Install it with `sudo apt-get install bubblewrap` (or your distribution's package)."


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """The worker's command line."""
    parser = argparse.ArgumentParser(
        prog="kernelwright_worker",
        description="Traces, compiles and judges kernels; speaks the worker protocol on its pipes.",
    )
    parser.add_argument(
        "--sandbox",
        choices=["auto", "bubblewrap", "landlock", "none"],
        default="auto",
        help="isolation of jobs; auto takes the strongest there is and refuses to do without",
    )
    parser.add_argument(
        "--read-only",
        action="append",
        default=[],
        metavar="PATH",
        help="import root that jobs may read; repeatable",
    )
    parser.add_argument(
        "--runtime",
        action="append",
        default=[],
        metavar="DIR",
        help="folder appended to the import path, for what the interpreter lacks; repeatable",
    )
    parser.add_argument("--level", choices=["bubblewrap", "landlock", "none"], help=argparse.SUPPRESS)
    parser.add_argument("--detail", default="", help=argparse.SUPPRESS)
    parser.add_argument("--started", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def launch(options: argparse.Namespace) -> NoReturn:
    """Replaces this process by the worker at the level that was chosen; exits with status 3 when none is
    allowed.
    """
    started = time.monotonic_ns()
    level, detail, bwrap = choose(options.sandbox)
    if not level:
        print(f"kernelwright worker: no sandbox. {detail}", file=sys.stderr)
        sys.exit(EXIT_ENVIRONMENT)
    command = [sys.executable, "-m", "kernelwright_worker", "--level", level, "--started", str(started)]
    command += ["--detail", detail] if detail else []
    for path in options.read_only:
        command += ["--read-only", os.path.abspath(path)]
    for path in options.runtime:
        command += ["--runtime", os.path.abspath(path)]
    variables = environment.worker_environment()
    search = [p for p in variables.get("PYTHONPATH", "").split(os.pathsep) if p]
    if PACKAGE_ROOT not in search:
        variables["PYTHONPATH"] = os.pathsep.join([*search, PACKAGE_ROOT])
    os.chdir("/")
    if level == "bubblewrap":
        read_only = [*options.read_only, *options.runtime]
        read_only += [*search, PACKAGE_ROOT]
        command = bubblewrap.arguments(bwrap, read_only, variables, command)
        variables = {"PATH": variables["PATH"]}
    try:
        os.execve(command[0], command, variables)
    except OSError as error:
        print(f"kernelwright worker: cannot start {command[0]}: {error}", file=sys.stderr)
        sys.exit(EXIT_ENVIRONMENT)


def choose(wanted: str) -> tuple[str, str, str]:
    """Returns the level ("" when none is allowed), why it is not a stronger one, and bubblewrap's path."""
    if wanted == "none":
        return "none", "isolation was switched off by --sandbox none: jobs run with your own rights", ""
    problems: list[str] = []
    if wanted in ("auto", "bubblewrap"):
        bwrap = bubblewrap.find()
        problem = (
            bubblewrap.probe(bwrap, PACKAGE_ROOT) if bwrap else f"bubblewrap is not installed. {_INSTALL}"
        )
        if bwrap and not problem:
            return "bubblewrap", "", bwrap
        problems.append(problem)
    if wanted in ("auto", "landlock"):
        version = landlock.abi()
        if version:
            weaker = "network access is denied by seccomp alone" if version < 4 else ""
            return "landlock", " ".join(filter(None, [*problems, weaker])), ""
        problems.append("This kernel has no Landlock (Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK).")
    problems.append("To run code without isolation all the same, choose it: --sandbox none.")
    return "", " ".join(problems), ""
