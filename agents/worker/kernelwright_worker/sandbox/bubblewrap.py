"""Command line of bubblewrap for the worker: a read-only view of what it needs and nothing else.

The worker inside keeps the capabilities of its own user namespace, because it gives each job namespaces of
its own; a job loses them before any of its code runs (child.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from kernelwright_worker.sandbox import paths

_PROBE_SECONDS = 20


def find() -> str | None:
    """Path of bubblewrap; only system folders count, so that no project can bring its own."""
    return shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin:/usr/sbin:/run/current-system/sw/bin")


def _system_arguments() -> list[str]:
    arguments: list[str] = []
    for folder in paths.SYSTEM_FOLDERS:
        if os.path.islink(folder):
            arguments += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            arguments += ["--ro-bind", folder, folder]
    for path in paths.SYSTEM_FILES:
        arguments += ["--ro-bind-try", path, path]
    return arguments


def home_folders() -> tuple[str, ...]:
    """Folders that are never shown whole."""
    homes = {"/", "/home", "/root", os.path.expanduser("~")}
    return tuple(homes | {os.path.realpath(h) for h in homes})


def expand_home(root: str) -> list[str]:
    """What is shown of an import root: itself, or of a home folder only its modules and packages."""
    if os.path.abspath(root) not in home_folders() and os.path.realpath(root) not in home_folders():
        return [root]
    shown: list[str] = []
    try:
        for entry in os.scandir(root):
            is_module = entry.name.endswith(".py") and entry.is_file()
            is_package = not entry.name.startswith(".") and os.path.isfile(
                os.path.join(entry.path, "__init__.py")
            )
            if is_module or is_package:
                shown.append(entry.path)
    except OSError:
        pass
    return shown


def visible_paths(read_only: Sequence[str]) -> list[str]:
    """Paths shown beside the system's, parents first."""
    roots = [p for root in read_only for p in expand_home(root)]
    wanted = paths.minimal([*paths.interpreter_paths(), *roots], home_folders())
    return [p for p in wanted if not any(p == s or p.startswith(s + "/") for s in paths.SYSTEM_FOLDERS)]


def arguments(
    bwrap: str, read_only: Sequence[str], environment: Mapping[str, str], command: Sequence[str]
) -> list[str]:
    """The whole command line. User roots come after the temporary folder, and may lie below it."""
    line = [bwrap, "--unshare-user", "--unshare-all", "--as-pid-1", "--new-session", "--cap-add", "ALL"]
    # As user 0 of the new namespace: for any other one bubblewrap adds a second user namespace, and
    # capabilities there do not reach the first one's mounts and processes.
    line += ["--uid", "0", "--gid", "0"]
    line += _system_arguments()
    line += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    for path in visible_paths(read_only):
        line += ["--ro-bind", path, path]
    line += ["--remount-ro", "/", "--chdir", "/", "--clearenv"]
    for name, value in environment.items():
        line += ["--setenv", name, value]
    return [*line, "--", *command]


def probe(bwrap: str, package_root: str) -> str:
    """Tries bubblewrap, and in it what jobs need. Returns why it does not work, or an empty text."""
    command = [sys.executable, "-S", "-B", "-m", "kernelwright_worker.sandbox.selftest"]
    line = arguments(bwrap, [package_root], {"PYTHONPATH": package_root, "PATH": "/usr/bin:/bin"}, command)
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}"
    if done.returncode == 0:
        return ""
    text = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return f"bubblewrap cannot make namespaces here: {text}. {_remedy(text)}"


def _remedy(text: str) -> str:
    try:
        with open("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", encoding="ascii") as setting:
            if setting.read().strip() == "1":
                return (
                    "AppArmor denies unprivileged user namespaces: install the distribution's bubblewrap "
                    "profile, or "
                    "run `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`."
                )
    except OSError:
        pass
    if "setting up uid map" in text or "Creating new namespace failed" in text or "No permissions" in text:
        return (
            "User namespaces are switched off: `sudo sysctl kernel.unprivileged_userns_clone=1` or "
            "`sudo sysctl user.max_user_namespaces=15000`; in a container they need "
            "`--security-opt seccomp=unconfined`."
        )
    return "Run `bwrap --unshare-all --ro-bind / / true` to see why."
