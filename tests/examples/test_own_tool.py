"""The example of a custom tool."""

from __future__ import annotations

import json

import pytest

from examples.own_tool import main


def test_the_tool_answers_and_reports_its_failures(capsys: pytest.CaptureFixture[str]) -> None:
    main()

    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["class A:", "    def b(self):"]
    assert printed[2] == ("cannot call outline: file: no such argument; use path; path: missing; give the Python file")
    assert printed[3].startswith("cannot read '/b.py': there is no such entry")
    assert json.loads(printed[4]) == {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "the Python file"}},
        "required": ["path"],
        "additionalProperties": False,
    }
