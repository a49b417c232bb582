"""Inputs of a function: from their specifications to the arguments of a call, and from a benchmark-style
module.

A specification's path says where its leaf goes: `x`, `p.w`, `args[0]`, `state["a"][1].b`. The first name is a
parameter; what follows builds a tree of dictionaries, lists and, where the parameter's annotation is a
dataclass or a named tuple, of that class. Arrays and keys are leaves that are traced; statics are plain
values of the call.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from kernelwright.v1 import ir_pb2, worker_pb2

from kernelwright_worker.judging.tensors import numpy_dtype


class InputError(Exception):
    """The inputs do not fit the function; the text says what to write instead."""


_EXAMPLE = (
    "--inputs 'x=bf16[4096,4096]' or a comment above the function: # kernelwright: x=bf16[4096,4096] n=8"
)
_STEP = re.compile(r"\.(?P<name>[^\W\d]\w*)|\[(?P<index>\d+)\]|\[(?P<quote>['\"])(?P<key>.*?)(?P=quote)\]")
_HEAD = re.compile(r"[^\W\d]\w*")


class Record(dict[str, Any]):
    """A dictionary whose entries are attributes too: user code may say `p["w"]` or `p.w`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _flatten_record(record: Record) -> tuple[list[tuple[Any, Any]], tuple[str, ...]]:
    names = tuple(sorted(record))
    return [(jax.tree_util.DictKey(n), record[n]) for n in names], names


jax.tree_util.register_pytree_with_keys(
    Record, _flatten_record, lambda names, values: Record(zip(names, values, strict=True))
)


def dtype_of(name: str) -> np.dtype[Any]:
    """NumPy type of a name, those of ml_dtypes included. Raises InputError."""
    try:
        return numpy_dtype(name)
    except TypeError as error:
        raise InputError(str(error)) from None


def key_type() -> Any:
    """Type of a jax PRNG key, without starting a backend."""
    return jax.eval_shape(lambda: jax.random.key(0)).dtype


def abstract_leaf(spec: worker_pb2.InputSpec) -> jax.ShapeDtypeStruct:
    """Shape and type of a traced input."""
    if spec.WhichOneof("kind") == "prng_key":
        return jax.ShapeDtypeStruct((), key_type())
    kind = spec.tensor.type
    dtype = dtype_of(kind.dtype)
    if dtype.itemsize == 8 and dtype.kind in "iuf" and not jax.config.jax_enable_x64:
        raise InputError(f"input {spec.path!r} has the 64-bit type {dtype.name}, which jax has switched off")
    return jax.ShapeDtypeStruct(tuple(kind.dims), dtype)


def is_traced(spec: worker_pb2.InputSpec) -> bool:
    """Whether an input is an array or a key rather than a static value."""
    return bool(spec.WhichOneof("kind") != "static_json")


