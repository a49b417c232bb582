"""Speed, as ratios from one run: what the daemon adds, how many candidates it evaluates, its idle cost.

usage: scripts/bench [--record] [--quick]

  --record  also writes the table, dated, into docs/results.md
  --quick   3 kernels instead of 10
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import RESULT, TOP, Kernelwright, data_folder, private_installation

KERNEL = '''"""A row kernel of the benchmark."""
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = (jnp.tanh(x_ref[...].astype(jnp.float32)) * {scale}).astype(o_ref.dtype)


# kernelwright: x=bf16[{rows},{columns}]
def scaled_tanh(x, block_rows=32):
    block = pl.BlockSpec((block_rows, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(x.shape[0] // block_rows,),
        in_specs=[block], out_specs=block)(x)
'''

# The same compile in a Python of its own, as a script without a daemon would do it.
FRESH = """
import os, sys
os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", TPU_ACCELERATOR_TYPE="v5litepod-4",
                  TPU_WORKER_HOSTNAMES="localhost", TPU_WORKER_ID="0", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import importlib, jax, jax.numpy as jnp
from jax.experimental import topologies
from jax._src import mesh
module = importlib.import_module(os.path.basename(sys.argv[1])[:-3])
device = topologies.get_topology_desc(platform="tpu", topology_name="v5e:1x1").devices[0]
sharding = jax.sharding.SingleDeviceSharding(device)
cores = device.num_cores or 1
abstract = mesh.AbstractDevice(device_kind=device.device_kind, num_cores=cores, platform="tpu")
with mesh.use_abstract_mesh(mesh.AbstractMesh((), (), abstract_device=abstract)):
    x = jax.ShapeDtypeStruct((int(sys.argv[2]), int(sys.argv[3])), jnp.bfloat16, sharding=sharding)
    lowered = jax.jit(lambda v: module.scaled_tanh(v, block_rows=int(sys.argv[4]))).trace(x).lower(
        lowering_platforms=("tpu",))
lowered.compile()
"""


def write_kernel(folder: pathlib.Path, index: int) -> tuple[pathlib.Path, int, int]:
    rows, columns = 2048 + 256 * (index % 5), 512 * (1 + index % 4)
    path = folder / f"bench_{index}.py"
    path.write_text(KERNEL.format(rows=rows, columns=columns, scale=1.5 + index))
    return path, rows, columns


def stages(kw: Kernelwright, run: str) -> list[dict[str, Any]]:
    evaluations: list[dict[str, Any]] = kw.run("runs", "export", run).expect(RESULT).json["evaluations"]
    return evaluations


def overhead(kw: Kernelwright, kernels: list[pathlib.Path]) -> tuple[list[float], list[float]]:
    """For the original of each kernel, which is evaluated alone: milliseconds in forked children (trace,
    compile, check), and what the daemon adds to them (queue, pipes, parsing, estimate, store)."""
    bare, added = [], []
    for path in kernels:
        answer = kw.optimize(f"{path}::scaled_tanh", "--max-compiles", "2").expect(RESULT).json
        own = [s for s in stages(kw, answer["run"]) if s["candidate"] == "c0"]
        jobs = sum(s["result"]["job_milliseconds"] for s in own)
        bare.append(float(jobs))
        added.append(float(sum(s["duration_ms"] for s in own) - jobs))
    return bare, added


def throughput(kw: Kernelwright, folder: pathlib.Path, python: pathlib.Path) -> tuple[float, float]:
    """Compiles and estimates per minute: candidates of one run, and fresh processes of the same width."""
    path, rows, columns = write_kernel(folder, 97)
    answer = kw.optimize(f"{path}::scaled_tanh").expect(RESULT).json
    changes = kw.events(answer["run"], "candidate_changed")
    compiled = [e["time"] for e in changes if e["payload"]["candidate"]["status"] == "compiled"]
    times = [datetime.datetime.fromisoformat(str(t).replace("Z", "+00:00")).timestamp() for t in compiled]
    # The first one ends with the baseline; from there to the last one only candidates are compiled.
    warm = 60 * (len(times) - 1) / max(times[-1] - times[0], 1e-3)
    script = folder / "fresh.py"
    script.write_text(FRESH)
    width = os.cpu_count() or 1
    begin = time.monotonic()
    running = [
        subprocess.Popen([str(python), str(script), str(path), str(rows), str(columns), str(block)])
        for block in (16, 64)[:width]
    ]
    assert all(process.wait() == 0 for process in running)
    cold = 60 * len(running) / (time.monotonic() - begin)
    return warm, cold


def idle_daemon(kw: Kernelwright) -> tuple[list[float], float]:
    """Milliseconds from starting `serve` to the discovery file, and resident MB before any work."""
    starts = []
    memory = 0.0
    for _ in range(5):
        begin = time.monotonic()
        kw.start("serve")
        while kw.daemon_pid() is None:
            time.sleep(0.001)
        starts.append(1000 * (time.monotonic() - begin))
        status = pathlib.Path(f"/proc/{kw.daemon_pid()}/status").read_text()
        memory = int(status.split("VmRSS:")[1].split()[0]) / 1024
        kw.stop()
    return starts, memory


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} ({min(values):.0f} … {max(values):.0f})"


def record(lines: list[str], name: str = "bench") -> None:
    """Puts the lines in the place of the last record of that name in docs/results.md."""
    begin, end = f"<!-- {name} begin -->", f"<!-- {name} end -->"
    path = TOP / "docs" / "results.md"
    text = path.read_text()
    block = "\n".join([begin, *lines, end])
    if begin in text:
        head, rest = text.split(begin, 1)
        text = head + block + rest.split(end, 1)[1]
    else:
        text = text.rstrip() + "\n\n" + block + "\n"
    path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    python = data_folder() / "python" / "bin" / "python"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kw-bench-"))
    with private_installation(pathlib.Path(tempfile.mkdtemp(prefix="kw-", dir="/tmp"))) as kw:
        starts, memory = idle_daemon(kw)
        kernels = [write_kernel(folder, i)[0] for i in range(3 if options.quick else 10)]
        bare, added = overhead(kw, kernels)
        warm, cold = throughput(kw, folder, python)
    ratio = statistics.median(added) / statistics.median(bare)
    lines = [
        f"## Benchmark, {datetime.date.today().isoformat()}: `scripts/bench --record`",
        "Medians (least … most) of one run on an otherwise idle machine.",
        "",
        "| what | figure | aim |",
        "|---|---|---|",
        f"| trace, compile, check in forked children, ms, {len(bare)} kernels | {spread(bare)} | |",
        f"| what the daemon adds to that, ms | {spread(added)} | 100 |",
        f"| ratio (with daemon / children alone) | {1 + ratio:.2f} | |",
        f"| candidates compiled and estimated per minute | {warm:.0f} | |",
        f"| the same with a fresh Python process each | {cold:.0f} | |",
        f"| ratio (warm / fresh) | {warm / cold:.1f} | |",
        f"| start of the daemon, ms | {spread(starts)} | 50 |",
        f"| resident memory of the idle daemon, MB | {memory:.0f} | 30 |",
    ]
    print("\n".join(lines))
    print(json.dumps({"bare_ms": bare, "added_ms": added, "starts_ms": starts}))
    if options.record:
        record(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
