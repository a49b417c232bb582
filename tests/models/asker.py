"""Runs `kernelwright models` with keys in its environment."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass, field
from typing import Any

from harness import Kernelwright, Result

KEY = "secret.test.key.4711"
PROVIDERS = {"gemini": "gemini-3.8-flash", "anthropic": "claude-opus-5", "openai": "gpt-5"}
KEYS = {"GEMINI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}


@dataclass
class Asker:
    """Runs `models ask` against a base URL."""

    installation: Kernelwright
    results: list[Result] = field(default_factory=list)

    def run(self, *arguments: str, env: dict[str, str | None] | None = None) -> Result:
        result = self.installation.run("models", *arguments, env={**KEYS, **(env or {})}, limit=60)
        self.results.append(result)
        return result

    def arguments(self, wire: str, base: str) -> list[str]:
        return ["ask", "--model", f"{wire}:{PROVIDERS[wire]}", "--base-url", base, "--json", "hello"]

    def ask(self, wire: str, base: str, *more: str) -> Result:
        return self.run(*self.arguments(wire, base), *more)

    def interrupt(self, wire: str, base: str, when: Any) -> tuple[dict[str, Any], int, float]:
        """Sends Ctrl-C to a question once `when()` is true; its object, exit code, seconds from then."""
        process = self.installation.start("models", *self.arguments(wire, base), env={**KEYS})
        while not when():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        return json.loads(out), process.returncode, time.monotonic() - begin
