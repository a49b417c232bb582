"""Draws legal and illegal BlockSpecs and compiles each for a chip with the real compiler.

    python random_blocks.py --count 300 --seed 1 --chip v5e --chip v6e > blocks.jsonl

One JSON object per line: the kernel call in words (grid, operands, scratch, limit), `chip`, `verdict` (ok,
trace, lower, compile, crash, timeout) and the compiler's text. daemon/diagnose/testdata/random_blocks.jsonl
is such a file; the tests there compare it with the lints that predict the verdict without compiling. Each
compilation is a forked child. The body writes one tile of each output, so that whatever fails is the fault of
the blocks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import select
import signal
import sys
from typing import Any

for _name, _value in {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "OPENBLAS_NUM_THREADS": "1",  # one thread after the imports, so that forking is safe
    "OMP_NUM_THREADS": "1",
}.items():
    os.environ.setdefault(_name, _value)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax._src import mesh as mesh_lib  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental import topologies  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

TOPOLOGY = {
    "v4": "v4:2x2x1",
    "v5e": "v5e:1x1",
    "v5p": "v5p:2x2x1",
    "v6e": "v6e:1x1",
    "tpu7x": "tpu7x:2x2x1",
}
BYTES = {"float32": 4, "bfloat16": 2, "int8": 1, "int32": 4}
DEFAULT_LIMIT_MIB = {"v4": 16, "v5e": 16, "v5p": 16, "v6e": 32, "tpu7x": 32}
MIB = 1 << 20

Json = dict[str, Any]

# ---- drawing


def draw_dim(rng: random.Random, multiple: int, odd: float) -> int:
    """A block dimension: mostly a multiple of the tile, sometimes anything."""
    if rng.random() < odd:
        return rng.choice([1, 2, 3, 4, 5, 7, 12, 17, 60, 64, 96, 100, 127, 129, 130, 200])
    return multiple * rng.choice([1, 1, 2, 3, 4, 8])


def draw_operand(rng: random.Random, grid: list[int], is_output: bool, odd: float) -> Json:
    dtype = rng.choice(["float32", "bfloat16", "int8"])
    rank = rng.choice([1, 2, 2, 2, 3, 3])
    space = "vmem" if is_output or rng.random() < 0.93 else rng.choice(["smem", "any"])
    if space == "smem":
        dtype = rng.choice(["int32", "float32"])
    block: list[int | None] = []
    dims: list[int] = []
    index: list[int] = []
    for d in range(rank):
        if rank == 1:
            size = rng.choice([64, 100, 128, 200, 256, 384, 512, 640, 1000, 1024, 2048, 3072, 4096])
        elif d == rank - 1:
            size = draw_dim(rng, 128, odd)
        elif d == rank - 2:
            size = draw_dim(rng, 8, odd)
        else:
            size = rng.choice([1, 2, 3, 4])
        squeezed = rng.random() < (0.35 if d < rank - 2 else 0.04) and rank > 1
        axis = rng.randrange(-1, len(grid)) if grid else -1
        blocks = grid[axis] if axis >= 0 else 1
        extent = (1 if squeezed else size) * blocks
        if axis >= 0 and not squeezed and rng.random() < 0.15:
            extent -= rng.randrange(1, size) if size > 1 else 0  # a tail
        if axis < 0 and rng.random() < (0.3 if grid else 0.03):
            extent = (1 if squeezed else size) * rng.randint(1, 3) + rng.choice([0, 0, 1])
        block.append(None if squeezed else min(size, max(extent, 1)))  # no block is larger than its array
        dims.append(max(extent, 1))
        index.append(axis)
    if space == "any":
        block, index = [], []
    buffers = 1 if space == "vmem" and grid and not is_output and rng.random() < 0.06 else 2
    return {
        "dtype": dtype,
        "dims": dims,
        "block": block,
        "map": index,
        "space": space,
        "output": is_output,
        "buffers": buffers,
    }


def grow(rng: random.Random, spec: Json, chip: str) -> None:
    """Makes one operand or the scratch so large that the sum of windows comes near the limit of the chip."""
    limit = (spec["limit"] or DEFAULT_LIMIT_MIB[chip] * MIB) * rng.uniform(0.55, 1.4)
    if rng.random() < 0.25:
        columns = rng.choice([128, 256, 640, 1024])
        rows = int(limit / columns / 4) // 8 * 8 or 8
        spec["scratch"].append({"dtype": "float32", "dims": [rows, columns], "space": "vmem"})
        first_output = next(o for o in spec["operands"] if o["output"])
        first_output["dtype"] = "float32"  # what the scratch's value is stored in
        return
    candidates = [o for o in spec["operands"] if o["space"] == "vmem" and len(o["dims"]) >= 2]
    if not candidates:
        return
    operand = rng.choice(candidates)
    columns = rng.choice([128, 512, 1024, 2048])
    rank = len(operand["dims"])
    block: list[int | None] = [None] * (rank - 2) + [8, columns]
    row_bytes = columns * BYTES[operand["dtype"]]
    constant = all(axis < 0 or spec["grid"][axis] == 1 for axis in operand["map"])
    buffers = 1 if operand["buffers"] == 1 or constant else 2
    block[rank - 2] = max(8, int(limit / buffers / row_bytes) // 8 * 8)
    operand["block"] = block
    operand["dims"] = [
        (size or 1) * (spec["grid"][axis] if axis >= 0 else 1)
        for size, axis in zip(block, operand["map"], strict=True)
    ]


def draw(rng: random.Random, chip: str) -> Json:
    """One kernel call in words."""
    grid = [rng.choice([1, 2, 2, 3, 4]) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 2, 3, 3]))]
    odd = rng.choice([0.0, 0.0, 0.15, 0.4])
    operands = [draw_operand(rng, grid, False, odd) for _ in range(rng.choice([0, 1, 1, 2]))]
    operands += [draw_operand(rng, grid, True, odd) for _ in range(rng.choice([1, 1, 1, 2]))]
    spec: Json = {"grid": grid, "operands": operands, "scratch": [], "limit": None, "semantics": None}
    if rng.random() < 0.1:
        spec["limit"] = rng.choice([1, 8, 24, 40, 60]) * MIB
    if rng.random() < 0.12 and grid:
        length = len(grid) + rng.choice([0, 0, -1, 1])
        spec["semantics"] = ["arbitrary"] * length if length > 0 else None
    if rng.random() < 0.06:
        words = rng.choice([100_000, 200_000, 250_000, 262_144, 300_000, 500_000])
        spec["scratch"].append({"dtype": "int32", "dims": [words], "space": "smem"})
    if rng.random() < 0.35:
        grow(rng, spec, chip)
    return spec


# ---- compiling


def build(spec: Json) -> tuple[Any, list[tuple[list[int], str]]]:
    """The function to compile, and shape and type of its inputs."""
    grid = tuple(spec["grid"])

    def block_spec(operand: Json) -> pl.BlockSpec:
        space = {"vmem": None, "smem": pltpu.SMEM, "any": pl.ANY}[operand["space"]]
        if operand["space"] == "any" or not grid:
            if operand["space"] == "any":
                return pl.BlockSpec(memory_space=space)
            return pl.BlockSpec(
                tuple(operand["block"]), lambda: (0,) * len(operand["block"]), memory_space=space
            )
        axes = operand["map"]

        def index_map(*ids: Any) -> Any:
            return tuple(ids[a] if a >= 0 else 0 for a in axes)

        mode = pl.Buffered(1) if operand["buffers"] == 1 else None
        return pl.BlockSpec(tuple(operand["block"]), index_map, memory_space=space, pipeline_mode=mode)

    inputs = [o for o in spec["operands"] if not o["output"]]
    outputs = [o for o in spec["operands"] if o["output"]]
    spaces = {"vmem": pltpu.VMEM, "smem": pltpu.SMEM}
    scratch = [spaces[s["space"]](tuple(s["dims"]), jnp.dtype(s["dtype"])) for s in spec["scratch"]]

    def kernel(*refs: Any) -> None:
        value: Any = 0.0
        for ref, words in zip(refs[len(inputs) + len(outputs) :], spec["scratch"], strict=True):
            # Old content reaches the output; scratch that is dead would not be allocated.
            if words["space"] == "smem":
                old = ref[0]
                ref[0] = old + 1
                value += old.astype(jnp.float32)
            else:
                tile = ref[pl.ds(0, 8), pl.ds(0, 128)]
                ref[pl.ds(0, 8), pl.ds(0, 128)] = tile + 1
                value += jnp.sum(tile)
        for ref in refs[len(inputs) : len(inputs) + len(outputs)]:
            extent = [1] * (len(ref.shape) - 2) + [8, 128][-len(ref.shape) :]
            index = tuple(pl.ds(0, min(t, n)) for t, n in zip(extent, ref.shape, strict=True))
            shape = tuple(i.size for i in index)
            if ref.dtype == jnp.float32:
                ref[index] = jnp.full(shape, value, jnp.float32)
            else:
                ref[index] = jnp.zeros(shape, ref.dtype)

    parameters: Json = {}
    if spec["limit"]:
        parameters["vmem_limit_bytes"] = spec["limit"]
    if spec["semantics"]:
        parameters["dimension_semantics"] = tuple(spec["semantics"])

    def function(*arrays: Any) -> Any:
        return pl.pallas_call(
            kernel,
            grid=grid,
            in_specs=[block_spec(o) for o in inputs],
            out_specs=[block_spec(o) for o in outputs],
            out_shape=[jax.ShapeDtypeStruct(tuple(o["dims"]), jnp.dtype(o["dtype"])) for o in outputs],
            scratch_shapes=scratch,
            compiler_params=pltpu.CompilerParams(**parameters),
        )(*arrays)

    return function, [(o["dims"], o["dtype"]) for o in inputs]


def compile_spec(spec: Json, chip: str, result: Json) -> None:
    device = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGY[chip]).devices[0]
    sharding = jax.sharding.SingleDeviceSharding(device)
    context = mesh_lib.use_abstract_mesh(
        mesh_lib.AbstractMesh(
            (),
            (),
            abstract_device=mesh_lib.AbstractDevice(
                device_kind=device.device_kind, num_cores=getattr(device, "num_cores", 1) or 1, platform="tpu"
            ),
        )
    )
    function, inputs = build(spec)
    avals = [jax.ShapeDtypeStruct(tuple(dims), jnp.dtype(dtype), sharding=sharding) for dims, dtype in inputs]
    with context:
        result["verdict"] = "trace"
        traced = jax.jit(function, out_shardings=None if inputs else sharding).trace(*avals)
        result["verdict"] = "lower"
        lowered = traced.lower(lowering_platforms=("tpu",))
    result["verdict"] = "compile"
    lowered.compile()
    result["verdict"] = "ok"


def short(text: str) -> str:
    """The text without paths and module bytes, cut; of a memory error the sentence with the sizes."""
    sizes = re.search(r"Scoped allocation with size[^:]*?limit by [0-9.]+.", text)
    if sizes and "E1001" in text:
        return f"E1001: {sizes.group(0)}"
    text = re.sub(r'"body": ?"[A-Za-z0-9+/=]{40,}"', '"body": "<module>"', text)
    text = re.sub(r"(?:/[^\s\":,]+)+\.py(?::\d+)?(?::\d+)?", "<file>", text)
    return text[:400]


def run(spec: Json, chip: str, deadline: float) -> Json:
    """Compiles in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        result: Json = {"verdict": "build", "text": ""}
        try:
            compile_spec(spec, chip, result)
        except BaseException as error:
            result["text"] = short(str(error))
        with os.fdopen(writer, "w") as out:
            out.write(json.dumps(result))
        os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], deadline)
    if not ready:
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    if not text:
        return {"verdict": "crash" if ready else "timeout", "text": ""}
    found: Json = json.loads(text)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chip", action="append", choices=sorted(TOPOLOGY), default=[])
    parser.add_argument("--deadline", type=float, default=60, help="seconds per compilation")
    arguments = parser.parse_args()
    chips = arguments.chip or ["v5e", "v5p", "v6e", "tpu7x"]
    rng = random.Random(arguments.seed)
    for number in range(arguments.count):
        chip = chips[number % len(chips)]
        spec = draw(rng, chip)
        print(json.dumps({"chip": chip, **spec, **run(spec, chip, arguments.deadline)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
