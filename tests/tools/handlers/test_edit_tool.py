"""`edit_file` with inexact matches: what it writes, and what it reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sampling import share
from weakfs import Session, ToolResult, Toolset
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.reducers.events import FileSpliced, FileWritten
from weakfs.tools.handlers import EditFileReceipt

CASES = json.loads((Path(__file__).parents[3] / "fixtures" / "cases" / "edit.json").read_bytes())["cases"]


@pytest.fixture
def toolset() -> Toolset:
    return Toolset(Session(session_id="s"))


def edit(toolset: Toolset, content: str, old: str, new: str, replace_all: bool = False) -> ToolResult[object]:
    toolset.filesystem.write("/f", content)
    arguments = {"path": "/f", "old_string": old, "new_string": new, "replace_all": replace_all}
    return toolset.call("edit_file", arguments, call_id="edit")


def text(toolset: Toolset) -> str:
    return toolset.filesystem.read("/f", limit=-1).content


def receipt(result: ToolResult[object]) -> EditFileReceipt:
    assert isinstance(result.value, EditFileReceipt)
    return result.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_table_of_cases_is_answered(toolset: Toolset, case: dict[str, Any]) -> None:
    result = edit(toolset, case["content"], case["old"], case["new"], case["replace_all"])

    said = receipt(result)
    assert (said.status, said.error_code) == (case["status"], case.get("error_code"))
    assert (said.replacements, said.applied) == (case["replacements"], case["status"] == "ok")
    if case["status"] == "ok":
        assert text(toolset) in [case["result"], *case.get("also_ok", ())]
        assert said.matched == ("exact" if case["old"] in case["content"] else "fuzzy")
    else:
        assert text(toolset) == case["content"]
        assert said.matched is None
    if "lines" in case:
        assert list(said.lines) == case["lines"]
    if "hint" in case:
        assert said.hint == case["hint"]


@pytest.mark.parametrize(
    ("content", "old", "said"),
    [
        ("a b\n", "a b", "Updated /f (1 replacement)"),
        ("a\tb\n", "a b", "Updated /f (1 replacement, matched with other white space)"),
        ("a\r\nb\r\n", "a\nb", "Updated /f (1 replacement, matched with other line ends)"),
        ("\u201ca b\u201d\n", '"a b"', "Updated /f (1 replacement, matched with other quotes or dashes)"),
    ],
)
def test_an_inexact_match_is_reported_as_such(toolset: Toolset, content: str, old: str, said: str) -> None:
    assert edit(toolset, content, old, "c").message == said


def test_the_record_of_an_inexact_edit_is_as_small_as_the_edit(toolset: Toolset) -> None:
    assert edit(toolset, "é" * 100_000 + "\n\tneedle  x\n", "    needle x", "    pin").success

    (event,) = [r.event for r in toolset.session.records if r.cause == "edit" and isinstance(r.event, FileSpliced)]
    assert event.pieces == ((200_002, 200_011, b"pin"),)


def test_many_inexact_replacements_are_recorded_as_the_whole_file(toolset: Toolset) -> None:
    assert edit(toolset, "é\tx\n" * 10_000, "é x", "é y", replace_all=True).success

    assert text(toolset) == "é y\n" * 10_000
    assert any(r.cause == "edit" and isinstance(r.event, FileWritten) for r in toolset.session.records)


def test_an_edit_that_exceeds_the_size_limit_is_refused_before_it_is_made() -> None:
    toolset = Toolset(Session(session_id="s"), limits=Limits(max_file_size=1_000_000))

    # The new text would take a quarter of a terabyte, or at least thirty gigabytes.
    count = share(250_000)
    result = edit(toolset, "a\tb " * count, "a b", ("c" * 999 + "\n") * 1000, replace_all=True)
    smaller = edit(toolset, "a\tb " * count, "a b", "c", replace_all=True)

    assert result.error_code == "file_too_large"
    assert receipt(smaller).replacements == count


def test_inserted_line_endings_count_towards_the_limit() -> None:
    toolset = Toolset(Session(session_id="s"), limits=Limits(max_file_size=9))

    assert edit(toolset, "a\r\nb", "a", "c\nd\ne").error_code == "file_too_large"
    assert edit(toolset, "a\r\nb", "a", "c\nde").success


def test_a_refusal_says_what_to_do_next(toolset: Toolset) -> None:
    result = edit(toolset, "def area(w, h):\n    return w * h\n", "return w + h", "return w * h * 2")

    assert result.message == (
        "cannot edit '/f': the text to replace is not in it; did you mean line 2? Line 2 differs: the file has "
        "'return w * h', the text to replace has 'return w + h'."
    )
    assert "\n" not in result.summary_text


def test_the_refusal_of_a_quote_of_megabytes_stays_short(toolset: Toolset) -> None:
    content = "".join(f"line {number} of many\n" for number in range(50_000))

    result = edit(toolset, content, content.replace("line 40000", "line forty thousand"), "x")

    assert (result.status, receipt(result).hint) == ("not_found", "similar")
    assert len(result.message) <= 2000


@pytest.mark.parametrize(
    ("path", "code"), [("/none", "not_found"), ("/d", "is_directory"), ("/f/x", "not_a_directory")]
)
def test_directories_and_missing_files_cannot_be_edited(toolset: Toolset, path: str, code: str) -> None:
    toolset.filesystem.mkdir("/d")
    toolset.filesystem.write("/f", "a")

    result = toolset.call("edit_file", {"path": path, "old_string": "a", "new_string": "b"})

    assert result.error_code == code
    assert result.message.startswith(f"cannot edit '{path}': ")
    assert result.summary_text.startswith(f"cannot edit '{path}': ")


def test_an_empty_old_string_points_to_write_file(toolset: Toolset) -> None:
    toolset.filesystem.write("/f", "a")

    there = toolset.call("edit_file", {"path": "/f", "old_string": "", "new_string": "b"})
    absent = toolset.call("edit_file", {"path": "/none/g", "old_string": "", "new_string": "b"})

    assert there.error_code == absent.error_code == "invalid_input_empty_old_string"
    assert there.message.endswith(
        "the text to replace is empty; give the exact text that is to change, or use "
        "write_file to replace the whole file"
    )
    assert absent.message.endswith("and the text to replace is empty; to make a new file use write_file")


def test_a_file_as_large_as_the_limit_can_be_edited_as_long_as_it_does_not_grow() -> None:
    session = Session(session_id="s")
    toolset = Toolset(session, InMemoryFilesystem(session, limits=Limits(max_file_size=20)))
    assert edit(toolset, "port = 80, port = 90", "80", "81").success
    assert edit(toolset, "port = 80, port = 90", "port", "host", replace_all=True).success
    assert not edit(toolset, "port = 80, port = 90", "80", "8080").success
    assert text(toolset) == "port = 80, port = 90"


def test_an_edit_takes_the_names_of_the_text_editor_tool_too() -> None:
    toolset = Toolset(Session())
    toolset.filesystem.write("/a", "one\n")

    result = toolset.call("edit_file", {"path": "/a", "old_str": "one", "new_str": "two"})

    assert result.success, result.message
    assert toolset.filesystem.read("/a").content == "two\n"
