"""Watches kernel calls while they are traced, also those whose body then fails.

jax has no public way to see a kernel's grid and blocks before its body is traced, so three functions of its
Pallas module are wrapped for the time of one trace. A version of jax that renames them loses `calls_seen` and
nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from jax._src.pallas import pallas_call as pallas_module
from kernelwright.v1 import ir_pb2

from kernelwright_worker.frontend import program, spans


@contextlib.contextmanager
def record_calls(calls: list[ir_pb2.PallasCall]) -> Iterator[None]:
    """Appends every kernel call that is traced inside, in order."""
    call = getattr(pallas_module, "_pallas_call", None)
    trace = getattr(pallas_module, "_trace_kernel_to_jaxpr", None)
    if call is None or trace is None:
        yield
        return
    stack: list[dict[str, Any]] = []

    @functools.wraps(call)
    def watched_call(kernel: Any, *arguments: Any, **options: Any) -> Callable[..., Any]:
        inner = call(kernel, *arguments, **options)
        site = spans.of_stack(sys._getframe(1))

        def invoke(*operands: Any) -> Any:
            stack.append({"options": options, "site": site, "kernel": kernel})
            try:
                return inner(*operands)
            finally:
                stack.pop()

        return invoke

    @functools.wraps(trace)
    def watched_trace(fun: Any, debug_info: Any, grid_mapping: Any, *arguments: Any, **options: Any) -> Any:
        if stack and not options.get("indexer"):
            calls.append(_describe(stack[-1], debug_info, grid_mapping))
        return trace(fun, debug_info, grid_mapping, *arguments, **options)

    pallas_module._pallas_call = watched_call
    pallas_module._trace_kernel_to_jaxpr = watched_trace
    try:
        yield
    finally:
        pallas_module._pallas_call = call
        pallas_module._trace_kernel_to_jaxpr = trace


def _describe(context: dict[str, Any], debug_info: Any, grid_mapping: Any) -> ir_pb2.PallasCall:
    options = context["options"]
    aliases = options.get("input_output_aliases") or {}
    found = program.convert_call(
        {
            "grid_mapping": grid_mapping,
            "debug_info": debug_info,
            "name": options.get("name"),
            "compiler_params": options.get("compiler_params"),
            "input_output_aliases": tuple(aliases.items()),
        }
    )
    found.spans.extend(context["site"])
    return found