class Call:
    """A function with its inputs: called with one value per traced input, in order."""

    def __init__(self, function: Callable[..., Any], specs: Sequence[worker_pb2.InputSpec]) -> None:
        self.function = function
        self.specs = list(specs)
        self._signature = _signature(function)
        self._places = [(spec, *_parse(spec.path)) for spec in self.specs]
        self._check_names()

    def abstract(self) -> list[jax.ShapeDtypeStruct]:
        """Shapes and types of the traced inputs."""
        return [abstract_leaf(s) for s in self.specs if is_traced(s)]

    def __call__(self, *leaves: Any) -> Any:
        positional, named = self.arguments(list(leaves))
        return self.function(*positional, **named)

    def arguments(self, leaves: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named arguments of the call."""
        remaining = iter(leaves)
        trees: dict[str, Any] = {}
        for spec, head, steps in self._places:
            value = next(remaining) if is_traced(spec) else _static(spec)
            trees[head] = _insert(trees.get(head), steps, value, spec.path)
        return self._arrange(trees)

    def _arrange(self, trees: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if self._signature is None:  # a builtin or a wrapper without a signature: by position
            return list(trees.values()), {}
        by_position = True
        for parameter in self._signature.parameters.values():
            if parameter.name not in trees:
                by_position = by_position and parameter.kind is parameter.POSITIONAL_ONLY
                continue
            value = _typed(trees.pop(parameter.name), parameter.annotation, self.function)
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += list(value) if isinstance(value, (list, tuple)) else [value]
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(value if isinstance(value, dict) else {parameter.name: value})
            elif by_position and parameter.kind is not parameter.KEYWORD_ONLY:
                positional.append(value)
            else:
                named[parameter.name] = value
        named.update(trees)  # only left when the function takes any name
        return positional, named

    def _check_names(self) -> None:
        if self._signature is None:
            return
        parameters = self._signature.parameters
        heads = [head for _spec, head, _steps in self._places]
        open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        for head in heads:
            if head not in parameters and not open_ended:
                raise InputError(
                    f"the function has no parameter {head!r}; its signature is {self._signature}. "
                    f"Write {_EXAMPLE}"
                )
        missing = [
            p.name
            for p in parameters.values()
            if p.default is p.empty
            and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
            and p.name not in heads
        ]
        if missing:
            raise InputError(f"no input is given for {', '.join(map(repr, missing))}. Write {_EXAMPLE}")


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _parse(path: str) -> tuple[str, list[str | int]]:
    head = _HEAD.match(path)
    if head is None:
        raise InputError(f"the input path {path!r} does not start with a parameter's name")
    steps: list[str | int] = []
    position = head.end()
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise InputError(
                f"the input path {path!r} cannot be read at {path[position:]!r}: use p.w, p[0] or p['w']"
            )
        index, name = step.group("index"), step.group("name")
        steps.append(int(index) if index is not None else name if name is not None else step.group("key"))
        position = step.end()
    return head.group(), steps


def _static(spec: worker_pb2.InputSpec) -> Any:
    try:
        return _tuples(json.loads(spec.static_json))
    except ValueError as error:
        raise InputError(f"the static input {spec.path!r} is not JSON: {error}") from None


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_tuples(v) for v in value)
    if isinstance(value, dict):
        return {k: _tuples(v) for k, v in value.items()}
    return value


def _insert(tree: Any, steps: Sequence[str | int], value: Any, path: str) -> Any:
    if not steps:
        if tree is not None:
            raise InputError(f"the input {path!r} is given twice, or both as a leaf and as a tree")
        return value
    step = steps[0]
    if isinstance(step, int):
        tree = [] if tree is None else tree
        if not isinstance(tree, list) or step > len(tree):
            raise InputError(
                f"the input {path!r} leaves out an index before [{step}], or mixes indices and names"
            )
        inner = tree[step] if step < len(tree) else None
        tree[step : step + 1] = [_insert(inner, steps[1:], value, path)]
        return tree
    tree = Record() if tree is None else tree
    if not isinstance(tree, Record):
        raise InputError(f"the input {path!r} mixes indices and names")
    tree[step] = _insert(tree.get(step), steps[1:], value, path)
    return tree


def _typed(tree: Any, annotation: Any, function: Callable[..., Any]) -> Any:
    """Builds the class that a parameter is annotated with, from a tree of named parts."""
    if not isinstance(tree, Record):
        if isinstance(tree, list) and (annotation is tuple or typing.get_origin(annotation) is tuple):
            return tuple(tree)
        return tree
    if isinstance(annotation, str):
        scope = getattr(inspect.unwrap(function), "__globals__", {})
        annotation = scope.get(annotation.strip("'\""), annotation)
    if inspect.isclass(annotation) and not issubclass(annotation, dict):
        fields = (
            [f.name for f in dataclasses.fields(annotation)]
            if dataclasses.is_dataclass(annotation)
            else list(getattr(annotation, "_fields", ()))
        )
        if fields and set(tree) <= set(fields):
            return annotation(**tree)
    return tree


# ---- modules that bring their own inputs


def from_module(
    module: types.ModuleType, function: Callable[..., Any]
) -> tuple[list[worker_pb2.InputSpec], str]:
    """Asks a benchmark-style module for inputs: `create_inputs(dtype=…)` or `get_inputs()`, evaluated
    abstractly.

    Returns specifications and the name of the function that gave them. Raises InputError when there is
    neither, or whatever the function raises.
    """
    signature = _signature(function)
    if signature is not None and not any(p.default is p.empty for p in signature.parameters.values()):
        return [], "given"
    if callable(getattr(module, "create_inputs", None)):
        made = _abstractly(lambda: module.create_inputs(**_dtype_argument(module.create_inputs)))
        values = list(made) if isinstance(made, (list, tuple)) else [made]
        return _specs(values, signature), "create_inputs"
    if callable(getattr(module, "get_inputs", None)):
        made = _abstractly(module.get_inputs)
        pair = made[0] if isinstance(made, list) else made
        dynamic, static = pair
        return _specs([*_listed(dynamic), *_listed(static)], signature), "get_inputs"
    raise InputError(
        f"the inputs of the function are not known: write {_EXAMPLE}; "
        "or give the module a function create_inputs()"
    )


def _listed(values: Any) -> list[Any]:
    if isinstance(values, dict):
        return list(values.values())
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _dtype_argument(function: Callable[..., Any]) -> dict[str, Any]:
    signature = _signature(function)
    parameter = signature.parameters.get("dtype") if signature else None
    return {"dtype": jnp.bfloat16} if parameter is not None and parameter.default is parameter.empty else {}


def _abstractly(function: Callable[[], Any]) -> Any:
    """Result of a function with arrays replaced by their shapes; executes it only if it cannot be traced."""
    statics: list[Any] = []
    treedef: Any = None

    def arrays() -> list[Any]:
        nonlocal statics, treedef
        leaves, treedef = jax.tree_util.tree_flatten(function())
        statics = [None if isinstance(v, (jax.Array, np.ndarray)) else v for v in leaves]
        return [v for v in leaves if isinstance(v, (jax.Array, np.ndarray))]

    try:
        shapes = jax.eval_shape(arrays)
    except (jax.errors.JAXTypeError, TypeError):
        shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays()]
    remaining = iter(shapes)
    return jax.tree_util.tree_unflatten(treedef, [next(remaining) if s is None else s for s in statics])


def _specs(values: Sequence[Any], signature: inspect.Signature | None) -> list[worker_pb2.InputSpec]:
    specs: list[worker_pb2.InputSpec] = []
    names = _parameter_names(signature, len(values))
    for name, value in zip(names, values, strict=True):
        for key_path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]:
            specs.append(_spec(name + _path_text(key_path), leaf))
    return specs


def _parameter_names(signature: inspect.Signature | None, count: int) -> list[str]:
    names: list[str] = []
    for parameter in signature.parameters.values() if signature else []:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(count - len(names))]
        elif parameter.kind is not parameter.VAR_KEYWORD:
            names.append(parameter.name)
    if len(names) < count:
        raise InputError(f"the module gives {count} inputs, and the function takes {len(names)}: {signature}")
    return names[:count]


def _path_text(key_path: Sequence[Any]) -> str:
    text = ""
    for key in key_path:
        if isinstance(key, jax.tree_util.SequenceKey):
            text += f"[{key.idx}]"
        elif isinstance(key, jax.tree_util.GetAttrKey):
            text += f".{key.name}"
        else:
            text += f"[{getattr(key, 'key', key)!r}]"
    return text


def _spec(path: str, leaf: Any) -> worker_pb2.InputSpec:
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return worker_pb2.InputSpec(path=path, prng_key=True)
        kind = ir_pb2.TensorType(dtype=np.dtype(leaf.dtype).name, dims=leaf.shape)
        return worker_pb2.InputSpec(path=path, tensor=worker_pb2.TensorInput(type=kind))
    try:
        return worker_pb2.InputSpec(path=path, static_json=json.dumps(leaf))
    except TypeError:
        raise InputError(
            f"the input {path!r} is a {type(leaf).__name__}, neither an array nor a plain value"
        ) from None
