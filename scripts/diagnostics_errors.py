"""Runs the kernels of daemon/diagnose/testdata/kernels.py the way the worker does and keeps what goes wrong.

usage: diagnostics_errors.py [--only NAME …]

The catalogue of diagnostics is tested with the texts that it writes to errors.json beside the kernels. A new
version of jax or libtpu can change texts: run it again and look at the difference. Takes about three minutes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import inspect
import json
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Callable
from typing import Any

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
for variable, setting in ENVIRONMENT.items():
    os.environ.setdefault(variable, setting)

TOP = pathlib.Path(__file__).resolve().parent.parent
DATA = TOP / "daemon" / "diagnose" / "testdata"
GENERATED = os.environ.get("KW_PROTO_PYTHON", str(TOP / "build" / "python"))
sys.path[:0] = [str(TOP / "agents" / "worker"), GENERATED]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from google.protobuf.json_format import MessageToDict  # noqa: E402
from jax import export  # noqa: E402
from kernelwright.v1 import ir_pb2, worker_pb2  # noqa: E402
from kernelwright_worker.frontend import hooks, program  # noqa: E402
from kernelwright_worker.frontend.chip_context import abstract_device  # noqa: E402
from kernelwright_worker.frontend.errors import code_error  # noqa: E402
from kernelwright_worker.roles import compile as compile_role  # noqa: E402

CHIPS = ("v5e", "v6e")
INTERPRETED = ("d14_", "d15_", "d32_")


def load() -> Any:
    """The module of kernels, imported under its plain name."""
    spec = importlib.util.spec_from_file_location("kernels", DATA / "kernels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = module
    spec.loader.exec_module(module)
    return module


def failure(function: Callable[..., Any], chip: str) -> dict[str, Any]:
    """What goes wrong when the function is traced, lowered and compiled, or interpreted."""
    inputs = [p.default for p in inspect.signature(function).parameters.values()]
    calls: list[ir_pb2.PallasCall] = []
    graph: dict[str, Any] = {}
    error: worker_pb2.CodeError | None = None
    stage = "trace"
    try:
        with abstract_device(chip), hooks.record_calls(calls):
            traced = jax.jit(function).trace(*inputs)
            graph = MessageToDict(program.convert(traced.jaxpr), preserving_proto_field_name=True)
            if function.__name__.startswith(INTERPRETED):
                stage = "run"
                jax.block_until_ready(jax.jit(function)(*[jnp.zeros(i.shape, i.dtype) for i in inputs]))
            stage = "lower"
            exported = export.export(jax.jit(function), platforms=["tpu"])(*inputs)
        artefact = worker_pb2.Artefact(chip=chip, exported=bytes(exported.serialize()))
        result = compile_role.run(worker_pb2.CompileJob(artefact=artefact))
        error = result.error if result.HasField("error") else None
    except Exception as caught:
        error = code_error(stage, caught)
    if error is None:
        return {}
    found: list[dict[str, Any]] = []
    collect_calls(graph.get("main", {}), found)
    if not found:
        found = [MessageToDict(c, preserving_proto_field_name=True) for c in calls]
    return {
        "error": shortened(MessageToDict(error, preserving_proto_field_name=True)),
        "calls": [plain_call(c) for c in found],
    }


def collect_calls(graph: dict[str, Any], found: list[dict[str, Any]]) -> None:
    """Kernels of a graph, nested ones included."""
    for operation in graph.get("operations", []):
        if "pallas" in operation:
            found.append(operation["pallas"])
        for region in operation.get("regions", []):
            collect_calls(region, found)


def plain_call(call: dict[str, Any]) -> dict[str, Any]:
    """The parts of a call that finding a place needs."""
    kept: dict[str, Any] = {k: call[k] for k in ("name", "num_scalar_prefetch") if k in call}
    kept["spans"] = own_spans(call.get("spans", []))
    kept["kernel_span"] = own_spans([call.get("kernel_span", {})])
    kept["blocks"] = [
        {
            "origin": b.get("origin", ""),
            "is_output": b.get("is_output", False),
            "dtype": b.get("array", {}).get("dtype", ""),
            "block": [int(d.get("size", 1)) for d in b.get("block", [])],
        }
        for b in call.get("blocks", [])
    ]
    kept["scratch"] = [[int(d) for d in t.get("dims", [])] for t in call.get("scratch", [])]
    kept["kernel"] = plain_graph(call.get("kernel", {}))
    return kept


def plain_graph(graph: dict[str, Any]) -> list[dict[str, Any]]:
    """Names and places of the operations of a graph."""
    kept = []
    for operation in graph.get("operations", []):
        name, spans = operation.get("name", ""), operation.get("spans", [])
        entry: dict[str, Any] = {"name": name, "spans": own_spans(spans)[:1]}
        regions = [plain_graph(r) for r in operation.get("regions", [])]
        if regions:
            entry["regions"] = regions
        kept.append(entry)
    return kept


def own_spans(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Spans in the file of kernels, with a path that is the same everywhere."""
    return [{**s, "file": "kernels.py"} for s in spans if s.get("file", "").endswith("testdata/kernels.py")]


