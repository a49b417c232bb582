"""Models on servers that others wrote, and requests checked with the vendors' own clients. Long tier.

The servers are in an environment of their own: KW_MODELS_ENV, else `models-servers` in our data folder, made
from requirements-servers.txt when it is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from harness import ENVIRONMENT, LIMIT, RESULT, TOP, data_folder
from models.asker import Asker

pytestmark = pytest.mark.full

HERE = pathlib.Path(__file__).parent
TEXT = "The block is too small."
MASTER_KEY = "sk-test-of-the-proxy-4711"
KEYS: dict[str, str | None] = dict.fromkeys(
    ("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"), MASTER_KEY
)
BASES = {"openai": "/v1", "anthropic": "", "gemini": "/v1beta"}
CONFIG = {
    "model_list": [
        {
            "model_name": "mock-text",
            "litellm_params": {"model": "openai/gpt-4.1", "api_key": "unused", "mock_response": TEXT},
        },
        {
            "model_name": "mock-limited",
            "litellm_params": {
                "model": "openai/gpt-4.1",
                "api_key": "unused",
                "mock_response": "litellm.RateLimitError",
            },
        },
    ],
    "general_settings": {"master_key": MASTER_KEY},
    "litellm_settings": {"num_retries": 0},
    "router_settings": {"num_retries": 0, "disable_cooldowns": True},
}


@pytest.fixture(scope="module")
def servers() -> pathlib.Path:
    """The environment's bin folder."""
    folder = pathlib.Path(os.environ.get("KW_MODELS_ENV", data_folder() / "models-servers"))
    wanted = (HERE / "requirements-servers.txt").read_text()
    stamp = folder / "kernelwright-stamp"
    if "KW_MODELS_ENV" not in os.environ and (not stamp.is_file() or stamp.read_text() != wanted):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input"]
        subprocess.run([*pip, "-r", str(HERE / "requirements-servers.txt")], check=True)
        stamp.write_text(wanted)
    return folder / "bin"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def proxy(servers: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The litellm proxy on loopback, with answers of its own instead of a provider's."""
    folder = tmp_path_factory.mktemp("litellm")
    config = folder / "config.yaml"
    config.write_text(json.dumps(CONFIG))
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    command = [servers / "litellm", "--config", config, "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"},
        )
        try:
            deadline = time.monotonic() + 120
            while True:
                assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
                with contextlib.suppress(urllib.error.URLError, OSError):
                    if urllib.request.urlopen(base + "/health/liveliness", timeout=5).status == 200:
                        break
                time.sleep(0.2)
            yield base
        finally:
            os.killpg(process.pid, 15)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()


@pytest.mark.parametrize("wire", list(BASES))
@pytest.mark.parametrize("stream", [True, False])
def test_litellm_answers(asker: Asker, proxy: str, wire: str, stream: bool) -> None:
    arguments = ["ask", "--model", f"{wire}:mock-text", "--base-url", proxy + BASES[wire], "--json", "hello"]
    if not stream:
        arguments.append("--no-stream")
    result = asker.run(*arguments, env=KEYS).expect(RESULT).json
    assert result["text"] == TEXT
    assert result["stop"] == "end"
    assert len(result["record"]["attempts"]) == 1
    assert result["record"]["usage"]["output_tokens"] > 0


@pytest.mark.parametrize("wire", list(BASES))
def test_litellm_refuses_a_wrong_key(asker: Asker, proxy: str, wire: str) -> None:
    wrong: dict[str, str | None] = dict.fromkeys(KEYS, "sk-wrong-key-of-nobody-0815")
    arguments = ["ask", "--model", f"{wire}:mock-text", "--base-url", proxy + BASES[wire], "--json", "hello"]
    result = asker.run(*arguments, env=wrong)
    assert result.json["cause"] in ("auth", "bad_request", "forbidden"), result
    assert len(result.json["record"]["attempts"]) == 1
    assert "sk-wrong-key-of-nobody-0815" not in result.text


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_litellm_limits_the_rate(asker: Asker, proxy: str, wire: str) -> None:
    arguments = [
        "ask",
        "--model",
        f"{wire}:mock-limited",
        "--base-url",
        proxy + BASES[wire],
        "--json",
        "hello",
    ]
    result = asker.run(*arguments, "--timeout", "3s", env=KEYS).expect(LIMIT)
    assert result.json["cause"] == "rate_limit", result


def test_litellm_lists_its_models(asker: Asker, proxy: str) -> None:
    arguments = ["list", "openai", "--ask", "--base-url", proxy + "/v1", "--json"]
    result = asker.run(*arguments, env=KEYS).expect(RESULT).json
    assert {m["name"] for m in result["models"]} >= {"openai:mock-text", "openai:mock-limited"}
    assert all(m["prices"] is None for m in result["models"] if "mock" in m["name"])
    asker.run(*arguments, env=dict.fromkeys(KEYS, "sk-wrong-key-of-nobody-0815")).expect(ENVIRONMENT)


def test_requests_fit_the_vendors_own_types(servers: pathlib.Path) -> None:
    recorded = TOP / "daemon" / "models" / "testdata"
    files = [*recorded.glob("*_request.json"), *recorded.glob("*_structured.json")]
    assert len(files) == 6
    command = [str(servers / "python"), str(HERE / "validate_requests.py"), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("good") == 6
