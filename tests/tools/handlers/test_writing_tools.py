"""`write_file`, `edit_file`, `rm`, `mkdir`, `mv` and `cp`: what they change, and what they report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs import Session, ToolResult, Toolset
from weakfs.editing import EditError, Replacement, replace
from weakfs.filesystem import Limits
from weakfs.reducers.events import FileSpliced, FileWritten

CASES = json.loads((Path(__file__).parents[3] / "fixtures" / "cases" / "edit.json").read_bytes())["cases"]


@pytest.fixture
def toolset() -> Toolset:
    toolset = Toolset(Session(session_id="s"))
    toolset.filesystem.write("/src/app.py", "port = 80\nhost = 'a'\n")
    toolset.filesystem.mkdir("/empty")
    return toolset


def text(toolset: Toolset, path: str) -> str:
    return toolset.filesystem.read(path, limit=-1).content


def value(result: ToolResult[object]) -> Any:
    return result.value


# write_file


def test_writing_says_whether_the_file_is_new(toolset: Toolset) -> None:
    made = toolset.call("write_file", {"path": "new/é.txt", "content": "é\n"})
    again = toolset.call("write_file", {"path": "/new/é.txt", "content": "e"})

    assert made.message == "Created /new/é.txt (3 bytes)"
    assert (value(made).created, value(made).written_bytes) == (True, 3)
    assert value(again).created is False
    assert again.message == "Wrote /new/é.txt (1 byte)"
    assert value(again).new_mtime_ns == toolset.filesystem.stat("/new/é.txt").modified_ns
    assert text(toolset, "/new/é.txt") == "e"


def test_appending_adds_to_the_end_and_creates_a_missing_file(toolset: Toolset) -> None:
    toolset.call("write_file", {"path": "/log", "content": "a\n", "mode": "append"})
    result = toolset.call("write_file", {"path": "/log", "content": "b\n", "mode": "append"})

    assert text(toolset, "/log") == "a\nb\n"
    assert result.message == "Appended to /log (2 bytes)"


@pytest.mark.parametrize("mode", ["create", "create_new"])
def test_creating_refuses_existing_paths(toolset: Toolset, mode: str) -> None:
    result = toolset.call("write_file", {"path": "/src/app.py", "content": "x", "mode": mode})

    assert (result.status, result.error_code) == ("conflict", "already_exists")
    assert text(toolset, "/src/app.py").startswith("port")
    assert toolset.call("write_file", {"path": "/b", "content": "x", "mode": mode}).success


def test_parents_are_not_created_if_disabled(toolset: Toolset) -> None:
    result = toolset.call("write_file", {"path": "/no/b", "content": "x", "create_parents": False})

    assert (result.status, result.error_code) == ("not_found", "not_found")


# edit_file


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["category"] in ("exact", "error", "not_found")], ids=lambda case: case["id"]
)
def test_the_table_of_edits_is_answered(toolset: Toolset, case: dict[str, Any]) -> None:
    toolset.filesystem.write("/f", case["content"])

    result = toolset.call(
        "edit_file",
        {
            "path": "/f",
            "old_string": case["old"],
            "new_string": case["new"],
            "replace_all": case["replace_all"],
        },
    )

    assert (result.status, result.error_code) == (case["status"], case.get("error_code"))
    assert value(result).replacements == case["replacements"]
    assert value(result).applied == (case["status"] == "ok")
    assert list(value(result).lines) == case.get("lines", [])
    assert text(toolset, "/f") == (case["content"] if case["result"] is None else case["result"])


def test_an_edit_is_summarized_in_one_line(toolset: Toolset) -> None:
    one = {"file_path": "src/app.py", "old_string": "80", "new_string": "8080"}

    assert toolset.call("edit_file", one).message == "Updated /src/app.py (1 replacement)"
    assert toolset.call("edit_file", {**one, "replace_all": True}).message == "Updated /src/app.py (2 replacements)"


def test_a_refused_edit_names_the_file_the_lines_and_the_remedy(toolset: Toolset) -> None:
    toolset.filesystem.write("/f", "a\nb\na\n")

    result = toolset.call("edit_file", {"path": "f", "old_string": "a", "new_string": "c"})

    assert result.message == (
        "cannot edit '/f': the text to replace is in the file 2 times, on lines 1 and 3; give more of the text around "
        "the intended place, or set replace_all to change all of them"
    )


def test_the_record_of_an_edit_is_as_small_as_the_edit(toolset: Toolset) -> None:
    toolset.filesystem.write("/big", "é" * 100_000 + "needle" + "\n" * 1000)

    toolset.call("edit_file", {"path": "/big", "old_string": "needle", "new_string": "pin"}, call_id="edit")

    (event,) = [r.event for r in toolset.session.records if r.cause == "edit" and isinstance(r.event, FileSpliced)]
    assert event.pieces == ((200_000, 200_006, b"pin"),)
    assert text(toolset, "/big") == "é" * 100_000 + "pin" + "\n" * 1000


def test_an_edit_of_most_of_a_file_is_recorded_as_the_whole_file(toolset: Toolset) -> None:
    toolset.filesystem.write("/all", "x\n" * 10_000)

    result = toolset.call(
        "edit_file", {"path": "/all", "old_string": "x", "new_string": "yy", "replace_all": True}, call_id="edit"
    )

    assert result.message == "Updated /all (10000 replacements)"
    assert text(toolset, "/all") == "yy\n" * 10_000
    assert any(r.cause == "edit" and isinstance(r.event, FileWritten) for r in toolset.session.records)


def test_an_edit_keeps_the_mode_and_the_byte_order_mark(toolset: Toolset) -> None:
    toolset.filesystem.write("/run.sh", "\ufeffecho a\r\necho b\r\n")
    toolset.filesystem.chmod("/run.sh", 0o755)

    toolset.call("edit_file", {"path": "/run.sh", "old_string": "\ufeffecho a", "new_string": "echo c"})

    assert text(toolset, "/run.sh") == "\ufeffecho c\r\necho b\r\n"
    assert toolset.filesystem.stat("/run.sh").mode == 0o755


def test_a_file_that_is_not_text_is_not_edited(toolset: Toolset) -> None:
    toolset.filesystem.write_bytes("/bin", b"ab\xff")

    result = toolset.call("edit_file", {"path": "/bin", "old_string": "a", "new_string": "b"})

    assert (result.status, result.error_code) == ("error", "not_utf8")
    assert "offset 2" in result.message


def test_an_edit_beyond_the_size_limit_is_refused_before_it_is_made() -> None:
    toolset = Toolset(Session(session_id="s"), limits=Limits(max_file_size=1_000_000))
    toolset.filesystem.write("/a", "a" * 1_000_000)

    # The new text would take a terabyte.
    result = toolset.call(
        "edit_file", {"path": "/a", "old_string": "a", "new_string": "b" * 1_000_000, "replace_all": True}
    )
    one_more = toolset.call("edit_file", {"path": "/a", "old_string": "a" * 1_000_000, "new_string": "b" * 1_000_001})

    assert result.error_code == one_more.error_code == "file_too_large"
    shorter = {"path": "/a", "old_string": "aa", "new_string": "b", "replace_all": True}
    assert toolset.call("edit_file", shorter).success


contents = st.text(alphabet="aé\n𝄞\ufeff", max_size=30)


@given(contents, st.text(alphabet="aé\n𝄞", max_size=3), contents, st.booleans())
def test_the_tool_writes_the_result_of_the_pure_function(content: str, old: str, new: str, replace_all: bool) -> None:
    toolset = Toolset(Session(session_id="s"))
    toolset.filesystem.write("/f", content)

    result = toolset.call("edit_file", {"path": "/f", "old_string": old, "new_string": new, "replace_all": replace_all})

    expected = refused_or(lambda: replace(content, old, new, replace_all=replace_all))
    if isinstance(expected, EditError):
        assert (result.status, result.error_code) == (expected.status, expected.error_code)
        assert text(toolset, "/f") == content
    else:
        assert result.success
        assert value(result).replacements == expected.count
        assert text(toolset, "/f") == expected.text


def refused_or(edit: Callable[[], Replacement]) -> Replacement | EditError:
    try:
        return edit()
    except EditError as error:
        return error


# rm, mkdir, mv, cp


def test_removing_reports_how_much_was_removed(toolset: Toolset) -> None:
    assert toolset.call("rm", {"path": "src", "recursive": True}).message == "Removed /src (2 entries)"
    assert toolset.call("rm", {"path": "/empty"}).message == "Removed /empty"
    assert toolset.filesystem.list() == ()


def test_a_directory_with_entries_is_not_removed_by_accident(toolset: Toolset) -> None:
    result = toolset.call("rm", {"path": "/src"})

    assert (result.status, result.error_code) == ("error", "directory_not_empty")
    assert "recursive" in result.message


def test_a_directory_with_one_entry_is_refused_in_the_singular(toolset: Toolset) -> None:
    toolset.filesystem.write("/one/a", "")

    assert "delete its 1 entry first" in toolset.call("rm", {"path": "/one"}).message


def test_removing_a_link_keeps_its_target(toolset: Toolset) -> None:
    toolset.filesystem.symlink("src", "/link")

    assert toolset.call("rm", {"path": "/link"}).success
    assert toolset.filesystem.exists("/src/app.py")


def test_creating_a_directory_says_whether_it_is_new(toolset: Toolset) -> None:
    made = toolset.call("mkdir", {"path": "a/b"})
    again = toolset.call("mkdir", {"path": "/a/b"})

    assert (made.message, value(made).created) == ("Created /a/b", True)
    assert (again.message, value(again).created) == ("/a/b already exists", False)
    assert toolset.call("mkdir", {"path": "/a/b", "exist_ok": False}).error_code == "already_exists"
    assert toolset.call("mkdir", {"path": "/x/y", "parents": False}).status == "not_found"


def test_moving_and_copying_say_what_they_replaced(toolset: Toolset) -> None:
    copied = toolset.call("cp", {"source": "src/app.py", "destination": "/b.py"})
    moved = toolset.call("mv", {"source": "/b.py", "destination": "src/app.py"})

    assert (copied.message, value(copied).replaced) == ("Copied /src/app.py to /b.py", False)
    assert moved.message == "Moved /b.py to /src/app.py, replacing the file there"
    assert value(moved).replaced is True
    assert not toolset.filesystem.exists("/b.py")


def test_moving_to_the_same_path_changes_nothing(toolset: Toolset) -> None:
    before = toolset.filesystem.tree()

    result = toolset.call("mv", {"source": "/src/app.py", "destination": "src/./app.py"})

    assert result.message == "/src/app.py is already there"
    assert toolset.filesystem.tree() is before


def test_impossible_moves_have_their_own_status(toolset: Toolset) -> None:
    def codes(source: str, destination: str) -> tuple[str, str | None]:
        result = toolset.call("mv", {"source": source, "destination": destination})
        return result.status, result.error_code

    assert codes("/src", "/src/in") == ("error", "invalid_input")
    assert codes("/src/app.py", "/empty") == ("is_directory", "is_directory")
    assert codes("/src", "/src/app.py") == ("error", "invalid_input")
    assert codes("/empty", "/src/app.py") == ("error", "not_a_directory")
    assert codes("/none", "/x") == ("not_found", "not_found")
    assert codes("/", "/x") == ("error", "invalid_input")


@pytest.mark.parametrize(
    ("tool", "arguments", "verb"),
    [
        ("rm", {"path": "/gone"}, "delete"),
        ("mv", {"source": "/gone", "destination": "/b"}, "move"),
        ("cp", {"source": "/gone", "destination": "/b"}, "copy"),
    ],
)
def test_a_missing_entry_is_reported_by_the_change_that_was_wanted(
    toolset: Toolset, tool: str, arguments: dict[str, str], verb: str
) -> None:
    result = toolset.call(tool, arguments)
    assert (result.status, result.error_code) == ("not_found", "not_found")
    assert result.message.startswith(f"cannot {verb} '/gone': there is no such entry; list '/'")
