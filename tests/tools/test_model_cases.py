"""Calls as models write them: which are applied, which are refused, and whether a refusal says what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from weakfs import Session, ToolResult, Toolset

FOLDER = Path(__file__).parents[2] / "fixtures" / "cases"
CASES: list[dict[str, Any]] = [
    case
    for name in ("models.json", "refusals.json", "languages.json")
    for case in json.loads((FOLDER / name).read_bytes())["cases"]
]
# Longer than the longest reason, with the path and the rest of a message.
LONGEST = 1700


def call(toolset: Toolset, case: dict[str, Any]) -> ToolResult[Any]:
    if case["tool"] == "apply_patch":
        return toolset.call("apply_patch", {"patch": case["patch"], "patch_format": case["format"]})
    arguments = {"path": case["path"], "old_string": case["old"], "new_string": case["new"]}
    return toolset.call("edit_file", arguments | {"replace_all": case["replace_all"]})


def files(toolset: Toolset) -> dict[str, str]:
    filesystem = toolset.filesystem
    paths = [entry.path for entry in filesystem.walk("/") if entry.is_file]
    return {path.removeprefix("/"): filesystem.read_bytes(path).content.decode() for path in paths}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_call_is_applied_as_it_was_meant_or_refused_with_a_hint(case: dict[str, Any]) -> None:
    toolset = Toolset(Session(session_id="s"))
    for path, content in case["before"].items():
        toolset.filesystem.write_bytes(f"/{path}", content.encode(), create_parents=True)

    result = call(toolset, case)

    if result.success:
        assert case["refuse"] != "must", result.message
        assert files(toolset) in [case["want"], *case["also_ok"]]
        return
    assert case["refuse"] != "no", result.message
    assert files(toolset) == case["before"]
    hints = [re.search(hint, result.message, re.IGNORECASE | re.DOTALL) for hint in case["hint"]]
    assert any(hints) or not hints, result.message
    assert len(result.message) <= LONGEST


def test_no_case_occurs_twice() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES) > 130
