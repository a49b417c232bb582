"""A model server that misbehaves on purpose, in each of the three protocols, on loopback.

`base(wire, scenario)` is the base URL for one scenario, so that tests do not disturb each other. Requests
are recorded.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = ("The ", "block ", "is ", "too ", "small.")
TEXT = "".join(WORDS)
TOOL_ARGUMENTS = {"path": "k.py", "first_line": 3}


def sse(*objects: Any, names: bool = False) -> bytes:
    """Events of a stream; with `names` each also says its type, as Anthropic's do."""
    text = ""
    for item in objects:
        if names:
            text += f"event: {item['type']}\n"
        text += "data: " + (item if isinstance(item, str) else json.dumps(item)) + "\n\n"
    return text.encode()


def gemini_chunk(part: dict[str, Any], finish: str | None = None, usage: bool = False) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}}
    if finish:
        candidate["finishReason"] = finish
    chunk: dict[str, Any] = {"candidates": [candidate], "modelVersion": "mock", "responseId": "r"}
    if usage:
        chunk["usageMetadata"] = {"promptTokenCount": 12, "candidatesTokenCount": 5, "totalTokenCount": 17}
    return chunk


def openai_chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "model": "mock", "choices": [choice]}


def anthropic_start() -> list[dict[str, Any]]:
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "mock",
        "content": [],
        "usage": {"input_tokens": 12, "output_tokens": 1},
    }
    return [{"type": "message_start", "message": message}]


def anthropic_block(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def anthropic_end(reason: str) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


def good_stream(wire: str) -> list[bytes]:
    """A good answer, event by event."""
    if wire == "gemini":
        chunks = [gemini_chunk({"text": word}) for word in WORDS]
        return [sse(c) for c in chunks] + [sse(gemini_chunk({"text": ""}, "STOP", usage=True))]
    if wire == "anthropic":
        deltas = [{"type": "text_delta", "text": word} for word in WORDS]
        block = anthropic_block(0, {"type": "text", "text": ""}, deltas)
        return [sse(e, names=True) for e in [*anthropic_start(), *block, *anthropic_end("end_turn")]]
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
    last = {"id": "c", "object": "chat.completion.chunk", "model": "mock", "choices": [], "usage": usage}
    chunks = [openai_chunk({"content": word}) for word in WORDS] + [openai_chunk({}, "stop")]
    return [sse(c) for c in [*chunks, last]] + [sse("[DONE]")]


def tool_stream(wire: str, arguments: str) -> list[bytes]:
    """A call of read_file with these arguments; Gemini has them as a value, not as text."""
    if wire == "gemini":
        call = {"functionCall": {"name": "read_file", "args": json.loads(arguments)}}
        return [sse(gemini_chunk(call, "STOP", usage=True))]
    if wire == "anthropic":
        start = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}}
        block = anthropic_block(0, start, [{"type": "input_json_delta", "partial_json": arguments}])
        return [sse(e, names=True) for e in [*anthropic_start(), *block, *anthropic_end("tool_use")]]
    function = {"name": "read_file", "arguments": arguments}
    entry = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return [sse(openai_chunk({"tool_calls": [entry]})), sse(openai_chunk({}, "tool_calls")), sse("[DONE]")]


