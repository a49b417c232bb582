"""Source ranges: from frames of Python and of jax to lines and columns that an editor can mark."""

from __future__ import annotations

import functools
import linecache
import os
import traceback
import types
from collections.abc import Iterator
from typing import Any

from kernelwright.v1 import ir_pb2

import kernelwright_worker

_OWN = os.path.dirname(os.path.abspath(kernelwright_worker.__file__)) + os.sep
_JAX_INTERNAL = f"{os.sep}jax{os.sep}_src{os.sep}"
_MAX_SPANS = 24


def of_jax(jax_traceback: Any) -> list[ir_pb2.SourceSpan]:
    """Spans of an operation, innermost frame first: frames of the user and of libraries, without jax's own
    machinery.
    """
    if jax_traceback is None:
        return []
    code, last = jax_traceback.raw_frames()
    return _spans(tuple(zip(code, last, strict=True)))


@functools.lru_cache(maxsize=4096)
def _cached(frames: tuple[tuple[types.CodeType, int], ...]) -> tuple[ir_pb2.SourceSpan, ...]:
    found = [_span(c, i) for c, i in frames if _is_shown(c.co_filename)]
    if not found:  # nothing but machinery: its innermost frame is better than no place at all
        found = [_span(c, i) for c, i in frames[:1]]
    return tuple(found[:_MAX_SPANS])


def _spans(frames: tuple[tuple[types.CodeType, int], ...]) -> list[ir_pb2.SourceSpan]:
    return list(_cached(frames))


def of_traceback(trace: types.TracebackType | None) -> list[ir_pb2.SourceSpan]:
    """Spans of an exception's traceback, innermost first."""
    found: list[ir_pb2.SourceSpan] = []
    while trace is not None:
        if _is_shown(trace.tb_frame.f_code.co_filename):
            found.append(_span(trace.tb_frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    found.reverse()
    return found[:_MAX_SPANS]


def of_stack(frame: types.FrameType | None) -> list[ir_pb2.SourceSpan]:
    """Spans of a live stack, innermost first."""
    found: list[ir_pb2.SourceSpan] = []
    while frame is not None and len(found) < _MAX_SPANS:
        if _is_shown(frame.f_code.co_filename):
            found.append(_span(frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def of_function(function: Any) -> ir_pb2.SourceSpan | None:
    """First line of a Python function, through partials and decorators."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    line = code.co_firstlineno
    return ir_pb2.SourceSpan(file=code.co_filename, line=line, end_line=line, function=qualified_name(code))


def of_syntax_error(error: SyntaxError) -> list[ir_pb2.SourceSpan]:
    """Place that a syntax error names."""
    if not error.filename or not error.lineno:
        return []
    span = ir_pb2.SourceSpan(file=error.filename, line=error.lineno, column=error.offset or 0)
    end_line, end_column = getattr(error, "end_lineno", 0) or 0, getattr(error, "end_offset", 0) or 0
    span.end_line = end_line or error.lineno
    span.end_column = end_column if end_column > 0 else span.column + 1 if span.column else 0
    return [span]


def qualified_name(code: types.CodeType) -> str:
    """Qualified name of a function; its plain name before Python 3.11."""
    return str(getattr(code, "co_qualname", code.co_name))


def _is_shown(file: str) -> bool:
    if file.startswith((_OWN, "<frozen")) or file == "<string>":
        return False
    return _JAX_INTERNAL not in file and not file.endswith(f"{os.sep}runpy.py")


def _span(code: types.CodeType, last: int) -> ir_pb2.SourceSpan:
    line, end_line, column, end_column = _position(code, last)
    file = code.co_filename
    return ir_pb2.SourceSpan(
        file=file,
        line=line or 0,
        column=_characters(file, line, column),
        end_line=end_line or line or 0,
        end_column=_characters(file, end_line, end_column),
        function=qualified_name(code),
    )


def _position(code: types.CodeType, last: int) -> tuple[int | None, int | None, int | None, int | None]:
    if hasattr(code, "co_positions"):
        for index, position in enumerate(code.co_positions()):
            if index == last // 2:
                return position
    for start, end, line in _lines(code):
        if start <= last < end:
            return line, line, None, None
    return None, None, None, None


def _lines(code: types.CodeType) -> Iterator[tuple[int, int, int | None]]:
    return code.co_lines()


def _characters(file: str, line: int | None, column: int | None) -> int:
    """Python counts bytes from 0, editors characters from 1."""
    if line is None or column is None:
        return 0
    text = linecache.getline(file, line)
    return len(text.encode()[:column].decode("utf-8", "ignore")) + 1 if text else column + 1


def printed(error: BaseException, limit: int = 64 << 10) -> str:
    """An exception as Python prints it, cut in the middle when it is long."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8", "ignore")
    half = limit // 2 - 16
    return data[:half].decode("utf-8", "ignore") + "\n[…]\n" + data[-half:].decode("utf-8", "ignore")
