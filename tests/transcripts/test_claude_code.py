"""Claude Code's session files: read, performed by our tools, and compared with what they record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.transcripts.claude_code_lines import answer, called, edited, use
from tests.transcripts.claude_code_model import ROOT, Line, as_jsonl
from tests.transcripts.imported import Import
from weakfs.transcripts import Source, read_transcript


def test_an_edit_is_checked_exactly_against_its_outcome(imported: Import) -> None:
    path = f"{ROOT}/app.py"
    done = imported(
        use("1", "Edit", file_path=path, old_string="80", new_string="8080"),
        answer("1", edited("app.py", "port = 80\n", "80", "8080", "-port = 80", "+port = 8080")),
    )

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/app.py") == "port = 8080\n"


def test_outside_changes_are_imported_before_the_call(imported: Import) -> None:
    path = f"{ROOT}/a"
    done = imported(
        use("1", "Write", file_path=path, content="one\n"),
        answer("1", {"type": "create", "filePath": path, "content": "one\n", "originalFile": None}),
        use("2", "Edit", file_path=path, old_string="two", new_string="three"),
        answer("2", edited("a", "one, two\n", "two", "three")),
    )

    assert done.agreements == [("agreed", "exactly")] * 2
    assert done.text("/a") == "one, three\n"
    assert [record.cause for record in done.session.records].count("import") == 1


def test_an_edit_without_its_original_is_checked_from_an_earlier_write(imported: Import) -> None:
    path = f"{ROOT}/a"
    done = imported(
        *called("1", "Write", file_path=path, content="one\n"),
        *called("2", "Edit", file_path=path, old_string="one", new_string="two"),
    )

    assert done.agreements == [("agreed", "exactly"), ("agreed", "rebuilt")]
    assert done.text("/a") == "two\n"


def test_an_edit_without_its_original_is_checked_from_an_earlier_full_read(imported: Import) -> None:
    path = f"{ROOT}/a"
    shown = "     1\u2192one\n     2\u2192two\n     3\u2192\n\n<system-reminder>\nMind the file.\n</system-reminder>\n"
    done = imported(
        use("1", "Read", file_path=path),
        answer("1", content=shown),
        *called("2", "Edit", file_path=path, old_string="one", new_string="1"),
    )

    assert done.agreements == [("agreed", "rebuilt"), ("agreed", "rebuilt")]
    assert done.text("/a") == "1\ntwo\n"


def test_a_file_is_rebuilt_from_parts_read_one_after_another(imported: Import) -> None:
    def part(first: int, *lines: str) -> dict[str, object]:
        told = {"content": "\n".join(lines), "numLines": len(lines), "startLine": first, "totalLines": 4}
        return {"type": "text", "file": {"filePath": f"{ROOT}/a", **told}}

    done = imported(
        use("1", "Read", file_path=f"{ROOT}/a", offset=2),
        answer("1", part(2, "two", "three", "")),
        use("2", "Read", file_path=f"{ROOT}/a", limit=2),
        answer("2", part(1, "one", "two")),
        *called("3", "Edit", file_path=f"{ROOT}/a", old_string="two", new_string="2"),
    )

    assert done.agreements == [("agreed", "rebuilt")] * 3
    assert done.text("/a") == "one\n2\nthree\n"


def test_a_part_without_a_first_line_begins_with_line_one(imported: Import) -> None:
    one = {"filePath": f"{ROOT}/a", "content": "one\ntwo", "numLines": 2, "totalLines": 4}
    two = {"filePath": f"{ROOT}/a", "content": "three\n", "numLines": 2, "totalLines": 4, "startLine": 3}
    done = imported(
        use("1", "Read", file_path=f"{ROOT}/a", limit=2),
        answer("1", {"type": "text", "file": one}),
        use("2", "Read", file_path=f"{ROOT}/a", offset=3),
        answer("2", {"type": "text", "file": two}),
    )

    assert done.baseline == {"/a": "one\ntwo\nthree\n"}


def test_only_the_parts_missing_from_the_first_read_are_completed(imported: Import) -> None:
    def read(id: str, text: str) -> list[Line]:
        file = {"filePath": f"{ROOT}/a", "content": text, "numLines": 1, "startLine": 1, "totalLines": 1}
        return [use(id, "Read", file_path=f"{ROOT}/a"), answer(id, {"type": "text", "file": file})]

    done = imported(
        *read("1", "one"),
        *read("2", "two"),
        use("3", "Edit", file_path=f"{ROOT}/a", old_string="two", new_string="2"),
        answer("3", edited("a", "two\n", "two", "2")),
    )

    assert done.baseline == {"/a": "one"}
    assert done.text("/a") == "2\n"


def test_an_edit_of_an_unknown_file_is_not_checked(imported: Import) -> None:
    done = imported(*called("1", "Edit", file_path=f"{ROOT}/a", old_string="one", new_string="1"))

    assert done.agreements == [("not_checked", "not_at_all")]
    assert not done.files.exists("/a")


def test_an_edit_of_an_unknown_file_is_checked_against_its_hunks(imported: Import) -> None:
    done = imported(
        use("1", "Edit", file_path=f"{ROOT}/a", old_string="one", new_string="1"),
        answer("1", edited("a", None, "one", "1", "-one", "+1", " two")),
    )

    assert done.agreements == [("agreed", "rebuilt")]
    assert done.text("/a") == "1\ntwo\n"


def test_an_edit_whose_text_is_not_in_the_rebuilt_file_is_not_checked(imported: Import) -> None:
    path = f"{ROOT}/a"
    done = imported(
        *called("1", "Write", file_path=path, content="one\n"),
        *called("2", "Edit", file_path=path, old_string="two", new_string="2"),
        *called("3", "Edit", file_path=path, old_string="one", new_string="1"),
    )

    assert done.agreements == [("agreed", "exactly"), *[("not_checked", "not_at_all")] * 2]


def test_an_edit_that_does_not_fit_its_recorded_original_is_not_checked(imported: Import) -> None:
    done = imported(
        use("1", "Edit", file_path=f"{ROOT}/a", old_string="two", new_string="three"),
        answer("1", edited("a", "one\n", "two", "three")),
    )

    assert done.agreements == [("not_checked", "not_at_all")]
    assert done.verdicts[0].detail == "what the file held after the call is not recorded"
    assert done.text("/a") == "one\n"


def test_an_edit_with_an_empty_old_string_creates_the_file(imported: Import) -> None:
    done = imported(
        use("1", "Edit", file_path=f"{ROOT}/a", old_string="", new_string="new\n"),
        answer("1", edited("a", None, "", "new\n")),
    )

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == "new\n"


def test_an_edit_with_an_empty_new_string_removes_the_line_break_too(imported: Import) -> None:
    done = imported(
        use("1", "Edit", file_path=f"{ROOT}/a", old_string="two", new_string=""),
        answer("1", edited("a", "one\ntwo\nthree\n", "two", "", " one", "-two", " three")),
    )

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == "one\nthree\n"


def test_hunks_take_precedence_over_strings(imported: Import) -> None:
    original = "say \u201chello\u201d\n"
    done = imported(
        use("1", "Edit", file_path=f"{ROOT}/a", old_string='say "hello"', new_string='say "bye"'),
        answer(
            "1",
            edited("a", original, original[:-1], 'say "bye"', f"-{original[:-1]}", "+say \u201cbye\u201d"),
        ),
    )

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == "say \u201cbye\u201d\n"


def test_each_of_several_edits_is_applied_to_the_result_of_the_previous_one(imported: Import) -> None:
    path, original = f"{ROOT}/a", 'say "a"\nsay \u201ca\u201d\n\ta\n'
    edit = {"old_string": 'say "a"', "new_string": "", "replace_all": False}
    lines = ['-say "a"', "-say \u201ca\u201d", "   a"]
    hunk = {"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 1, "lines": lines}
    told = {"edits": [edit, edit], "originalFileContents": original, "structuredPatch": [hunk]}

    done = imported(use("1", "MultiEdit", file_path=path, edits=[edit, edit]), answer("1", {"filePath": path, **told}))

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == "\ta\n"


def test_hunks_with_spaces_for_tabs_do_not_count_as_another_text(imported: Import) -> None:
    done = imported(
        use("1", "Edit", file_path=f"{ROOT}/a", old_string="\tone", new_string="\ttwo"),
        answer("1", edited("a", "\tone\n", "\tone", "\ttwo", "-  one", "+  two")),
    )

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == "\ttwo\n"


def test_an_edit_changed_by_the_user_is_made_as_carried_out(imported: Import) -> None:
    done = imported(
        use("1", "Edit", file_path=f"{ROOT}/a", old_string="one", new_string="two"),
        answer("1", edited("a", "one\n", "one", "three", "-one", "+three", userModified=True)),
    )

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == "three\n"


def test_a_mounted_file_with_other_line_endings_is_kept(imported: Import) -> None:
    done = imported(
        use("1", "Edit", file_path=f"{ROOT}/a", old_string="one\ntwo", new_string="1\n2"),
        answer("1", edited("a", "one\ntwo\n", "one\ntwo", "1\n2", "-one", "-two", "+1", "+2")),
        before={"/a": b"\xef\xbb\xbfone\r\ntwo\r\n"},
    )

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == "\ufeff1\r\n2\r\n"


def test_a_recorded_byte_order_mark_is_added(imported: Import) -> None:
    done = imported(
        use("1", "Edit", file_path=f"{ROOT}/a", old_string="\ufeff", new_string=""),
        answer("1", edited("a", "\ufeff\n", "\ufeff", "", "-\ufeff")),
        before={"/a": b"\n"},
    )

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == ""


def test_recorded_line_endings_are_used(imported: Import) -> None:
    done = imported(
        use("1", "Edit", file_path=f"{ROOT}/a", old_string="one\r\n", new_string="1\r\n"),
        answer("1", edited("a", "one\r\ntwo\r\n", "one\r\n", "1\r\n")),
    )

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == "1\r\ntwo\r\n"


def test_a_file_is_replaced_by_a_directory_that_was_created_meanwhile(imported: Import) -> None:
    lines = [*called("1", "Write", file_path=f"{ROOT}/a", content="x")]
    lines += [*called("2", "Write", file_path=f"{ROOT}/a/b/c", content="y")]
    done = imported(*lines)

    assert done.agreements == [("agreed", "exactly")] * 2
    assert done.text("/a/b/c") == "y"


def test_a_directory_with_entries_is_never_replaced(imported: Import) -> None:
    lines = [*called("1", "Write", file_path=f"{ROOT}/a", content="x")]
    done = imported(*lines, before={"/a/b": b"keep"})

    assert done.agreements == [("not_checked", "not_at_all")]
    assert done.text("/a/b") == "keep"


def test_a_recorded_failure_that_would_succeed_here_is_reported_and_changes_nothing(imported: Import) -> None:
    path = f"{ROOT}/a"
    error = "<tool_use_error>String to replace not found in file.</tool_use_error>"
    done = imported(
        *called("1", "Write", file_path=path, content="def f():\n        return 1\n"),
        use("2", "Edit", file_path=path, old_string="def f():\n    return 1", new_string="def g():\n    return 1"),
        answer("2", f"Error: {error}", error, is_error=True),
    )

    assert done.agreements == [("agreed", "exactly"), ("ours_succeeded", "rebuilt")]
    assert done.text("/a") == "def f():\n        return 1\n"


def test_an_answer_recorded_as_an_error_is_a_failure_also_without_is_error(imported: Import) -> None:
    path = f"{ROOT}/a"
    error = "<tool_use_error>String to replace not found in file.</tool_use_error>"
    failed = answer("2", f"Error: {error}", error)
    del failed["message"]["content"][0]["is_error"]
    done = imported(
        *called("1", "Write", file_path=path, content="one\n"),
        use("2", "Edit", file_path=path, old_string="two", new_string="three"),
        failed,
    )

    assert done.agreements == [("agreed", "exactly"), ("agreed", "rebuilt")]
    assert (done.verdicts[1].recorded_success, done.verdicts[1].recorded_error) == (False, error)


def test_a_recorded_failure_unexplained_by_the_known_text_is_not_checked(imported: Import) -> None:
    path = f"{ROOT}/a"
    done = imported(
        *called("1", "Write", file_path=path, content="one\n"),
        use("2", "Edit", file_path=path, old_string="one", new_string="two"),
        answer("2", content="String to replace not found in file.", is_error=True),
    )

    assert done.agreements[1] == ("not_checked", "not_at_all")
    assert done.text("/a") == "one\n"


@pytest.mark.parametrize(
    "reason",
    [
        "The user doesn't want to proceed with this tool use.",
        "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>",
        "<tool_use_error>File has been modified since read, either by the user or by a linter.</tool_use_error>",
        "InputValidationError: Edit failed",
    ],
)
def test_a_call_refused_by_the_user_is_not_performed(imported: Import, reason: str) -> None:
    done = imported(
        use("1", "Write", file_path=f"{ROOT}/a", content="x"), answer("1", f"Error: {reason}", reason, is_error=True)
    )

    assert done.agreements == [("not_checked", "not_at_all")]
    assert not done.files.exists("/a")


def test_a_file_missing_in_the_recording_is_missing_here(imported: Import) -> None:
    error = "<tool_use_error>File does not exist.</tool_use_error>"
    done = imported(
        use("1", "Read", file_path=f"{ROOT}/a"),
        answer("1", f"Error: {error}", error, is_error=True),
        before={"/a": b"of another time"},
    )

    assert done.agreements == [("agreed", "exactly")]
    assert not done.files.exists("/a")


def test_a_file_created_meanwhile_is_not_considered_missing(imported: Import) -> None:
    error = "File does not exist."
    file = {"filePath": f"{ROOT}/a", "content": "two", "numLines": 1, "startLine": 2, "totalLines": 3}
    done = imported(
        use("1", "Read", file_path=f"{ROOT}/a"),
        answer("1", f"Error: {error}", error, is_error=True),
        use("2", "Read", file_path=f"{ROOT}/a", offset=2, limit=1),
        answer("2", {"type": "text", "file": file}),
    )

    assert done.agreements == [("agreed", "exactly"), ("not_checked", "not_at_all")]


def test_paths_outside_the_session_are_reported_and_skipped(imported: Import) -> None:
    done = imported(
        *called("1", "Read", file_path="/etc/passwd"),
        *called("2", "Write", file_path=f"{ROOT}-other/a", content="x"),
        *called("3", "Write", file_path=f"{ROOT}/../secret", content="x"),
        *called("4", "Write", file_path="~/a", content="x"),
    )

    assert [one.agreement for one in done.verdicts] == ["outside"] * 4
    assert [entry.path for entry in done.files.walk()] == []


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (r"C:\Users\ann\shop", r"C:\Users\ann\shop\src\a.py"),
        (r"C:\Users\ann\shop", "c:/users/ann/shop/src/a.py"),
        (r"C:\Users\ann\shop", "/c/Users/ann/shop/src/a.py"),
        (r"\\server\share\shop", r"\\server\share\shop\src\a.py"),
        ("/private/tmp/shop", "/tmp/shop/src/a.py"),
        ("/tmp/shop/", "/tmp/shop/./src/../src/a.py"),
        ("/", "/src/a.py"),
        ("/shop", "src/a.py"),
    ],
)
def test_paths_of_other_machines_are_mapped_below_the_root(imported: Import, root: str, path: str) -> None:
    first = {**use("1", "Write", file_path=path, content="x"), "cwd": root}
    done = imported(first, answer("1"))

    assert done.agreements == [("agreed", "exactly")]
    assert done.files.read("/src/a.py").content == "x"


def test_the_root_stays_where_the_session_began(imported: Import) -> None:
    second = {**use("2", "Write", file_path="b", content="y"), "cwd": f"{ROOT}/src"}
    done = imported(*called("1", "Write", file_path=f"{ROOT}/a", content="x"), second, answer("2"))

    assert sorted(entry.path for entry in done.files.walk() if entry.is_file) == ["/a", "/src/b"]


def test_a_repeated_uuid_counts_once(imported: Import) -> None:
    lines = [*called("1", "Write", file_path=f"{ROOT}/a", content="x")]
    done = imported(*lines, *lines)

    assert done.agreements == [("agreed", "exactly")]
    assert done.summary.repeated_count == 2
    assert done.summary.skipped == ()


def test_concurrent_calls_are_made_in_the_order_of_their_answers(imported: Import) -> None:
    path = f"{ROOT}/a"
    both = use("1", "Write", file_path=path, content="first")
    both["message"]["content"] += use("2", "Write", file_path=path, content="second")["message"]["content"]
    done = imported(both, answer("2"), answer("1"))

    assert done.text("/a") == "first"


def test_lines_of_other_types_are_skipped(imported: Import) -> None:
    done = imported(
        {"type": "summary", "summary": "Shop", "leafUuid": "x"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "system", "subtype": "compact_boundary", "uuid": "c", "sessionId": "s1"},
        {"type": "progress", "uuid": "p", "data": {"message": use("9", "Write", file_path="/x", content="")}},
        {"type": "user", "uuid": "q", "cwd": ROOT, "message": {"role": "user", "content": "hello"}},
        use("1", "TodoWrite", todos=[]),
        answer("1", {"oldTodos": []}),
        use("2", "Bash", command="ls"),
        answer("2", {"stdout": "", "stderr": ""}),
    )

    assert [one.agreement for one in done.verdicts] == ["no_counterpart"] * 2
    assert done.summary.skipped == ()
    assert done.summary.known_count == done.summary.line_count


def test_streamed_output_is_read_like_session_files(imported: Import) -> None:
    begin = {"type": "system", "subtype": "init", "cwd": ROOT, "session_id": "s1", "tools": []}
    made = use("1", "Write", file_path=f"{ROOT}/a", content="x")
    done_line = answer("1")
    for line in (made, done_line):
        line["session_id"] = line.pop("sessionId")
    del made["cwd"]
    done_line["tool_use_result"] = {"type": "create", "filePath": f"{ROOT}/a", "content": "x", "originalFile": None}
    end = {"type": "result", "subtype": "success", "session_id": "s1"}
    done = imported(begin, made, done_line, end)

    assert done.agreements == [("agreed", "exactly")]
    assert done.text("/a") == "x"


def test_an_answer_without_a_call_is_skipped(imported: Import) -> None:
    done = imported(answer("0"), *called("1", "LS", path=ROOT), answer("1"))

    assert done.summary.skipped == ()
    assert len(done.verdicts) == 1


def test_an_incomplete_character_in_a_text_does_not_lose_the_line(tmp_path: Path) -> None:
    line = json.dumps(use("1", "Write", file_path=f"{ROOT}/a", content="HALF")).replace("HALF", "\\ud83d.\\ude00")
    (tmp_path / "t").write_text(line + "\n")

    transcript = read_transcript(tmp_path / "t")

    assert transcript.skipped == ()
    assert transcript.calls[0].arguments == {"file_path": f"{ROOT}/a", "content": "\ufffd.\ufffd"}


def test_a_call_says_where_it_was_made(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(as_jsonl([use("1", "LS", path=ROOT), answer("1", "- /home/ann/shop/\n")]))

    call = read_transcript(tmp_path / "t").calls[0]

    assert call.source == Source("claude-code", ROOT, ROOT)
    assert call.result == "- /home/ann/shop/\n"


def test_an_edit_that_grows_beyond_all_bounds_is_refused(imported: Import) -> None:
    path = f"{ROOT}/a"
    done = imported(
        *called("1", "Write", file_path=path, content="a" * 100_000),
        use("2", "Edit", file_path=path, old_string="a", new_string="b" * 100_000, replace_all=True),
        answer("2", edited("a", None, "a", "b" * 100_000, replaceAll=True)),
    )

    assert done.agreements[1] == ("not_checked", "not_at_all")
