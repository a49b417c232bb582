"""Exceptions of user code as messages: whole texts, causes, and places in the user's files."""

from __future__ import annotations

from kernelwright.v1 import worker_pb2

from kernelwright_worker.frontend import spans


def code_error(stage: str, error: BaseException) -> worker_pb2.CodeError:
    """Describes an exception. Places of the cause come first: jax hangs the user's frames on it."""
    found = worker_pb2.CodeError(
        stage=stage, type=type(error).__name__, message=_text(error), traceback=spans.printed(error)
    )
    if isinstance(error, SyntaxError):
        found.message = error.msg or found.message
        found.frames.extend(spans.of_syntax_error(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    own = spans.of_traceback(error.__traceback__)
    if error.__cause__ is not None:
        found.cause = _text(error.__cause__)
    if cause is not None and type(cause).__name__ == "JaxStackTraceBeforeTransformation":
        found.frames.extend(spans.of_traceback(cause.__traceback__))
    found.frames.extend(own)
    return found


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception class of the user's may fail to print itself
        return repr(type(error))
