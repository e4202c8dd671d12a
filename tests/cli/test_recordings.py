"""Commands that inspect a session, directly on session files of Claude Code and Codex."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.transcripts.claude_code_model import ClaudeCode, Ways
from tests.transcripts.codex_model import Add, Chunk, Codex, Update
from weakfs import InMemoryFilesystem, Session

from .conftest import TRANSCRIPTS, Run

WRITTEN = b"host = 1\nport = 8080\n"


def jsonl(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(params=["claude-code", "codex"])
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A recording of two calls: one writes /app.py, the other changes its second line."""
    if request.param == "claude-code":
        claude = ClaudeCode(Ways())
        claude.write("app.py", "host = 1\nport = 80\n")
        claude.edit("app.py", "80", "8080", False)
        return jsonl(tmp_path / "recorded.jsonl", claude.lines)
    codex = Codex()
    codex.apply([Add("app.py", ("host = 1", "port = 80"))], "custom")
    codex.apply([Update("app.py", (Chunk((" host = 1", "-port = 80", "+port = 8080")),))], "custom")
    assert codex.disk["app.py"] == WRITTEN
    return jsonl(tmp_path / "recorded.jsonl", codex.lines)


def test_the_timeline_lists_the_calls_and_the_files_that_they_changed(run: Run, recording: Path) -> None:
    rows = run("timeline", recording, "--json").objects
    assert [row["kind"] for row in rows] == ["call", "call"]
    assert [[file["path"] for file in row["files"]] for row in rows] == [["/app.py"], ["/app.py"]]
    assert [(file["added"], file["removed"]) for row in rows for file in row["files"]] == [(2, 0), (1, 1)]


def test_blame_and_why_name_the_call_that_wrote_a_line(run: Run, recording: Path) -> None:
    lines = run("blame", recording, "/app.py", "--json").objects
    calls = [row["name"] for row in run("timeline", recording, "--json").objects]
    assert [line["call_id"] for line in lines] == calls
    assert calls[1] in run("why", recording, "/app.py:2").out


def test_the_page_shows_the_recording(run: Run, recording: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("timeline", recording, "--html", page).status == 0
    text = page.read_text()
    assert "port = 8080" in text or '"80"' in text
    assert '"session":"recorded"' in text


@pytest.mark.parametrize("command", ["log", "ls", "diff"])
def test_every_inspecting_command_accepts_a_recording(run: Run, recording: Path, command: str) -> None:
    assert run(command, recording).status == 0


def test_the_files_are_those_of_the_recording(run: Run, recording: Path) -> None:
    assert run("cat", recording, "/app.py").out.encode() == WRITTEN


def test_it_equals_the_session_that_run_saves(run: Run, recording: Path, tmp_path: Path) -> None:
    run("run", recording, "--save", tmp_path / "s.json", "--session-id", "recorded")
    shown, saved = (run("timeline", file, "--json").objects for file in (recording, tmp_path / "s.json"))
    for row in (*shown, *saved):
        # A recording may have no times.
        del row["at"], row["ended_at"]
    assert shown == saved


def test_a_preview_is_shown_and_a_change_is_refused(run: Run, recording: Path) -> None:
    before = recording.read_bytes()
    call = run("timeline", recording, "--json").objects[1]["name"]
    assert "+1 -1" in run("revert", recording, call, "--preview").out
    for arguments in (
        ["revert", recording, call],
        ["undo", recording],
        ["restore-files", recording, "1"],
        ["forget", recording, "/app.py", "--yes"],
    ):
        refused = run(*arguments)
        assert refused.status == 1
        assert "recorded session of another program" in refused.err
        assert f"weakfs run {recording} --save SESSION" in refused.err
    assert recording.read_bytes() == before


def test_a_recording_is_imported_into_storage(run: Run, recording: Path, tmp_path: Path) -> None:
    assert run("import", recording, tmp_path / "kept").status == 0
    with Session.open(tmp_path / "kept") as session:
        assert InMemoryFilesystem(session).read_bytes("/app.py").content == WRITTEN


def test_other_formats_of_recordings_are_accepted_too(run: Run) -> None:
    for name in ("shop.jsonl", "shop.anthropic.jsonl", "shop.openai-chat.jsonl"):
        assert len(run("log", TRANSCRIPTS / name).lines) > 10


def test_lines_that_cannot_be_read_are_counted(run: Run, recording: Path) -> None:
    with recording.open("a") as stream:
        stream.write('{"type": "assis\n')
    shown = run("log", recording)
    assert shown.status == 0
    assert "did not read 1 line of" in shown.err


@pytest.mark.parametrize("data", [b"", b"\n", b"text\n", b"{}", b'{"format":"weakfs-session"', b"\0\xff" * 50])
def test_a_file_that_is_neither_is_refused_as_before(run: Run, tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    refused = run("timeline", file)
    assert refused.status == 1
    assert refused.err.startswith(f"weakfs: cannot read the session {str(file)!r}: ")


def test_a_recording_without_calls_is_not_a_session(run: Run, tmp_path: Path) -> None:
    refused = run("timeline", jsonl(tmp_path / "f", [{"role": "user", "content": "hello"}]))
    assert refused.status == 1
