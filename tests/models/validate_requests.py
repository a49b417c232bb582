"""Checks recorded requests with the types of the vendors' own clients; runs in the environment that has them.

usage: validate_requests.py FILE…   each as daemon/models/testdata/WIRE_*.json
"""

from __future__ import annotations

import importlib
import json
import pathlib
import sys
from typing import Any, get_type_hints


def consume(value: Any) -> Any:
    """Iterables of a validated value are checked only while they are read."""
    if isinstance(value, dict):
        return {key: consume(item) for key, item in value.items()}
    if isinstance(value, str | bytes | int | float | bool) or value is None:
        return value
    return [consume(item) for item in value]


def check_typed_dict(module: str, name: str, body: dict[str, Any]) -> None:
    pydantic = importlib.import_module("pydantic")
    kind = getattr(importlib.import_module(module), name)
    unknown = set(body) - set(get_type_hints(kind))
    assert not unknown, f"the client knows no field {sorted(unknown)}"
    # Its iterators need the adapter to live.
    adapter = pydantic.TypeAdapter(kind)
    consume(adapter.validate_python(body))
    del adapter


def check_gemini(body: dict[str, Any]) -> None:
    types = importlib.import_module("google.genai.types")
    parts = {
        "systemInstruction": types.Content,
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
    }
    unknown = set(body) - {*parts, "contents", "tools"}
    assert not unknown, f"the client knows no field {sorted(unknown)}"
    for content in body["contents"]:
        types.Content.model_validate(content)
    for tool in body.get("tools", []):
        types.Tool.model_validate(tool)
    for name, kind in parts.items():
        if name in body:
            kind.model_validate(body[name])


def check(path: pathlib.Path) -> None:
    body = json.loads(path.read_text())["body"]
    wire = path.name.partition("_")[0]
    if wire == "gemini":
        check_gemini(body)
    elif wire == "anthropic":
        check_typed_dict("anthropic.types.message_create_params", "MessageCreateParamsStreaming", body)
    else:
        check_typed_dict(
            "openai.types.chat.completion_create_params", "CompletionCreateParamsStreaming", body
        )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        try:
            check(pathlib.Path(argument))
        except Exception as error:
            sys.exit(f"{argument}: {error}")
        print(f"{argument}: good")
