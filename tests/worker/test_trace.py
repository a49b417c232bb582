"""Tracing: program graph, places, kernels seen, artefacts, closure, errors at every stage."""

from __future__ import annotations

import hashlib
import pathlib

import pytest
from kernelwright.v1 import ir_pb2, worker_pb2
from worker.client import DATA, Outcome, Worker, array, key, source, static, trace_job
from worker.conftest import Write

KERNELS = DATA / "kernels.py"


def trace(worker: Worker, job: worker_pb2.Job) -> worker_pb2.TraceResult:
    found = worker.run(job)
    assert found.outcome == Outcome.DONE, found.detail
    return found.trace


def right(worker: Worker, job: worker_pb2.Job) -> worker_pb2.TraceResult:
    found = trace(worker, job)
    assert not found.HasField("error"), found.error.traceback
    return found


def operations(graph: ir_pb2.Graph) -> list[ir_pb2.Operation]:
    found: list[ir_pb2.Operation] = []
    for operation in graph.operations:
        found.append(operation)
        for region in operation.regions:
            found += operations(region)
        if operation.HasField("pallas"):
            found += operations(operation.pallas.kernel)
    return found


def line_of(path: pathlib.Path, text: str) -> int:
    return next(i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_a_kernel_with_everything(worker: Worker) -> None:
    found = right(
        worker,
        trace_job(
            source(KERNELS, "matmul"), array("x", "bfloat16", 512, 256), array("y", "bfloat16", 256, 384)
        ),
    )
    (call,) = [o.pallas for o in operations(found.program.main) if o.HasField("pallas")]
    assert call.name == "_matmul"
    assert list(call.grid) == [4, 3, 2]
    assert [[d.size for d in b.block] for b in call.blocks] == [[128, 128]] * 3
    assert [b.buffers for b in call.blocks] == [2, 1, 2]
    assert [b.is_output for b in call.blocks] == [False, False, True]
    assert [b.memory_space for b in call.blocks] == ["vmem"] * 3
    assert list(call.blocks[0].array.dims) == [512, 256]
    assert list(call.dimension_semantics) == ["parallel", "parallel", "arbitrary"]
    assert call.vmem_limit_bytes == 32 << 20
    assert [(s.dtype, list(s.dims), s.is_ref) for s in call.scratch] == [("float32", [128, 128], True)]
    assert [v.name for v in call.kernel.inputs] == ["x_ref", "y_ref", "o_ref", "acc_ref"]
    assert call.kernel_span.line == line_of(KERNELS, "def _matmul")
    index = call.blocks[1].index_map
    assert [o.value for o in index.outputs] == [index.inputs[2].id, index.inputs[1].id]
    assert [(o.dtype, list(o.dims)) for o in found.outputs] == [("bfloat16", [512, 384])]
    assert [v.name for v in found.program.main.inputs] == ["x", "y"]
    assert found.inputs_origin == "given"
    assert found.versions["jax"]


def test_operations_carry_exact_ranges_and_effects(worker: Worker) -> None:
    found = right(
        worker,
        trace_job(
            source(KERNELS, "matmul"), array("x", "bfloat16", 512, 256), array("y", "bfloat16", 256, 384)
        ),
    )
    (dot,) = [o for o in operations(found.program.main) if o.name == "dot_general"]
    line = line_of(KERNELS, "acc_ref[...] += jnp.dot")
    text = KERNELS.read_text().splitlines()[line - 1]
    span = dot.spans[0]
    assert (span.file, span.line, span.function) == (str(KERNELS), line, "_matmul")
    assert text[span.column - 1 : span.end_column - 1].startswith("jnp.dot(x_ref[...], y_ref[...]")
    assert [s.function for s in dot.spans] == ["_matmul", "matmul"]
    numbers = {a.name: a for a in dot.attributes}
    assert list(numbers["dimension_numbers"].ints.values) == [1, 0]
    assert numbers["dimension_numbers.structure"].text == "(((1),(0)),((),()))"
    assert numbers["preferred_element_type"].text == "float32"
    kernel = next(o for o in operations(found.program.main) if o.HasField("pallas")).pallas.kernel
    stores = [o for o in kernel.operations if o.name == "swap"]
    assert [list(o.effects) for o in stores] == [["write(0)"]]
    conditions = [o for o in kernel.operations if o.name == "cond"]
    assert [list(c.region_names) for c in conditions] == [["branches[0]", "branches[1]"]] * 2


def test_indices_of_references_are_readable(worker: Worker, write: Write) -> None:
    path = write(
        "indices.py",
        """
        import jax
        from jax.experimental import pallas as pl

        def kernel(x_ref, o_ref):
            i = pl.program_id(0)
            o_ref[pl.ds(i * 8, 8), 0:128] = x_ref[3, pl.ds(i * 8, 8), :]

        def f(x):
            return pl.pallas_call(kernel, grid=(2,), out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype))(x)
        """,
    )
    found = right(worker, trace_job(source(path, "f"), array("x", "float32", 4, 16, 128)))
    texts = {
        o.name: a.text for o in operations(found.program.main) for a in o.attributes if a.name == "arguments"
    }
    assert texts["get"] == "([$1, $2:8:1, 0:128:1])"  # $1 is the literal 3
    assert texts["swap"] == "([$2:8:1, 0:128:1])"


def test_nested_programs_and_constants(worker: Worker, write: Write) -> None:
    path = write(
        "nested.py",
        """
        import jax
        import jax.numpy as jnp
        import numpy as np

        SMALL = np.arange(6, dtype=np.float32)
        LARGE = np.zeros((256, 128), np.float32)

        @jax.custom_vjp
        def scaled(x):
            return x * 2
        scaled.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 2,))

        def f(x, n):
            def step(carry, row):
                return carry + row.sum(), jax.lax.while_loop(lambda v: v.sum() < 0, lambda v: v + 1, row)
            total, rows = jax.lax.scan(step, jnp.float32(0), x)
            y = jax.lax.cond(total > 0, lambda: rows, lambda: rows + 1)
            return scaled(jax.jit(jnp.sin)(y)) + LARGE[:1, :6] + jnp.asarray(SMALL) * n
        """,
    )
    found = right(worker, trace_job(source(path, "f"), array("x", "float32", 4, 6), static("n", "3")))
    names = {o.name: o for o in operations(found.program.main)}
    assert list(names["scan"].region_names) == ["jaxpr"]
    assert sorted(names["while"].region_names) == ["body_jaxpr", "cond_jaxpr"]
    assert {"cond", "sin"} <= set(names)
    assert any("custom_vjp" in n for n in names)
    constants = {c.size_bytes: c for c in found.program.main.constants}
    assert len(constants[24].data) == 24
    assert constants[24].sha256 == hashlib.sha256(constants[24].data).hexdigest()
    large = constants.get(256 * 128 * 4)
    assert large is None or not large.data
    identifiers = [v.id for o in operations(found.program.main) for v in o.outputs if v.id]
    assert len(identifiers) == len(set(identifiers))


def test_artefacts_per_chip(worker: Worker) -> None:
    chips = ["v5e", "v5p", "v6e", "tpu7x"]
    job = trace_job(source(KERNELS, "add_one"), array("x", "float32", 64, 128), chips=chips, artefacts=True)
    found = right(worker, job)
    assert [a.chip for a in found.artefacts] == chips
    for artefact in found.artefacts:
        assert not artefact.HasField("error"), artefact.error.message
        assert artefact.sha256 == hashlib.sha256(artefact.exported).hexdigest()


def test_an_error_of_lowering_belongs_to_its_chip(worker: Worker, write: Write) -> None:
    path = write(
        "lowering.py",
        """
        import jax
        import jax.numpy as jnp
        from jax.experimental import pallas as pl

        def kernel(x_ref, o_ref):
            o_ref[...] = jnp.sort(x_ref[...])

        def f(x):
            return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
        """,
    )
    found = right(worker, trace_job(source(path, "f"), array("x", "float32", 8, 128), artefacts=True))
    error = found.artefacts[0].error
    assert error.stage == "lower"
    assert "sort" in error.message
    (sort,) = [o for o in operations(found.program.main) if o.name == "sort"]
    assert (str(path), 6) in [(s.file, s.line) for s in sort.spans]


def test_calls_are_seen_when_the_body_fails(worker: Worker, write: Write) -> None:
    path = write(
        "body.py",
        """
        import jax
        from jax.experimental import pallas as pl

        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] @ x_ref[...]

        def f(x):
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
            return pl.pallas_call(
                kernel, grid=(2,), in_specs=[spec], out_specs=spec,
                out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            )(x)
        """,
    )
    found = trace(worker, trace_job(source(path, "f"), array("x", "float32", 16, 128)))
    assert found.error.stage == "trace"
    assert found.error.frames[0].line == 5
    assert found.error.frames[0].function == "kernel"
    (call,) = found.calls_seen
    assert list(call.grid) == [2]
    assert not call.HasField("kernel")
    assert call.spans[0].line == 9
    assert [[d.size for d in b.block] for b in call.blocks] == [[8, 128], [8, 128]]


@pytest.mark.parametrize(
    ("text", "function", "stage", "kind", "line", "part"),
    [
        ("def f(x)\n    return x\n", "f", "import", "SyntaxError", 1, "expected ':'"),
        ("import jax\nimport nowhere_at_all\n", "f", "import", "ModuleNotFoundError", 2, "nowhere_at_all"),
        ("x = 1\nraise SystemExit(0)\n", "f", "import", "SystemExit", 2, ""),
        ("def ff(x):\n    return x\n", "f", "resolve", "ResolveError", 0, "did you mean ff?"),
        ("f = 3\n", "f", "resolve", "ResolveError", 0, "not a function"),
        ("class C:\n    def m(self, x):\n        return x\n", "C", "resolve", "ResolveError", 0, "C.m"),
        (
            "class C:\n    def __init__(self, n): ...\n    def m(self, x): ...\n",
            "C.m",
            "resolve",
            "ResolveError",
            0,
            "instance",
        ),
        ("def f(y):\n    return y\n", "f", "inputs", "InputError", 0, "no parameter 'x'"),
        ("def f(x, y):\n    return x\n", "f", "inputs", "InputError", 0, "no input is given for 'y'"),
        (
            "def f(x):\n    if x.sum() > 0:\n        return x\n",
            "f",
            "trace",
            "TracerBoolConversionError",
            2,
            "",
        ),
    ],
)
def test_errors_have_a_stage_and_a_line(
    worker: Worker, write: Write, text: str, function: str, stage: str, kind: str, line: int, part: str
) -> None:
    path = write("wrong.py", text)
    found = trace(worker, trace_job(source(path, function), array("x", "float32", 8, 128)))
    assert (found.error.stage, found.error.type) == (stage, kind)
    assert part in found.error.message
    if line:
        assert (found.error.frames[0].file, found.error.frames[0].line) == (str(path), line)


@pytest.mark.parametrize(
    ("kind", "part"), [("float64", "64-bit"), ("quaternion", "unknown element type"), ("complex64", "")]
)
def test_types_that_do_not_work(worker: Worker, kind: str, part: str) -> None:
    found = trace(worker, trace_job(source(KERNELS, "add_one_reference"), array("x", kind, 8)))
    if part:
        assert found.error.stage == "inputs"
        assert part in found.error.message
    else:
        assert not found.HasField("error")


def test_pytrees_statics_and_keys(worker: Worker, write: Write) -> None:
    path = write(
        "trees.py",
        """
        import typing
        import jax
        import jax.numpy as jnp

        class State(typing.NamedTuple):
            a: jax.Array
            b: jax.Array

        def f(p, state: State, layers, /, x, *args, scale, key, mode="off"):
            assert isinstance(state, State) and isinstance(layers, list) and len(args) == 2
            assert mode == "on" and scale == (2, 3) and p["w"] is p.w
            y = x @ p["w"] + p.inner["b"] + state.a + state.b + layers[0]["w"] + layers[1]["w"]
            return {"y": y * scale[0] + jax.random.normal(key, y.shape), "args": args}
        """,
    )
    inputs = [
        array("p.w", "float32", 4, 4),
        array("p.inner['b']", "float32", 4),
        array("state.a", "float32", 4),
        array("state.b", "float32", 4),
        array("layers[0].w", "float32", 4),
        array("layers[1].w", "float32", 4),
        array("x", "float32", 2, 4),
        array("args[0]", "int32", 3),
        array("args[1]", "bfloat16"),
        static("scale", "[2, 3]"),
        key("key"),
        static("mode", '"on"'),
    ]
    found = right(worker, trace_job(source(path, "f"), *inputs))
    assert [o.dtype for o in found.outputs] == ["int32", "bfloat16", "float32"]
    assert found.program.main.inputs[9].type.dtype == "key<fry>"
    assert "args" in found.output_tree


@pytest.mark.parametrize("function", ["Layer.plain", "Layer.fixed", "Layer.of_class", "Layer.Inner.deep"])
def test_methods(worker: Worker, write: Write, function: str) -> None:
    path = write(
        "methods.py",
        """
        class Layer:
            def __init__(self, n=2):
                self.n = n
            def plain(self, x):
                return x * self.n
            @staticmethod
            def fixed(x):
                return x
            @classmethod
            def of_class(cls, x):
                return x + 1
            class Inner:
                def deep(self, x):
                    return x
        """,
    )
    right(worker, trace_job(source(path, function), array("x", "float32", 8)))


@pytest.mark.parametrize(
    ("text", "function", "origin", "paths"),
    [
        (
            "import jax.numpy as jnp\n"
            "def create_inputs(dtype=jnp.bfloat16):\n"
            "    return jnp.zeros((4, 8), dtype), {'w': jnp.ones((8,), dtype)}\n"
            "def workload(x, p):\n    return x * p['w']\n",
            "workload",
            "create_inputs",
            ["x", "p['w']"],
        ),
        (
            "import jax.numpy as jnp\n"
            "def get_inputs():\n    return [((jnp.zeros((4, 8)),), (3,)), ((jnp.zeros((2, 2)),), (3,))]\n"
            "def computation(x, n):\n    assert n == 3\n    return x * n\n",
            "computation",
            "get_inputs",
            ["x", "n"],
        ),
        ("import jax.numpy as jnp\ndef f():\n    return jnp.ones(3)\n", "f", "given", []),
    ],
)
def test_modules_that_bring_their_inputs(
    worker: Worker, write: Write, text: str, function: str, origin: str, paths: list[str]
) -> None:
    found = right(worker, trace_job(source(write("suite.py", text), function)))
    assert found.inputs_origin == origin
    assert [i.path for i in found.inputs] == paths


def test_no_inputs_at_all_says_what_to_write(worker: Worker) -> None:
    found = trace(worker, trace_job(source(KERNELS, "add_one")))
    assert found.error.stage == "inputs"
    assert "--inputs" in found.error.message
    assert "# kernelwright:" in found.error.message


def test_the_overlay_replaces_the_disk_also_in_a_package(worker: Worker, write: Write) -> None:
    write("pack/__init__.py", "NAME = 'pack'\n")
    write("pack/sub/__init__.py", "from .helper import double\n")
    helper = write("pack/sub/helper.py", "def double(x):\n    raise RuntimeError('the disk')\n")
    entry = write("pack/sub/entry.py", "raise RuntimeError('the disk')\n")
    other = write("pack/other.py", "def triple(x):\n    return x * 3\n")
    text = (
        "from pack import NAME\nfrom . import double\nfrom ..other import triple\n\n\n"
        "def f(x):\n    assert NAME == 'pack' and __name__ == 'pack.sub.entry'\n"
        "    return triple(double(x))\n"
    )
    what = source(entry, "f", text=text)
    what.files.append(worker_pb2.FileText(path=str(helper), text=b"def double(x):\n    return x * 2\n"))
    what.files.append(worker_pb2.FileText(path=str(helper.parent / "unsaved.py"), text=b"VALUE = 1\n"))
    found = right(worker, trace_job(what, array("x", "float32", 8)))
    files = {f.path: f for f in found.closure if f.is_user_file}
    assert {str(helper), str(entry), str(other)} <= set(files)
    assert files[str(entry)].sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert files[str(helper)].sha256 == hashlib.sha256(b"def double(x):\n    return x * 2\n").hexdigest()
    assert list(files[str(other)].functions) == ["triple"]
    assert list(files[str(entry)].functions) == ["f"]


def test_a_file_that_only_the_editor_has(worker: Worker, folder: pathlib.Path) -> None:
    path = folder / "not-a-name 1.py"
    what = worker_pb2.Source(file=str(path), function="f")
    what.files.add(path=str(path), text=b"import unsaved\n\n\ndef f(x):\n    return unsaved.g(x)\n")
    what.files.add(path=str(folder / "unsaved.py"), text=b"def g(x):\n    return x.no_such_thing\n")
    found = trace(worker, trace_job(what, array("x", "float32", 8)))
    assert found.error.stage == "trace"
    assert [(pathlib.Path(s.file).name, s.line) for s in found.error.frames] == [
        ("unsaved.py", 2),
        (path.name, 5),
    ]
    assert "return x.no_such_thing" in found.error.traceback


@pytest.mark.parametrize("name", ["numpy.py", "random.py", "jax.py"])
def test_a_file_named_like_a_library(worker: Worker, write: Write, name: str) -> None:
    path = write(name, "import jax.numpy as jnp\n\n\ndef f(x):\n    return jnp.sin(x)\n")
    right(worker, trace_job(source(path, "f"), array("x", "float32", 8)))


def test_columns_count_characters(worker: Worker, write: Write) -> None:
    path = write(
        "letters.py", "import jax.numpy as jnp\n\n\ndef f(x):\n    äöü = 1; return jnp.sin(x) * äöü\n"
    )
    found = right(worker, trace_job(source(path, "f"), array("x", "float32", 8)))
    sine = next(o for o in found.program.main.operations if o.name == "sin")
    line = path.read_text(encoding="utf-8").splitlines()[4]
    assert line[sine.spans[0].column - 1 : sine.spans[0].end_column - 1] == "jnp.sin(x)"


def test_kernels_that_ship_with_jax(worker: Worker, write: Write) -> None:
    path = write(
        "shipped.py",
        """
        from jax.experimental.pallas.ops.tpu import matmul

        def f(x, y):
            return matmul.matmul(x, y, block_shape=(256, 256), block_k=256)
        """,
    )
    arrays = array("x", "bfloat16", 512, 512), array("y", "bfloat16", 512, 512)
    found = right(worker, trace_job(source(path, "f"), *arrays, artefacts=True))
    library = [f for f in found.closure if not f.is_user_file]
    assert any(f.path.endswith("pallas/ops/tpu/matmul.py") and "matmul" in f.functions for f in library)
    assert found.calls_seen[0].spans[-1].file == str(path)
