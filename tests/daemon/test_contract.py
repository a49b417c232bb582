"""docs/json.md and the result object say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from daemon.contract import check_result
from daemon.machine import REPOSITORY

DATA = REPOSITORY / "daemon" / "cli" / "testdata"


def names(value: Any) -> set[str]:
    """Every field name; those of maps from name to version are data."""
    if isinstance(value, list):
        return set().union(*(names(item) for item in value))
    if not isinstance(value, dict):
        return set()
    found = set(value)
    for name, item in value.items():
        if name != "versions":
            found |= names(item)
    return found


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json")), ids=lambda path: path.stem)
def test_examples_keep_the_contract(path: Path) -> None:
    assert check_result(json.loads(path.read_text())) == []


def test_a_broken_object_is_noticed() -> None:
    whole = json.loads((DATA / "improved.json").read_text())
    for name in whole:
        broken = {key: value for key, value in whole.items() if key != name}
        assert check_result(broken), name
    for name in whole["results"][0]:
        broken = json.loads(json.dumps(whole))
        del broken["results"][0][name]
        assert check_result(broken), name


def test_every_field_is_documented() -> None:
    text = (REPOSITORY / "docs" / "json.md").read_text()
    for path in DATA.glob("*.json"):
        for name in names(json.loads(path.read_text())):
            assert f"`{name}`" in text, name