def error_body(wire: str, status: int, message: str) -> dict[str, Any]:
    """An error as the server of this protocol words it."""
    error: dict[str, Any] = {"message": message}
    if wire == "gemini":
        names = {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
        error |= {"code": status, "status": names.get(status, "INVALID_ARGUMENT")}
        return {"error": error}
    if wire == "anthropic":
        kinds = {401: "authentication", 429: "rate_limit", 500: "api", 529: "overloaded"}
        error["type"] = kinds.get(status, "api") + "_error"
        return {"type": "error", "error": error}
    error |= {"type": "error", "code": status}
    return {"error": error}


@dataclass
class Asked:
    wire: str
    scenario: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class State:
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopping: threading.Event = field(default_factory=threading.Event)

    def count(self, wire: str, scenario: str) -> int:
        with self.lock:
            return sum(a.wire == wire and a.scenario == scenario for a in self.asked)

    def of(self, wire: str, scenario: str) -> list[Asked]:
        with self.lock:
            return [a for a in self.asked if a.wire == wire and a.scenario == scenario]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:  # the name is the library's
        _, wire, scenario, *rest = self.path.split("/")
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        asked = Asked(
            wire, scenario, "/" + "/".join(rest), {k.lower(): v for k, v in self.headers.items()}, body
        )
        with self.server.state.lock:
            self.server.state.asked.append(asked)
        try:
            SCENARIOS[scenario](self, wire, self.server.state.count(wire, scenario))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def whole(
        self, status: int, body: bytes, kind: str = "application/json", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def fail(self, wire: str, status: int, headers: dict[str, str] | None = None) -> None:
        self.whole(status, json.dumps(error_body(wire, status, "scripted fault")).encode(), headers=headers)

    def stream(
        self, pieces: list[bytes], end: bool = True, pause: float = 0, kind: str = "text/event-stream"
    ) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
            if pause and self.server.state.stopping.wait(pause):
                break
        if end:
            self.wfile.write(b"0\r\n\r\n")
        else:
            # No last chunk: for HTTP the answer was cut.
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def hang(self) -> None:
        self.server.state.stopping.wait(60)
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    # Requests that hang are ended by State.stopping.
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.state = State()

    def base(self, wire: str, scenario: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{wire}/{scenario}"


def good(handler: Handler, wire: str, _: int) -> None:
    handler.stream(good_stream(wire))


def first(fault: Callable[[Handler, str], None]) -> Callable[[Handler, str, int], None]:
    """The fault once, then a good answer."""

    def play(handler: Handler, wire: str, times: int) -> None:
        if times == 1:
            fault(handler, wire)
        else:
            good(handler, wire, times)

    return play


def always(fault: Callable[[Handler, str], None]) -> Callable[[Handler, str, int], None]:
    return lambda handler, wire, times: fault(handler, wire)


def slow_start(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.end_headers()
    handler.wfile.write(b": still thinking\n\n")
    handler.wfile.flush()
    handler.hang()


HTML = b"<html><head><title>Sign in to the network</title></head><body>hello</body></html>"

SCENARIOS: dict[str, Callable[[Handler, str, int], None]] = {
    "good": good,
    "limited_once": first(lambda h, w: h.fail(w, 429, {"retry-after": "1"})),
    "limited_long": always(lambda h, w: h.fail(w, 429, {"retry-after": "7200"})),
    "failing_once": first(lambda h, w: h.fail(w, 500)),
    "overloaded_once": first(lambda h, w: h.fail(w, 503)),
    "cut_once": first(lambda h, w: h.stream(good_stream(w)[:3], end=False)),
    # HTTP ends as it should, the answer does not.
    "short_once": first(lambda h, w: h.stream(good_stream(w)[:3])),
    "cut_always": always(lambda h, w: h.stream(good_stream(w)[:3], end=False)),
    "damaged_once": first(lambda h, w: h.stream([*good_stream(w)[:2], b'data: {"candidates": [{"con\n\n'])),
    "wrong_type": always(lambda h, w: h.whole(200, HTML, "text/html")),
    # A good stream that calls itself something else.
    "odd_type": always(lambda h, w: h.stream(good_stream(w), kind="text/plain")),
    "error_in_200": always(
        lambda h, w: h.whole(200, json.dumps(error_body(w, 400, "scripted fault")).encode())
    ),
    "overload_in_stream_once": first(
        lambda h, w: h.stream(
            [sse(error_body(w, 529 if w == "anthropic" else 503, "scripted"), names=w == "anthropic")]
        )
    ),
    "wrong_arguments": always(lambda h, w: h.stream(tool_stream(w, '{"path": 3, "lines": "x"}'))),
    "broken_arguments": always(lambda h, w: h.stream(tool_stream(w, '{"path": "k'))),
    "tool": always(lambda h, w: h.stream(tool_stream(w, json.dumps(TOOL_ARGUMENTS)))),
    "slow_tokens": always(
        lambda h, w: h.stream([*good_stream(w)[:2], *[good_stream(w)[2]] * 1000], pause=0.1)
    ),
    "never": always(lambda h, w: h.hang()),
    "thinking_for_ever": always(lambda h, w: slow_start(h)),
    "bad_key": always(lambda h, w: h.fail(w, 401)),
    "redirect": always(lambda h, w: h.whole(302, b"", headers={"location": "http://127.0.0.1:1/"})),
    "empty": always(lambda h, w: h.whole(200, b"")),
}


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.state.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
