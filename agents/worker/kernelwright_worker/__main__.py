"""Entry point: `python -m kernelwright_worker`.

Standard input and output carry protocol frames. They are moved away before anything else is imported, so that
no library can read from them or print into them.
"""

import os
import sys


def _take_pipes() -> tuple[int, int]:
    requests = os.dup(0)
    replies = os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, replies


def _drop_current_folder() -> None:
    """`python -m` puts the current folder first, where any file could stand in for a library."""
    safe = getattr(sys.flags, "safe_path", False)
    if not safe and sys.path and os.path.abspath(sys.path[0] or ".") == os.getcwd():
        del sys.path[0]


def main() -> None:
    """Runs the launcher, or the worker that the launcher started."""
    _drop_current_folder()
    from kernelwright_worker import launcher

    options = launcher.parse_arguments(sys.argv[1:])
    if options.level is None:
        launcher.launch(options)
    requests, replies = _take_pipes()
    sys.path.extend(p for p in options.runtime if p not in sys.path)
    from kernelwright_worker import server

    sys.exit(server.serve(requests, replies, options))


if __name__ == "__main__":
    main()
