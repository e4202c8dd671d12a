"""`weakfs run`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.forked_command import run_command
from weakfs import InMemoryFilesystem, Session
from weakfs.tools import ToolCall

from .conftest import TRANSCRIPTS, WORKSPACE, Run
from .places import call, written

EXPECTED: dict[str, Any] = json.loads((TRANSCRIPTS / "shop.expected.json").read_bytes())
FORMS = sorted(path.name for path in TRANSCRIPTS.glob("shop*.jsonl"))


@pytest.mark.parametrize("name", FORMS)
def test_a_recorded_session_is_performed_from_each_format(run: Run, tmp_path: Path, name: str) -> None:
    done = run("run", TRANSCRIPTS / name, "--mount", WORKSPACE, "--save", tmp_path / "s.json", "--json")
    assert (done.status, done.err) == (0, "")
    kinds = [one["type"] for one in done.objects]
    assert kinds == ["mount", *["call"] * EXPECTED["calls"], "saved", "total"]
    failed = {one["id"] for one in done.objects if one["type"] == "call" and not one["success"]}
    assert failed == set(EXPECTED["failures"])
    assert done.objects[-1]["failed"] == len(failed)
    files = InMemoryFilesystem(Session.load(tmp_path / "s.json"))
    assert {entry.path[1:] for entry in files.walk() if entry.is_file} == set(EXPECTED["sha256"])


def test_each_call_has_its_line(run: Run, tmp_path: Path) -> None:
    transcript = written(
        tmp_path / "t.jsonl",
        call("write_file", path="/a.txt", content="a\n"),
        call("grep", pattern="a", path="/"),
        call("read_file", path="/b.txt"),
        call("mv", source="/a.txt", destination="/c.txt"),
    )
    done = run("run", transcript)
    assert done.status == 0
    assert [line.split()[:3] for line in done.lines[:3]] == [
        ["1", "ok", "write_file"],
        ["2", "ok", "grep"],
        ["3", "failed", "read_file"],
    ]
    assert "/a.txt" in done.lines[0]
    assert "a in /" in done.lines[1]
    assert done.lines[2].endswith("/b.txt")
    assert done.lines[3].strip().startswith("not_found: cannot read '/b.txt': ")
    assert all(part in done.lines[4] for part in ("4", "ok", "mv", "/a.txt", "/c.txt"))
    assert done.lines[5] == "total"
    assert "4 (1 not_found, 3 ok)" in done.lines[6]


def test_calls_of_the_plain_form_need_no_id(run: Run, tmp_path: Path) -> None:
    write: dict[str, object] = {"tool": "write_file", "arguments": {"path": "/a", "content": "a"}}
    transcript = written(tmp_path / "t.jsonl", write, {"tool": "ls", "arguments": {}})

    done = run("run", transcript, "--save", tmp_path / "s.json", "--json")

    assert (done.status, done.err) == (0, "")
    assert [one["type"] for one in done.objects] == ["call", "call", "saved", "total"]
    assert (done.objects[-1]["calls"], done.objects[-1]["not_read"]) == (2, 0)
    calls = Session.load(tmp_path / "s.json")[ToolCall].all()
    assert [one.call_id.rpartition("/")[2] for one in calls] == ["call1", "call2"]


def test_a_transcript_may_come_through_a_pipe() -> None:
    line = json.dumps(call("write_file", path="/a.txt", content="a"))
    done = run_command("run", "-", "--json", given=line)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.splitlines()[0])["success"] is True


def test_a_failed_call_is_rolled_back(run: Run, tmp_path: Path) -> None:
    transcript = written(
        tmp_path / "t.jsonl",
        call("write_file", path="/a.txt", content="one two"),
        call("edit_file", path="/a.txt", old_string="three", new_string="four"),
    )
    assert run("run", transcript, "--save", tmp_path / "s.json").status == 0
    session = Session.load(tmp_path / "s.json")
    assert InMemoryFilesystem(session).read("/a.txt").content == "one two"
    assert [one.status for one in session[ToolCall].all()] == ["ok", "not_found"]


def test_strict_reports_that_a_call_failed(run: Run, tmp_path: Path) -> None:
    good = written(tmp_path / "good.jsonl", call("ls", path="/"))
    bad = written(tmp_path / "bad.jsonl", call("ls", path="/nowhere"))
    assert run("run", good, "--strict").status == 0
    assert run("run", bad).status == 0
    assert run("run", bad, "--strict").status == 3


def test_unreadable_lines_are_reported_and_the_rest_is_performed(run: Run, tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    transcript.write_text('{"tool": "write_file", "id": "1", "arguments": {"path": "/a", "content": ""}}\nnot json\n')
    done = run("run", transcript, "--save", tmp_path / "s.json")
    assert done.status == 1
    assert done.lines[0].startswith("line 2 ")
    assert Session.load(tmp_path / "s.json")[ToolCall].all()[0].status == "ok"
    skipped = [one for one in run("run", transcript, "--json").objects if one["type"] == "skipped"]
    assert [one["line"] for one in skipped] == [2]


@pytest.mark.parametrize("path", sorted((TRANSCRIPTS / "damaged").glob("*.jsonl")), ids=lambda path: path.stem)
def test_no_damage_stops_a_run(run: Run, path: Path) -> None:
    done = run("run", path, "--json")
    assert done.status in (0, 1)
    assert done.err == ""
    assert done.objects[-1]["type"] == "total"
    assert done.status == bool([one for one in done.objects if one["type"] == "skipped"])


def test_a_call_with_unreadable_arguments_is_recorded_as_failed(run: Run, tmp_path: Path) -> None:
    transcript = TRANSCRIPTS / "damaged" / "bad-arguments.jsonl"
    done = run("run", transcript, "--save", tmp_path / "s.json")
    assert done.status == 0
    assert "invalid_arguments: the arguments are not JSON" in done.lines[1]
    calls = Session.load(tmp_path / "s.json")[ToolCall].all()
    assert [one.status for one in calls].count("error") == 7
    summaries = [one["summary"] for one in run("run", transcript, "--json").objects if one["type"] == "call"]
    assert summaries[0].startswith("the arguments are not JSON")


def test_files_that_a_mount_skips_are_named(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    os.mkfifo(folder / "pipe")
    transcript = written(tmp_path / "t.jsonl", call("ls"))
    done = run("run", transcript, "--mount", folder)
    assert done.status == 1
    assert done.lines[:2] == [f"mounted {folder}: 1 file, 1 byte", "left out /pipe: is a FIFO"]
    assert run("run", transcript, "--mount", folder, "--exclude", "pipe").status == 0


def test_saving_again_replaces_the_session(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "s.json"
    first = written(tmp_path / "first.jsonl", call("write_file", path="/first", content=""))
    second = written(tmp_path / "second.jsonl", call("write_file", path="/second", content=""))
    assert run("run", first, "--save", target).status == 0
    assert run("run", second, "--save", target, "--session-id", "again").status == 0
    session = Session.load(target)
    assert session.session_id == "again"
    assert [entry.name for entry in InMemoryFilesystem(session).list()] == ["second"]


def test_saving_never_replaces_a_file_that_is_not_a_session(run: Run, tmp_path: Path) -> None:
    transcript = written(tmp_path / "t.jsonl", call("ls"))
    notes = tmp_path / "notes.txt"
    notes.write_text("keep me")
    assert run("run", transcript, "--save", notes).status == 1
    assert notes.read_text() == "keep me"
    before = transcript.read_bytes()
    done = run("run", transcript, "--save", transcript)
    assert (done.status, done.out) == (2, "")
    assert transcript.read_bytes() == before


def test_a_bug_in_a_tool_is_reported_and_the_next_call_is_made(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> object:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(InMemoryFilesystem, "glob", broken)
    transcript = written(tmp_path / "t.jsonl", call("glob", pattern="*"), call("ls"))
    done = run("run", transcript)
    assert done.status == 1
    assert done.lines[0].split() == ["1", "broken", "glob", "*"]
    assert "RuntimeError: no such luck" in done.lines[1]
    assert done.lines[2].split()[:3] == ["2", "ok", "ls"]


def test_file_names_cannot_control_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = "/\x1b]0;owned\x07\nline"
    transcript = written(
        tmp_path / "t.jsonl",
        call("write_file", path=evil, content=""),
        call("read_file", path=evil + "2"),
        call("\x1b[31mevil"),
    )
    out = run("run", transcript).out
    assert "\x1b" not in out
    assert "\x07" not in out
