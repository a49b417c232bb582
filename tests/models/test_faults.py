"""Models on a server that misbehaves: what is asked again, what is not, and how each failure ends."""

from __future__ import annotations

import json
import pathlib
import time

import pytest
from harness import ENVIRONMENT, LIMIT, RESULT, USAGE
from models.asker import KEY, PROVIDERS, Asker
from models.faulty_server import TEXT, TOOL_ARGUMENTS, Server

WIRES = list(PROVIDERS)
every_wire = pytest.mark.parametrize("wire", WIRES)


@every_wire
def test_a_good_answer(asker: Asker, server: Server, wire: str) -> None:
    result = asker.ask(wire, server.base(wire, "good")).expect(RESULT).json
    assert result["text"] == TEXT
    assert result["stop"] == "end"
    assert result["record"]["usage"]["input_tokens"] == 12
    assert result["record"]["usd"] > 0
    assert result["record"]["first_piece_ms"] is not None
    (asked,) = server.state.of(wire, "good")
    header = {"gemini": "x-goog-api-key", "anthropic": "x-api-key", "openai": "authorization"}[wire]
    assert asked.headers[header].endswith(KEY)
    assert KEY not in asked.path + json.dumps(asked.body)


@every_wire
def test_retry_after_is_honoured(asker: Asker, server: Server, wire: str) -> None:
    begin = time.monotonic()
    result = asker.ask(wire, server.base(wire, "limited_once")).expect(RESULT).json
    assert time.monotonic() - begin >= 1
    assert result["text"] == TEXT
    assert [a["outcome"] for a in result["record"]["attempts"]] == ["rate_limit", "ok"]
    assert result["record"]["attempts"][1]["waited_ms"] >= 1000


@every_wire
def test_c56_a_long_retry_after_says_when_to_continue(asker: Asker, server: Server, wire: str) -> None:
    result = asker.ask(wire, server.base(wire, "limited_long")).expect(LIMIT)
    assert result.json["cause"] == "rate_limit"
    assert result.json["continue_at"] is not None
    assert "continue after" in result.json["error"]["remedy"]
    assert server.state.count(wire, "limited_long") == 1


@every_wire
@pytest.mark.parametrize("scenario", ["failing_once", "cut_once", "short_once", "overload_in_stream_once"])
def test_what_may_pass_is_asked_again(asker: Asker, server: Server, wire: str, scenario: str) -> None:
    result = asker.ask(wire, server.base(wire, scenario)).expect(RESULT).json
    assert result["text"] == TEXT, "the pieces of the answer that was cut are not part of it"
    assert len(result["record"]["attempts"]) == 2
    assert server.state.count(wire, scenario) == 2


def test_overload_and_damage_are_asked_again(asker: Asker, server: Server) -> None:
    for scenario in ("overloaded_once", "damaged_once"):
        result = asker.ask("gemini", server.base("gemini", scenario)).expect(RESULT).json
        assert result["text"] == TEXT


def test_a_stream_that_is_always_cut_ends_after_three(asker: Asker, server: Server) -> None:
    result = asker.ask("anthropic", server.base("anthropic", "cut_always")).expect(ENVIRONMENT).json
    assert result["cause"] == "cut"
    assert server.state.count("anthropic", "cut_always") == 3
    assert result["record"]["usage"]["input_tokens"] == 36, "each attempt counts"


@every_wire
@pytest.mark.parametrize(
    ("scenario", "code", "cause", "words"),
    [
        ("wrong_type", ENVIRONMENT, "protocol", "Sign in to the network"),
        ("error_in_200", ENVIRONMENT, "bad_request", "scripted fault"),
        ("bad_key", ENVIRONMENT, "auth", "key"),
        ("redirect", ENVIRONMENT, "protocol", "redirection"),
    ],
)
def test_what_cannot_pass_is_asked_once(
    asker: Asker, server: Server, wire: str, scenario: str, code: int, cause: str, words: str
) -> None:
    if (wire, scenario) == ("anthropic", "error_in_200"):
        cause = "server"  # its error objects have no status; this one says "api_error", which may pass
    result = asker.ask(wire, server.base(wire, scenario), "--timeout", "2s").expect(code)
    assert result.json["cause"] == cause
    result.says(words)
    assert cause == "server" or server.state.count(wire, scenario) == 1


@every_wire
def test_a_stream_with_an_odd_content_type_is_read(asker: Asker, server: Server, wire: str) -> None:
    assert asker.ask(wire, server.base(wire, "odd_type")).expect(RESULT).json["text"] == TEXT


@every_wire
def test_tool_calls(asker: Asker, server: Server, wire: str, tmp_path: pathlib.Path) -> None:
    tools = tmp_path / "tools.json"
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tools.write_text(json.dumps([{"name": "read_file", "description": "Lines.", "parameters": schema}]))
    result = asker.ask(wire, server.base(wire, "tool"), "--tools", str(tools)).expect(RESULT).json
    assert result["stop"] == "tool_calls"
    (call,) = result["tool_calls"]
    assert call["name"] == "read_file"
    assert call["arguments"] == TOOL_ARGUMENTS
    wrong = asker.ask(wire, server.base(wire, "wrong_arguments"), "--tools", str(tools)).expect(RESULT).json
    assert wrong["tool_calls"][0]["arguments"]["path"] == 3, "whether they fit is for the tool to say"


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_broken_arguments_are_told_apart(asker: Asker, server: Server, wire: str) -> None:
    result = asker.ask(wire, server.base(wire, "broken_arguments")).expect(RESULT).json
    assert result["tool_calls"][0]["arguments"] is None
    assert result["tool_calls"][0]["malformed"]


