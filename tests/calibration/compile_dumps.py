"""Compiles entries for their chip and keeps the compiler's dumps, each in a process of its own.

The parent imports jax and tokamax once and forks; a child that aborts, hangs or needs too much memory costs
one entry. What is kept per entry: a folder of compressed dumps and a small JSON with what the compiler says
about flops and bytes, and the flops of the program's products.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from typing import TYPE_CHECKING, Any

from kernelwright_worker.dump_flags import dump_flags

# Run as scripts from this folder; the type checker sees them as a package.
if TYPE_CHECKING:
    from calibration.entries import FILES, TOPOLOGIES, Entry
else:
    from entries import FILES, TOPOLOGIES, Entry

_WANTED = re.compile(r"-final_bundles\.txt$|TLP-hlo\.txt$|-registers-and-allocations\.txt$")
_MEMORY_LIMIT = 24 << 30


def environment() -> None:
    """To be called before jax is imported."""
    os.environ.update(
        JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", TPU_ACCELERATOR_TYPE="v5litepod-4",
        TPU_WORKER_HOSTNAMES="localhost", TPU_WORKER_ID="0", ALLOW_MULTIPLE_LIBTPU_LOAD="1",
        OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3",
    )  # fmt: skip


def import_everything(entries: list[Entry]) -> None:
    """Imports what the children need, without starting a backend."""
    import importlib

    import jax
    import jax.experimental.topologies  # noqa: F401

    # The package parses the command line for flags of its own when it is first asked for one.
    del sys.argv[1:]
    for file in {entry.file for entry in entries}:
        importlib.import_module(f"tokamax._src.ops.{FILES[file][2]}")


def compile_entry(entry: Entry, folder: pathlib.Path, deadline: float) -> dict[str, Any]:
    """What became of one entry: {"status": "compiled" | "failed", …}. The dumps lie in folder/NAME/."""
    read, write = os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            answer = _child(entry, folder)
        except BaseException as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            answer = {"status": "failed", "reason": text[:400], "stage": getattr(error, "kw_stage", "build")}
            if os.environ.get("KW_CALIBRATION_TRACE"):
                traceback.print_exc()
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    data = b""
    timed_out = False
    os.set_blocking(read, False)
    while True:
        try:
            chunk = os.read(read, 1 << 16)
            if not chunk:
                break
            data += chunk
        except BlockingIOError:
            if time.monotonic() - started > deadline:
                timed_out = True
                os.kill(pid, signal.SIGKILL)
                break
            time.sleep(0.05)
    os.close(read)
    _, status = os.waitpid(pid, 0)
    if data:
        answer = json.loads(data)
    elif timed_out:
        answer = {"status": "failed", "stage": "compile", "reason": f"not compiled within {deadline:.0f} s"}
    else:
        answer = {
            "status": "failed",
            "stage": "compile",
            "reason": f"the compiler ended with status {status}",
        }
    answer["seconds"] = round(time.monotonic() - started, 1)
    (folder / f"{entry.name}.json").write_text(json.dumps(answer))
    return answer


def _child(entry: Entry, folder: pathlib.Path) -> dict[str, Any]:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))
    quiet = os.open(os.devnull, os.O_WRONLY)
    if not os.environ.get("KW_CALIBRATION_TRACE"):
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
    with tempfile.TemporaryDirectory(dir=folder) as dumps:
        os.environ["LIBTPU_INIT_ARGS"] = dump_flags(dumps)
        answer = _compile(entry)
        _keep(pathlib.Path(dumps), folder / entry.name)
    return answer


def _compile(entry: Entry) -> dict[str, Any]:
    import jax
    from jax._src import mesh
    from jax.experimental import topologies
    from tokamax._src import benchmarking
    from tokamax._src.ops import op as op_lib

    topology = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[entry.chip])
    device = topology.devices[0]
    sharding = jax.sharding.SingleDeviceSharding(device)
    # The package asks for the device that would run the operation; here it is the one that it is compiled
    # for.
    op_lib.backend.get_default_device = lambda: device
    abstract = mesh.AbstractDevice(
        device_kind=device.device_kind, num_cores=device.num_cores or 1, platform="tpu"
    )
    with mesh.use_abstract_mesh(mesh.AbstractMesh((), (), abstract_device=abstract)):
        op, bound = entry.bound()
        function, arguments = benchmarking.standardize_function(
            op, *bound.args, kwargs=bound.kwargs, seed=None
        )
        placed = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in arguments]
        traced = jax.jit(function).trace(placed)
        flops, dtype = product_flops(traced.jaxpr.jaxpr)
        lowered = traced.lower(lowering_platforms=("tpu",))
    try:
        compiled = lowered.compile()
    except Exception as error:
        error.kw_stage = "compile"  # type: ignore[attr-defined]
        raise
    answer: dict[str, Any] = {"status": "compiled", "product_flops": flops, "product_dtype": dtype}
    cost = compiled.cost_analysis() or {}
    cost = cost[0] if isinstance(cost, list) else cost
    answer["xla_flops"] = max(0.0, float(cost.get("flops", 0)))
    answer["xla_bytes"] = max(0.0, float(cost.get("bytes accessed", 0)))
    memory = compiled.memory_analysis()
    answer["argument_bytes"] = memory.argument_size_in_bytes
    answer["output_bytes"] = memory.output_size_in_bytes
    answer["temporary_bytes"] = memory.temp_size_in_bytes
    answer["io_bytes"] = sum(a.size * a.dtype.itemsize for a in (*placed, *jax.tree.leaves(traced.out_info)))
    return answer


def product_flops(jaxpr: Any, times: float = 1) -> tuple[float, str]:
    """Flops of a program's products (a multiply and an add count as two), and the operand type of most."""
    by_dtype: dict[str, float] = {}
    _count(jaxpr, times, by_dtype)
    dtype = max(by_dtype, key=lambda name: by_dtype[name]) if by_dtype else ""
    return sum(by_dtype.values()), dtype


def _count(jaxpr: Any, times: float, into: dict[str, float]) -> None:
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "dot_general":
            (contract, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval
            depth = 1
            for axis in contract:
                depth *= left.shape[axis]
            size = equation.outvars[0].aval.size
            dtype = str(left.dtype)
            into[dtype] = into.get(dtype, 0) + 2.0 * size * depth * times
            continue
        factor = times
        if name == "scan":
            factor *= equation.params["length"]
        elif name == "pallas_call":
            for extent in equation.params["grid_mapping"].grid:
                factor *= extent if isinstance(extent, int) else 1
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    _count(inner, factor, into)


def _keep(dumps: pathlib.Path, target: pathlib.Path) -> None:
    """The files that an estimate needs, each compressed."""
    partial = target.with_suffix(".part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for path in sorted(dumps.iterdir()):
        if _WANTED.search(path.name) and "schedule-analysis" not in path.name:
            (partial / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 3, mtime=0))
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


if __name__ == "__main__":
    sys.exit("run scripts/calibration")
