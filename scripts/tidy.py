"""Runs clang-tidy over the files of the build's compilation database, in parallel, within a time budget.

A file that was clean is not looked at again until something it was compiled from changes: its own text,
a header of ours that it includes, the checks, or its command line. What was changed last comes first, tests
after all sources, so that a small budget is well spent. Ends with 1 when there is a finding; files not
reached are no failure.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
CLANG_TIDY = "clang-tidy-19"


def headers_by_object(build: pathlib.Path) -> dict[str, list[str]]:
    """Object file → the files of ours that went into it, as Ninja recorded them."""
    listing = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True).stdout
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in listing.splitlines():
        if line and not line[0].isspace():
            current = found.setdefault(line.split(": ", 1)[0], [])
        elif line.strip().startswith(str(TOP)) or (line.strip() and not line.strip().startswith("/")):
            current.append(line.strip())
    return found


def fingerprint(entry: dict[str, str], headers: list[str], build: pathlib.Path, deep: bool) -> str:
    """Hash over everything that clang-tidy's answer for this file depends on, system headers excepted."""
    digest = hashlib.sha256()
    digest.update(entry["command"].encode() + (b" deep" if deep else b""))
    for path in [str(TOP / ".clang-tidy"), entry["file"], *sorted(headers)]:
        full = pathlib.Path(path) if os.path.isabs(path) else build / path
        digest.update(path.encode())
        if full.is_file():
            digest.update(full.read_bytes())
    return digest.hexdigest()


def recency() -> dict[str, int]:
    """Path → rank of its last change, 0 for the newest; dates on disk say nothing in a fresh clone."""
    git = ["git", "-C", str(TOP)]
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True).stdout
    committed = subprocess.run(
        [*git, "log", "--format=", "--name-only", "-n", "300"], capture_output=True, text=True
    ).stdout
    ranks: dict[str, int] = {}
    for path in [line[3:] for line in changed.splitlines()] + committed.splitlines():
        ranks.setdefault(str(TOP / path), len(ranks))
    return ranks


def run(file: str, build: pathlib.Path, deadline: float, deep: bool) -> tuple[str, str | None]:
    """The findings in one file: empty when clean, None when the time was over before the answer."""
    left = deadline - time.monotonic()
    if left <= 0:
        return file, None
    try:
        done = subprocess.run(
            [CLANG_TIDY, "--quiet", *(["--checks=clang-analyzer-*"] if deep else []), "-p", str(build), file],
            capture_output=True,
            text=True,
            timeout=left,
        )
    except subprocess.TimeoutExpired:
        return file, None
    if done.returncode == 0:
        return file, ""
    return file, done.stdout.strip() or done.stderr.strip() or f"{CLANG_TIDY} ended with {done.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--budget", type=float, default=600.0, help="seconds")
    parser.add_argument("--deep", action="store_true", help="the static analyzer too")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    deadline = time.monotonic() + arguments.budget

    database = json.loads((build / "compile_commands.json").read_text())
    entries = {e["file"]: e for e in database if e["file"].startswith(str(TOP / "daemon"))}
    headers = headers_by_object(build)
    cache = build / "tidy-cache"
    cache.mkdir(exist_ok=True)

    keys: dict[str, str] = {}
    for file, entry in entries.items():
        if pathlib.Path(file).is_file():
            keys[file] = fingerprint(entry, headers.get(entry.get("output", ""), []), build, arguments.deep)
    todo = [file for file, key in keys.items() if not (cache / key).exists()]
    ranks = recency()
    todo.sort(key=lambda file: (file.endswith("_test.cc"), ranks.get(file, len(ranks))))

    findings = 0
    unreached: list[str] = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for file, output in pool.map(lambda f: run(f, build, deadline, arguments.deep), todo):
            if output is None:
                unreached.append(file)
            elif output:
                findings += 1
                print(output)
            else:
                (cache / keys[file]).touch()
    checked = len(todo) - len(unreached)
    before = len(keys) - len(todo)
    print(f"clang-tidy: {checked} files checked, {findings} with findings, {before} clean before")
    if unreached:
        print(f"clang-tidy: {len(unreached)} files not reached in {arguments.budget:.0f} s")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