def shortened(error: dict[str, Any]) -> dict[str, Any]:
    """An error without this machine's paths and without the parts that nothing reads."""
    for field in ("message", "cause", "traceback"):
        text = error.get(field, "")
        text = text.replace(str(DATA / "kernels.py"), "kernels.py").replace(str(TOP) + "/", "")
        text = re.sub(r'/[^\s"]*/site-packages/', "site-packages/", text)
        text = re.sub(r'"/[^\s"]*/(lib/python3|scripts/)', r'"\1', text)
        text = re.sub(r'"body": ?"[^"]{40,}', '"body": "', text)
        text = re.sub(r"^ *[~^]+ *\n", "", text, flags=re.MULTILINE)
        text = text[-2000:] if field == "traceback" else text
        error[field] = text[:4000]
    # Only errors of tracing are told apart by where they come from.
    error["traceback"] = error["traceback"][-2000:] if error["stage"] == "trace" else ""
    error["frames"] = own_spans(error.get("frames", []))
    return error


def in_child(function: Callable[..., Any], chip: str) -> dict[str, Any]:
    """The failure, found in a process of its own: the compiler may abort, and jax keeps what it traced."""
    with tempfile.TemporaryDirectory() as folder:
        answer = pathlib.Path(folder) / "answer.json"
        child = os.fork()
        if child == 0:
            os.environ["TMPDIR"] = folder
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            try:
                answer.write_text(json.dumps(failure(function, chip)))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        found: dict[str, Any] = json.loads(answer.read_text()) if answer.exists() else {}
        return found


def main() -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--only", nargs="+", default=[], help="run these, and keep the others as they are")
    options = parser.parse_args()
    module = load()
    target = DATA / "errors.json"
    kept: dict[str, Any] = json.loads(target.read_text())["errors"] if target.exists() else {}
    names = [n for n in vars(module) if re.fullmatch(r"d\d+_\w+", n)]
    errors: dict[str, Any] = {}
    for name in names:
        if options.only and name not in options.only:
            if name in kept:
                errors[name] = kept[name]
            continue
        outcomes: list[dict[str, Any]] = []
        for chip in CHIPS[:1] if name.startswith(INTERPRETED) else CHIPS:
            found = in_child(getattr(module, name), chip)
            if not found:
                continue
            text = found["error"]["message"]
            same = next((o for o in outcomes if o["error"]["message"] == text), None)
            if same:
                same["chips"].append(chip)
            else:
                outcomes.append({"chips": [chip], **found})
        errors[name] = outcomes
        for outcome in outcomes or [{"chips": [], "error": {"message": "nothing goes wrong"}}]:
            print(name, outcome["chips"], outcome["error"]["message"][:90], flush=True)
    versions = {p: importlib.metadata.version(p) for p in ("jax", "libtpu")}
    lines = [f"{json.dumps(n)}: {json.dumps(errors[n], ensure_ascii=False)}" for n in errors]
    head = f'{{"versions": {json.dumps(versions)}, "errors": {{\n'
    target.write_text(head + ",\n".join(lines) + "\n}}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
