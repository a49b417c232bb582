"""The environment that the worker and its jobs run in. Nothing of the caller's environment passes, keys least
of all.
"""

from __future__ import annotations

import os

# What libtpu and jax must see before they load: no TPU is asked for, no metadata server is queried, several
# processes may load libtpu at once, and the imports start no thread (forking a process with threads is not
# safe).
_TOOLCHAIN = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
_PROCESS = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",  # the same program gives the same text, whatever its sets hold
    "PYTHONUNBUFFERED": "1",
    "PYTHONNOUSERSITE": "1",
}
# Where the interpreter and the dynamic loader look for code: the user's choice, not a secret.
_PASSED = ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "TZ", "PYTHONNOUSERSITE")


def worker_environment() -> dict[str, str]:
    """The environment to start the worker with."""
    environment = {**_PROCESS, **_TOOLCHAIN}
    if not os.environ.get("PYTHONNOUSERSITE"):
        del environment[
            "PYTHONNOUSERSITE"
        ]  # user's own choice: `pip install --user` is seen unless they say no
    for name in _PASSED:
        if os.environ.get(name):
            environment[name] = os.environ[name]
    return environment
