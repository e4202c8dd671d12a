"""`weakfs log`: a row for each call, and for each change outside calls."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread

import pytest

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.tools import DEFAULT_TOOLS, HISTORY_TOOLS, ToolCall

from .conftest import BEGINNING, TRANSCRIPTS, WORKSPACE, Run
from .places import call, written

LONG = "/packages/server/source/handlers/authentication/tokens/refresh.py"


def clocked(session_id: str = "calls") -> Session:
    return Session(session_id=session_id, clock=iter(range(BEGINNING, BEGINNING + 10**15, 10**9)).__next__)


def without_time(line: str) -> list[str]:
    """Return the words of a row without its day and time."""
    return [line[:3].strip(), *line[21:].split()]


@pytest.fixture
def worked(tmp_path: Path) -> Path:
    """Save a session in which calls, the program and a user made changes in turn."""
    session = clocked()
    files, tools = InMemoryFilesystem(session), Toolset(session)
    files.write("/src/app.py", "port = 80\nhost = 'a'\n")
    edit = {"path": "/src/app.py", "old_string": "port = 80", "new_string": "port = 8080\ndebug = False"}
    tools.call("edit_file", edit, call_id="call_1")
    tools.call("read_file", {"path": "/nope"}, call_id="call_2")
    session.snapshot("before")
    tools.call("rm", {"path": "/src", "recursive": True}, call_id="call_3")
    session.rollback("before", cause="ann")
    tools.call("edit_file", {**edit, "old_string": "missing"}, call_id="call_4")
    session.save(tmp_path / "s.json")
    return tmp_path / "s.json"


def test_each_call_has_one_row(run: Run, worked: Path) -> None:
    done = run("log", worked)
    assert done.status == 0
    assert done.lines[0][:19] == "     04-30 09:29:34"
    assert [without_time(line) for line in done.lines] == [
        ["", "file_written", "/src/app.py", "+2", "-0"],
        ["1", "edit_file", "/src/app.py", "+2", "-1", "ok"],
        ["2", "read_file", "/nope", "not_found"],
        ["", "snapshot", "before"],
        ["3", "rm", "/src", "+0", "-3", "ok"],
        ["", "rolled_back", "to", "before", "+3", "-0", "ann"],
        ["4", "edit_file", "/src/app.py", "edit_target_not_found"],
    ]


def test_a_rollback_names_the_snapshot_as_its_own_row_does(run: Run, tmp_path: Path) -> None:
    session = clocked()
    files = InMemoryFilesystem(session)
    for tag in ("same", "same", None, "other", "dropped"):
        files.append("/a", "x\n")
        session.rollback(session.snapshot(tag))
    session.drop_snapshot("dropped")
    session.save(tmp_path / "s.json")
    for options in ((), ("--records",)):
        lines = run("log", tmp_path / "s.json", *options).lines
        assert [line.rpartition("snapshot")[2].split() or line for line in lines if "snapshot" in line] == [
            ["same", "(calls/s1)"],
            ["same", "(calls/s2)"],
            ["calls/s3"],
            ["other"],
        ]
        rolled_back = [line for line in lines if "rolled_back" in line]
        assert [line.partition("  to ")[2].split() for line in rolled_back] == [
            ["same", "(calls/s1)"],
            ["same", "(calls/s2)"],
            ["calls/s3"],
            ["other"],
            ["calls/s5"],
        ]


def test_each_undo_redo_revert_and_restore_has_one_row(run: Run, tmp_path: Path) -> None:
    session = clocked()
    files, tools = InMemoryFilesystem(session), Toolset(session)
    for name in ("a", "b"):
        tools.call("write_file", {"path": f"/{name}", "content": "x\n"}, call_id=f"call {name}")
    session.snapshot("before")
    session.undo()
    session.redo()
    session.revert("call a")
    files.write("/c", "x\n")
    session.restore("before", paths=["/a"])
    session.undo(2)
    session.save(tmp_path / "s.json")

    rows = [without_time(line)[1:] for line in run("log", tmp_path / "s.json").lines[2:]]
    assert rows == [
        ["snapshot", "before"],
        ["undo", "call", "b", "+0", "-1"],
        ["redo", "undo", "call", "b", "+1", "-0"],
        ["revert", "call", "a", "+0", "-1"],
        ["file_written", "/c", "+1", "-0"],
        ["restore", "before", "+1", "-0"],
        ["undo", "restore", "before,", "14", "+0", "-2"],
    ]
    found = [one for one in run("log", tmp_path / "s.json", "--json").objects if one["type"] == "reversion"]
    assert [(one["how"], one["target"], one["added"], one["removed"]) for one in found[:3]] == [
        ("undo", "call b", 0, 1),
        ("redo", "undo call b", 1, 0),
        ("revert", "call a", 0, 1),
    ]
    assert [(one["first_record"], one["last_record"]) for one in found[:3]] == [(5, 7), (8, 10), (11, 13)]
    filtered = run("log", tmp_path / "s.json", "--cause", "revert call a").lines
    assert [without_time(line)[1:3] for line in filtered] == [["revert", "call"]]
    of_b = run("log", tmp_path / "s.json", "--path", "/b").lines
    assert [without_time(line)[1] for line in of_b][:3] == ["write_file", "undo", "redo"]
    assert len([line for line in run("log", tmp_path / "s.json", "--records").lines if "reverted" in line]) == 6


def test_an_undo_made_by_a_call_belongs_to_the_call(run: Run, tmp_path: Path) -> None:
    session = clocked()
    tools = Toolset(session, tools=[*DEFAULT_TOOLS, *HISTORY_TOOLS])
    tools.call("write_file", {"path": "/a", "content": "x\n"})
    tools.call("undo", {})
    session.save(tmp_path / "s.json")
    rows = [without_time(line) for line in run("log", tmp_path / "s.json").lines]
    assert [(row[0], row[1], row[-1]) for row in rows] == [("1", "write_file", "ok"), ("2", "undo", "ok")]


def test_rows_fit_80_columns(run: Run, tmp_path: Path) -> None:
    session = clocked()
    tools = Toolset(session)
    tools.call("write_file", {"path": LONG, "content": "x\n" * 12_345})
    tools.call("read_file", {"path": LONG, "output_mode": "require_inline"})
    tools.call("a_tool_with_a_very_long_name_that_nobody_knows", {"path": LONG + "\x1b\n"})
    session.save(tmp_path / "s.json")
    lines = run("log", tmp_path / "s.json").lines
    assert [line for line in lines if len(line) > 80] == []
    assert len(lines) == 3
    # The beginning of a path and its name are shown.
    assert all("/p" in line and "…" in line for line in lines)
    assert "refresh.py" in lines[0]


def test_run_and_log_number_calls_in_the_same_way(run: Run, tmp_path: Path) -> None:
    done = run("run", TRANSCRIPTS / "shop.jsonl", "--mount", WORKSPACE, "--save", tmp_path / "s.json", "--json")
    made = [(one["number"], one["id"], one["status"]) for one in done.objects if one["type"] == "call"]
    logged = [one for one in run("log", tmp_path / "s.json", "--json").objects if one["type"] == "call"]
    assert [(one["number"], one["id"], one["status"]) for one in logged] == made


def test_a_call_that_was_not_performed_has_no_number(run: Run, tmp_path: Path) -> None:
    envelope = {"sessionId": "s", "cwd": "/home/ann"}
    lines = []
    for number, path in enumerate(("/etc/passwd", "/home/ann/new.txt"), 1):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Write", "input": {"file_path": path, "content": "a\n"}}
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "done", "is_error": False}
        result = {"type": "create", "filePath": path, "content": "a\n", "structuredPatch": []}
        lines += [
            {"type": "assistant", "uuid": f"a{number}", **envelope, "message": {"role": "assistant", "content": [use]}},
            {
                "type": "user",
                "uuid": f"b{number}",
                **envelope,
                "message": {"role": "user", "content": [answer]},
                "toolUseResult": result,
            },
        ]
    transcript = tmp_path / "session.jsonl"
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run("run", transcript, "--save", tmp_path / "s.json", "--json")
    assert [(one["id"], one["number"]) for one in done.objects if one["type"] == "call"] == [("t1", None), ("t2", 1)]
    logged = [one for one in run("log", tmp_path / "s.json", "--json").objects if one["type"] == "call"]
    assert [(one["id"], one["number"]) for one in logged] == [("t2", 1)]


def test_a_failed_call_whose_changes_were_undone_shows_none(run: Run, tmp_path: Path) -> None:
    transcript = written(tmp_path / "t.jsonl", call("write_file", path="/a", content="x\n"), call("rm", path="/b"))
    run("run", transcript, "--save", tmp_path / "s.json")
    assert [(one["added"], one["removed"]) for one in run("log", tmp_path / "s.json", "--json").objects] == [
        (1, 0),
        (None, None),
    ]


def test_concurrent_calls_show_their_own_changes(run: Run, tmp_path: Path) -> None:
    session = clocked()
    tools = Toolset(session)
    with session.transaction(cause="outer"):
        InMemoryFilesystem(session).write("/first", "1\n")
    fork = session.fork("f")
    Toolset(fork).call("write_file", {"path": "/a", "content": "1\n2\n"}, call_id="in fork")
    tools.call("write_file", {"path": "/b", "content": "1\n2\n3\n"}, call_id="outside")
    session.merge(fork)
    Toolset(fork).call("write_file", {"path": "/a", "content": "1\n"}, call_id="again")
    session.merge(fork)
    session.save(tmp_path / "s.json")
    found = [one for one in run("log", tmp_path / "s.json", "--json").objects if one["type"] == "call"]
    assert [(one["id"], one["added"], one["removed"]) for one in found] == [
        ("outside", 3, 0),
        ("in fork", 2, 0),
        ("again", 0, 1),
    ]


def test_a_call_of_a_fork_made_right_after_a_merge_is_compared_with_the_merged_state(run: Run, tmp_path: Path) -> None:
    session = clocked()
    first = session.fork()
    InMemoryFilesystem(session).write("/ours", "1\n")
    InMemoryFilesystem(first).write("/theirs", "1\n")
    session.merge(first)
    second = session.fork()
    InMemoryFilesystem(session).write("/later", "1\n")
    Toolset(second).call("write_file", {"path": "/ours", "content": "1\n2\n"}, call_id="second")
    session.merge(second)
    session.save(tmp_path / "s.json")
    found = [one for one in run("log", tmp_path / "s.json", "--json").objects if one["type"] == "call"]
    assert [(one["id"], one["added"], one["removed"]) for one in found] == [("second", 1, 0)]


def test_a_call_merged_with_others_shows_only_its_own_changes(run: Run, tmp_path: Path) -> None:
    session = clocked()
    tools = Toolset(session)
    files = InMemoryFilesystem(session)
    with session.transaction(cause="slow"):
        files.write("/slow", "1\n")
        other = Thread(target=lambda: tools.call("write_file", {"path": "/b", "content": "1\n2\n"}, call_id="quick"))
        other.start()
        other.join()
    session.save(tmp_path / "s.json")
    found = run("log", tmp_path / "s.json", "--json").objects
    assert [(one["type"], one.get("id"), one["added"]) for one in found] == [
        ("call", "quick", 2),
        ("record", None, None),
        ("record", None, 1),
    ]


def test_calls_keep_their_numbers_when_old_records_are_compacted(run: Run, tmp_path: Path) -> None:
    session = clocked()
    tools = Toolset(session)
    for number in range(3):
        tools.call("write_file", {"path": f"/{number}", "content": "x\n"})
    session.compact(keep=2)
    session.save(tmp_path / "s.json")
    found = run("log", tmp_path / "s.json", "--json").objects
    assert [(one["number"], one["added"]) for one in found] == [(1, None), (2, None), (3, 1)]


def test_log_selects_calls_by_id_and_by_path(run: Run, worked: Path) -> None:
    def numbers(*options: str) -> list[int | None]:
        return [one.get("number") for one in run("log", worked, "--json", *options).objects]

    assert numbers("--cause", "call_2") == [2]
    assert numbers("--path", "/src/app.py") == [None, 1, 3, None]
    assert numbers("--path", "/other") == []
    assert numbers("-n", "2") == [None, 4]


def test_a_patch_is_shown_with_the_files_that_it_changed(run: Run, tmp_path: Path) -> None:
    session = clocked()
    patch = "*** Begin Patch\n*** Add File: a.md\n+a\n*** Add File: b.md\n+b\n*** End Patch"
    Toolset(session).call("apply_patch", {"patch": patch})
    session.save(tmp_path / "s.json")
    assert "/a.md and 1 more" in run("log", tmp_path / "s.json").out


def test_contents_kept_for_an_answer_have_no_row(run: Run, tmp_path: Path) -> None:
    session = clocked()
    tools = Toolset(session)
    tools.call("write_file", {"path": "/a", "content": "x" * 200_000})
    assert tools.call("read_file", {"path": "/a"}).success
    session.save(tmp_path / "s.json")
    assert [one["type"] for one in run("log", tmp_path / "s.json", "--json").objects] == ["call", "call"]
    assert len(session[ToolCall].all()) == 2


@pytest.mark.parametrize("options", [[], ["--records"]])
def test_log_shows_odd_names_on_one_line(run: Run, saved: Path, options: list[str]) -> None:
    out = run("log", *options, saved).out
    assert "\x1b" not in out
    assert "/line\\nbreak \\x1b[31mred.txt" in out


@pytest.mark.parametrize("options", [[], ["--records"]])
def test_log_of_an_empty_session_is_empty(run: Run, tmp_path: Path, options: list[str]) -> None:
    Session().save(tmp_path / "s.json")
    done = run("log", *options, tmp_path / "s.json")
    assert (done.status, done.out, done.err) == (0, "", "")
