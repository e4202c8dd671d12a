"""What `weakfs run` preserves of a recording: its times, its failures, and the files as they were before it."""

from __future__ import annotations

from pathlib import Path

from weakfs import Session
from weakfs.tools import ToolCalls

from .conftest import BEGINNING, Run
from .test_run_import import ROOT, Line, claude, edit, recorded

SECOND = 1_000_000_000


def timed(lines: list[Line]) -> list[Line]:
    """Give each line a time, one second after the previous line."""
    return [{**line, "timestamp": f"2026-04-30T09:29:{33 + number:02}.000Z"} for number, line in enumerate(lines)]


EDITS = [
    *edit("1", "app.py", "port = 80\n", "port = 80", "port = 8080"),
    *edit("2", "app.py", "port = 8080\n", "port = 8080", "port = 1"),
]
FAILED = claude("3", "Bash", "Error: Exit code 2", error="Exit code 2\nno rule to make x", command="make x")


def test_a_saved_session_has_the_times_of_the_recording(run: Run, tmp_path: Path) -> None:
    run("run", recorded(tmp_path, *timed(EDITS)), "--save", tmp_path / "s.json")

    session = Session.load(tmp_path / "s.json")
    assert [(call.started_at - BEGINNING) // SECOND for call in session[ToolCalls].all()] == [0, 2]
    assert [(call.ended_at - BEGINNING) // SECOND for call in session[ToolCalls].all()] == [1, 3]
    times = [record.at for record in session.records]
    assert times == sorted(times)
    assert {(at - BEGINNING) // SECOND for at in times} == {0, 1, 3}


def test_calls_in_the_plain_format_may_have_times(run: Run, tmp_path: Path) -> None:
    line = {"id": "c", "tool": "write_file", "arguments": {"path": "/a", "content": "x"}}

    run("run", recorded(tmp_path, {**line, "timestamp": "2026-04-30T09:29:34Z"}), "--save", tmp_path / "s.json")

    assert {record.at for record in Session.load(tmp_path / "s.json").records} == {BEGINNING + SECOND}


def test_a_snapshot_of_a_directory_is_taken_now(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    store = tmp_path / "store"

    run("run", recorded(tmp_path, *timed(EDITS)), "--root", place, "--store", store)

    snapshot = run("snapshots", place, "--store", store, "--json").objects[0]
    assert snapshot["tag"] == "start"
    assert not snapshot["at"].startswith("2026-04-30T09:29")


def test_the_diff_begins_with_the_files_as_they_were_before_the_recording(run: Run, tmp_path: Path) -> None:
    run("run", recorded(tmp_path, *EDITS), "--save", tmp_path / "s.json")

    assert run("diff", tmp_path / "s.json", "--names").lines == ["M  /app.py"]
    assert [line for line in run("diff", tmp_path / "s.json").lines if line[:1] in "+-"][2:] == [
        "-port = 80",
        "+port = 1",
    ]


def test_a_file_that_was_only_read_is_not_a_difference(run: Run, tmp_path: Path) -> None:
    file = {"filePath": f"{ROOT}/a", "content": "one\n", "numLines": 2, "startLine": 1, "totalLines": 2}
    read = claude("1", "Read", {"type": "text", "file": file}, file_path=f"{ROOT}/a")

    done = run("run", recorded(tmp_path, *read), "--save", tmp_path / "s.json", "--json")

    assert run("diff", tmp_path / "s.json", "--exit-code").status == 0
    assert done.objects[-1]["changes"] == "nothing differs"


def test_the_baseline_replaces_files_of_a_mounted_directory(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "app.py").write_text("port = 79\n")
    (place / "other").write_text("")

    run("run", recorded(tmp_path, *EDITS), "--mount", place, "--save", tmp_path / "s.json")

    assert run("diff", tmp_path / "s.json", "--names").lines == ["M  /app.py"]
    assert "-port = 80" in run("diff", tmp_path / "s.json").lines


def test_in_a_directory_the_diff_begins_with_the_baseline_too(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()

    run(
        "run", recorded(tmp_path, *EDITS), "--root", place, "--store", tmp_path / "store", "--save", tmp_path / "s.json"
    )

    assert (place / "app.py").read_text() == "port = 1\n"
    assert run("diff", tmp_path / "s.json", "--names").lines == ["M  /app.py"]


def test_a_recorded_failure_that_is_not_performed_is_reported_and_recorded(run: Run, tmp_path: Path) -> None:
    done = run("run", recorded(tmp_path, *FAILED), "--save", tmp_path / "s.json", "--json")

    call, total = done.objects[0], done.objects[-1]
    assert (call["performed"], call["recorded_success"]) == (None, False)
    assert call["recorded_error"] == "Exit code 2\nno rule to make x"
    assert total["statuses"] == {"recorded_failure": 1}
    assert done.status == 0
    (kept,) = Session.load(tmp_path / "s.json")[ToolCalls].all()
    assert (kept.tool, kept.status, kept.error_code) == ("Bash", "error", "recorded_failure")
    assert "no rule to make x" in kept.summary


def test_a_failure_of_an_unknown_tool_is_recorded_as_in_the_recording(run: Run, tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "c1", "name": "query_database", "input": {"sql": "drop"}}
    said = {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": "no such table"}
    lines: list[Line] = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [said]}]

    done = run("run", recorded(tmp_path, *lines), "--save", tmp_path / "s.json", "--strict")

    assert done.status == 0
    assert done.lines[1].strip() == "recorded_failure: no such table"
    (kept,) = Session.load(tmp_path / "s.json")[ToolCalls].all()
    assert (kept.tool, kept.status, kept.summary) == ("query_database", "error", "no such table")
