"""Writes program.json beside each source.py: its traces at two sets of sizes, as the worker would send them.

Run with the worker's package and generated protobuf modules on the path; needed when a case is added.
"""

import importlib.util
import json
import pathlib
import re
import sys

import jax
import jax.numpy as jnp
from google.protobuf import json_format
from kernelwright_worker.frontend import program

TYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32, "i32": jnp.int32}
FACTORS = (2, 3, 5, 7, 11)


def arguments(text: str, scale: bool) -> dict[str, jax.ShapeDtypeStruct]:
    found = re.findall(r"(\w+)=(\w+)\[([\d,]*)\]", text)
    sizes = sorted({int(d) for _n, _t, dims in found for d in dims.split(",") if d and int(d) > 1})
    factor = dict(zip(sizes, FACTORS, strict=False)) if scale else {}
    return {
        name: jax.ShapeDtypeStruct(
            tuple(int(d) * factor.get(int(d), 1) for d in dims.split(",") if d), TYPES[kind]
        )
        for name, kind, dims in found
    }


def trace(path: pathlib.Path) -> None:
    text = path.read_text()
    inputs = re.search(r"# kernelwright: (.*)", text)
    name = re.search(r"# kernelwright: .*\n(?:@.*\n)*def (\w+)", text)
    assert inputs and name
    # The file's name in the spans must not depend on where the repository is.
    module = compile(text, "/k.py", "exec")
    space: dict[str, object] = {}
    exec(module, space)
    function = space[name[1]]
    result = {"function": name[1], "inputs": inputs[1]}
    for key, scale in (("program", False), ("other", True)):
        values = arguments(inputs[1], scale)
        traced = jax.jit(lambda *leaves, n=tuple(values): function(**dict(zip(n, leaves, strict=True)))).trace(
            *values.values()
        )
        message = program.convert(traced.jaxpr)
        message.ClearField("versions")
        for value, input_name in zip(message.main.inputs, values, strict=True):
            value.name = input_name
        result[key] = json_format.MessageToDict(message, preserving_proto_field_name=True)
        result["tree"] = str(jax.tree_util.tree_structure(traced.out_info))
    path.with_name("program.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")


for source in sorted(pathlib.Path(__file__).parent.glob("*/source.py")):
    if len(sys.argv) < 2 or source.parent.name in sys.argv[1:]:
        trace(source)