def test_very_slow_tokens_end_at_the_timeout(asker: Asker, server: Server) -> None:
    begin = time.monotonic()
    result = asker.ask("openai", server.base("openai", "slow_tokens"), "--timeout", "1s").expect(LIMIT)
    assert time.monotonic() - begin < 5
    assert result.json["cause"] == "timeout"
    assert result.json["spent"]["assumed_tokens"] > 0, "what was written until then costs something"


def test_silence_ends_after_the_idle_time(asker: Asker, server: Server) -> None:
    for scenario in ("never", "thinking_for_ever"):
        result = asker.ask("openai", server.base("openai", scenario), "--idle", "300ms", "--timeout", "4s")
        result.expect(LIMIT)
        assert result.json["cause"] in ("silent", "timeout")


@pytest.mark.parametrize("scenario", ["slow_tokens", "never"])
def test_ctrl_c_ends_at_once(asker: Asker, server: Server, scenario: str) -> None:
    before = server.state.count("gemini", scenario)
    result, code, seconds = asker.interrupt(
        "gemini", server.base("gemini", scenario), lambda: server.state.count("gemini", scenario) > before
    )
    assert code == LIMIT
    assert result["cause"] == "cancelled"
    # 100 ms for the cancel; the rest is the end of the process.
    assert seconds < 0.5


def test_budgeted_stops_before_the_call(asker: Asker, server: Server) -> None:
    result = asker.ask("anthropic", server.base("anthropic", "empty"), "--budget-usd", "0.0001").expect(LIMIT)
    assert result.json["cause"] == "budget"
    assert server.state.count("anthropic", "empty") == 0
    asker.ask("anthropic", server.base("anthropic", "empty"), "--budget-tokens", "100").expect(LIMIT)
    assert server.state.count("anthropic", "empty") == 0


def test_c58_an_unknown_price_is_unknown(asker: Asker, server: Server) -> None:
    arguments = [
        "ask",
        "--model",
        "openai:gpt-99",
        "--base-url",
        server.base("openai", "good"),
        "--json",
        "hello",
    ]
    result = asker.run(*arguments).expect(RESULT).json
    assert result["record"]["usd"] is None
    assert result["spent"]["usd"] is None
    refused = asker.run(*arguments, "--budget-usd", "5").expect(LIMIT)
    refused.says("price", "not known")


def test_missing_things_are_named(asker: Asker) -> None:
    asker.run("ask", "--model", "anthropic:claude-opus-5", "hi", env={"ANTHROPIC_API_KEY": None}).expect(
        ENVIRONMENT
    ).says("ANTHROPIC_API_KEY")
    asker.run("ask", "--model", "antropic:claude-opus-5", "hi").expect(USAGE).says("did you mean 'anthropic'")
    asker.run("ask", "--model", "gpt-5", "hi").expect(USAGE).says("PROVIDER:MODEL")
    asker.run("ask", "--model", "none", "hi").expect(USAGE)
    asker.run("ask", "--model", "openai:gpt-5", "--base-url", "http://models.example/v1", "hi").expect(
        USAGE
    ).says("unencrypted")


def test_offline_is_said(asker: Asker) -> None:
    result = asker.ask("openai", "http://127.0.0.1:1", "--timeout", "1s").expect(ENVIRONMENT)
    assert result.json["cause"] == "network"


def test_a_proxy_is_used(asker: Asker, server: Server) -> None:
    proxied = asker.run(
        *asker.arguments("openai", "https://models.example/v1"),
        "--proxy",
        "http://127.0.0.1:1",
        "--timeout",
        "1s",
    )
    proxied.expect(ENVIRONMENT)
    assert proxied.json["cause"] in ("network", "proxy")


def test_models_list_shows_keys_and_prices(asker: Asker) -> None:
    result = asker.run("list", "--json").expect(RESULT).json
    assert {p["name"]: p["key"] for p in result["providers"]}["openai"] == "set"
    assert {p["name"]: p["key"] for p in result["providers"]}["ollama"] == "none needed"
    opus = next(m for m in result["models"] if m["name"] == "anthropic:claude-opus-5")
    assert opus["prices"][0]["input"] == 5
    assert opus["price_date"] >= "2026-12-01"
    asker.run("list").expect(RESULT).says("claude-opus-5")


def test_show_request_sends_nothing(asker: Asker) -> None:
    result = asker.run(
        "ask", "--model", "anthropic:claude-opus-5", "--show-request", "hi", env={"ANTHROPIC_API_KEY": None}
    )
    assert result.expect(RESULT).json["body"]["messages"][0]["content"][0]["text"] == "hi"
