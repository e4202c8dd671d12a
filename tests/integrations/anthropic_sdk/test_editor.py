"""The text editor tool: its commands, what they refuse, and that each can be undone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from anthropic.lib.tools import ToolError

from weakfs import InMemoryFilesystem, Session
from weakfs.integrations.anthropic import AsyncTextEditorTool, TextEditorTool

TEXT = "one\ntwo\nthree\n"


@pytest.fixture
def session() -> Session:
    session = Session(session_id="main")
    InMemoryFilesystem(session).write("/a.py", TEXT)
    return session


def read(session: Session, path: str = "/a.py") -> str:
    return InMemoryFilesystem(session).read(path).content


def test_view_shows_numbered_lines_and_directories(session: Session) -> None:
    InMemoryFilesystem(session).write("/src/deep/down/b.py", "")
    InMemoryFilesystem(session).write("/.hidden/c.py", "")
    editor = TextEditorTool(session)

    assert editor.call({"command": "view", "path": "/a.py", "view_range": [2, 3]}) == (
        "Here's the result of running `cat -n` on /a.py:\n     2\ttwo\n     3\tthree\n"
    )
    assert str(editor.call({"command": "view", "path": "/"})).splitlines()[1:] == ["/", "/a.py", "/src", "/src/deep"]


def test_view_is_cut_at_max_characters(session: Session) -> None:
    editor = TextEditorTool(session, max_characters=5)
    text = str(editor.call({"command": "view", "path": "/a.py"}))
    assert "     2\tt\n" in text
    assert "[9 more characters; use view_range to see them]" in text


def test_edits_are_made_and_undone(session: Session) -> None:
    editor = TextEditorTool(session)
    editor.call({"command": "create", "path": "/b.py", "file_text": "x\n"})
    answer = editor.call({"command": "str_replace", "path": "/a.py", "old_str": "two", "new_str": "2"})
    assert "     2\t2\n" in str(answer)
    editor.call({"command": "insert", "path": "/a.py", "insert_line": 1, "insert_text": "and\n"})
    editor.call({"command": "insert", "path": "/a.py", "insert_line": 0, "new_str": "zero"})
    editor.call({"command": "str_replace", "path": "/a.py", "old_str": "three\n"})
    assert read(session) == "zero\none\nand\n2\n"
    session.undo(5)
    assert read(session) == TEXT
    assert not InMemoryFilesystem(session).exists("/b.py")


def test_undo_edit_undoes_the_edits_of_a_file_one_by_one(session: Session) -> None:
    editor = TextEditorTool(session, version="20250124")
    editor.call({"command": "create", "path": "/b.py", "file_text": "x\n"})
    editor.call({"command": "str_replace", "path": "/a.py", "old_str": "one", "new_str": "1"})
    editor.call({"command": "str_replace", "path": "/a.py", "old_str": "two", "new_str": "2"})

    undo = {"command": "undo_edit", "path": "/a.py"}
    assert str(editor.call(undo)).startswith("Last edit to /a.py undone successfully. Here's the result")
    assert read(session) == "1\ntwo\nthree\n"
    editor.call(undo)
    assert read(session) == TEXT
    with pytest.raises(ToolError, match="No edit history"):
        editor.call(undo)
    assert "gone" in str(editor.call({"command": "undo_edit", "path": "/b.py"}))
    assert not InMemoryFilesystem(session).exists("/b.py")


def test_undo_edit_still_works_after_a_new_edit(session: Session) -> None:
    editor = TextEditorTool(session, version="20241022")
    for number in "123":
        editor.call({"command": "insert", "path": "/a.py", "insert_line": 0, "new_str": number})
        if number == "2":
            editor.call({"command": "undo_edit", "path": "/a.py"})
    for expected in ("1\n" + TEXT, TEXT):
        editor.call({"command": "undo_edit", "path": "/a.py"})
        assert read(session) == expected


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ({"command": "view", "path": "/no"}, "does not exist"),
        ({"command": "view", "path": "/../x"}, "above"),
        ({"command": "view", "path": "/", "view_range": [1, 2]}, "not allowed when"),
        ({"command": "view", "path": "/a.py", "view_range": [9, 10]}, "within the range"),
        ({"command": "view", "path": "/a.py", "view_range": [3, 2]}, "larger or equal"),
        ({"command": "view", "path": "/a.py", "view_range": [1]}, "two integers"),
        ({"command": "create", "path": "/a.py", "file_text": ""}, "already exists"),
        ({"command": "create", "path": "/a.py/b", "file_text": ""}, "a.py"),
        ({"command": "create", "path": "/c"}, "`file_text` is required"),
        ({"command": "str_replace", "path": "/a.py", "old_str": "four", "new_str": ""}, "did not appear verbatim"),
        ({"command": "str_replace", "path": "/a.py", "old_str": "e", "new_str": ""}, r"lines \[1, 3, 3\]"),
        ({"command": "str_replace", "path": "/a.py", "old_str": "", "new_str": ""}, "empty"),
        ({"command": "str_replace", "path": "/", "old_str": "a"}, "is a directory"),
        ({"command": "insert", "path": "/a.py", "insert_line": 9, "insert_text": ""}, "within the range"),
        ({"command": "insert", "path": "/a.py", "insert_line": 1}, "`insert_text` is required"),
        ({"command": "undo_edit", "path": "/a.py"}, "Unrecognized command"),
        ({"command": "view"}, "path: missing"),
        ([], "expected an object"),
    ],
)
def test_an_impossible_command_is_an_error_and_changes_nothing(session: Session, command: Any, text: str) -> None:
    with pytest.raises(ToolError, match=text):
        TextEditorTool(session).call(command)
    assert read(session) == TEXT


def test_definitions_name_the_version(session: Session) -> None:
    assert TextEditorTool(session, max_characters=10).to_dict() == {
        "type": "text_editor_20250728",
        "name": "str_replace_based_edit_tool",
        "max_characters": 10,
    }
    assert TextEditorTool(session, version="20250124").name == "str_replace_editor"
    with pytest.raises(ValueError, match="20250728"):
        TextEditorTool(session, version="2030")  # type: ignore[arg-type]  # refused
    with pytest.raises(ValueError, match="max_characters"):
        TextEditorTool(session, version="20250429", max_characters=10)


def test_the_async_tool_does_the_same(session: Session) -> None:
    command = {"command": "str_replace", "path": "/a.py", "old_str": "one", "new_str": "1"}
    asyncio.run(AsyncTextEditorTool(session).call(command))
    assert read(session) == "1\ntwo\nthree\n"
