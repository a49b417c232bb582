"""The real compiler: dumps, figures, errors; and the probe."""

from __future__ import annotations

import gzip

from kernelwright.v1 import worker_pb2
from worker.client import DATA, Outcome, Worker, array, source, trace_job
from worker.conftest import Write

KERNELS = DATA / "kernels.py"


def compiled(worker: Worker, artefact: worker_pb2.Artefact, dumps: bool = False) -> worker_pb2.CompileResult:
    job = worker_pb2.CompileJob(artefact=artefact, want_dumps=dumps)
    found = worker.run(worker_pb2.Job(compile=job))
    assert found.outcome == Outcome.DONE, found.detail
    return found.compile


def test_a_kernel_compiles_with_its_schedule(worker: Worker) -> None:
    arrays = array("x", "bfloat16", 512, 512), array("y", "bfloat16", 512, 512)
    traced = worker.run(trace_job(source(KERNELS, "matmul"), *arrays, chips=["v5e"], artefacts=True)).trace
    found = compiled(worker, traced.artefacts[0], dumps=True)
    assert not found.HasField("error"), found.error.message
    assert found.argument_bytes == 2 * 512 * 512 * 2
    assert found.output_bytes == 512 * 512 * 2
    assert found.compile_milliseconds > 0
    assert found.versions["libtpu"]
    assert b"tpu_custom_call" in gzip.decompress(found.hlo_gzip)
    names = {d.name: d for d in found.dumps}
    assert not any("schedule-analysis" in n for n in names)
    (bundles,) = [d for n, d in names.items() if "matmul" in n and n.endswith("-final_bundles.txt")]
    text = gzip.decompress(bundles.gzip).decode()
    assert "vmatmul" in text
    assert f'loc("{KERNELS.name}":' in text or str(KERNELS) in text
    assert any("TLP" in n and n.endswith("-final_bundles.txt") for n in names)
    assert any(n.endswith("-static-per-bundle-utilization.txt") for n in names)
    assert any(n.endswith("TLP-hlo.txt") for n in names)
    assert any("matmul" in n and n.endswith("-registers-and-allocations.txt") for n in names)


def test_an_error_of_the_compiler_is_whole(worker: Worker, write: Write) -> None:
    path = write(
        "memory.py",
        """
        import jax
        from jax.experimental import pallas as pl

        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...]

        def f(x):
            return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
        """,
    )
    job = trace_job(source(path, "f"), array("x", "float32", 4096, 2048), chips=["v5e"], artefacts=True)
    traced = worker.run(job).trace
    error = compiled(worker, traced.artefacts[0]).error
    assert error.stage == "compile"
    assert "vmem" in error.message.lower()


def test_an_artefact_that_is_none(worker: Worker) -> None:
    error = compiled(worker, worker_pb2.Artefact(chip="v5e", exported=b"nonsense")).error
    assert error.stage == "export"


def test_plain_xla_and_no_inputs(worker: Worker, write: Write) -> None:
    path = write("plain.py", "import jax.numpy as jnp\n\n\ndef f():\n    return jnp.ones((8, 128)) * 2\n")
    traced = worker.run(trace_job(source(path, "f"), chips=["v6e"], artefacts=True)).trace
    found = compiled(worker, traced.artefacts[0])
    assert not found.HasField("error"), found.error.message


def test_probe(worker: Worker) -> None:
    found = worker.run(worker_pb2.Job(probe=worker_pb2.ProbeJob(chips=["v5e", "v6e", "v0"])))
    assert [(c.chip, c.compiles) for c in found.probe.chips] == [("v5e", True), ("v6e", True), ("v0", False)]
    assert "known are" in found.probe.chips[2].detail
