"""What a call may ask for has bounds: the depth of a path, the names of arguments, the entries of a tree."""

from __future__ import annotations

import sys

import pytest

from weakfs import Session, ToolResult, Toolset
from weakfs.filesystem import Limits

DEEP = "/".join(["a"] * 32_000)


def toolset() -> Toolset:
    made = Toolset(Session(session_id="s"))
    made.filesystem.write("/a/b", "x")
    return made


def told(name: str, arguments: dict[str, object], *, most: int) -> ToolResult[object]:
    """Make a call that may make so many calls of Python functions."""
    tools = toolset()
    made = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event == "call"
        if made > most:
            raise AssertionError(f"more than {most} calls of functions")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return tools.call(name, arguments)
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_file", {"path": DEEP, "content": "x"}),
        ("read_file", {"path": DEEP}),
        ("edit_file", {"path": DEEP, "old_string": "x", "new_string": "y"}),
        ("ls", {"path": DEEP}),
        ("rm", {"path": DEEP}),
        ("mkdir", {"path": DEEP}),
        ("stat", {"path": DEEP}),
    ],
)
def test_the_depth_of_a_path_is_looked_at_before_anything_else(name: str, arguments: dict[str, object]) -> None:
    result = told(name, arguments, most=20_000)

    assert not result.success
    assert "segments deep" in result.message
    assert len(result.message) < 400


def test_of_many_unknown_arguments_the_first_are_told_and_the_others_counted() -> None:
    unknown: dict[str, object] = {f"pat{number}": 1 for number in range(16_000)}

    result = told("read_file", {"path": "/a/b", **unknown}, most=20_000)

    assert result.error_code == "invalid_arguments"
    assert "pat9: no such argument" in result.message
    assert "pat10" not in result.message
    assert "15990 more unknown names" in result.message


def test_a_tree_that_is_copied_into_itself_comes_to_the_quota_of_entries() -> None:
    tools = toolset()
    tools.filesystem.write("/0/a", "x")

    answers = [
        tools.call("cp", {"source": f"/{level}", "destination": f"/{level + 1}/{half}"})
        for level in range(22)
        for half in "ab"
    ]

    assert "quota_exceeded" in {answer.error_code for answer in answers}
    assert tools.filesystem.statistics().node_count <= 1_000_000 == Limits.tools().max_node_count
