"""Transcripts that are not one object per line: several on a line, arrays, and objects that span lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.forked_command import run_command
from tests.transcripts.claude_code_lines import answer, use
from tests.transcripts.claude_code_model import ROOT
from weakfs.transcripts import Transcript, read_transcript

FIRST = {"id": "c1", "tool": "ls", "arguments": {}}
SECOND = {"id": "c2", "tool": "stat", "arguments": {"path": "/\u00e9"}}


def read(folder: Path, text: str) -> Transcript:
    path = folder / "t.jsonl"
    path.write_text(text)
    return read_transcript(path)


def tools(transcript: Transcript) -> list[tuple[str, int]]:
    return [(call.tool, call.line) for call in transcript.calls]


def test_two_objects_on_one_line_are_both_read(tmp_path: Path) -> None:
    done = read(tmp_path, f"{json.dumps(FIRST)}{json.dumps(SECOND)}\n{json.dumps(FIRST)} {json.dumps(SECOND)}\n")

    assert tools(done) == [("ls", 1), ("stat", 1), ("ls", 2), ("stat", 2)]
    assert [call.arguments for call in done.calls][1::2] == [{"path": "/\u00e9"}] * 2
    assert done.skipped == ()


def test_a_call_and_its_answer_on_one_line_belong_together(tmp_path: Path) -> None:
    call, said = use("1", "Write", file_path=f"{ROOT}/a", content="x"), answer("1", content="written")

    done = read(tmp_path, json.dumps(call) + json.dumps(said) + json.dumps(call) + "\n")

    assert [(one.tool, one.recorded) for one in done.calls] == [("Write", "written")]
    assert done.repeated_count == 1


def test_trailing_text_after_the_objects_on_a_line_is_reported_once(tmp_path: Path) -> None:
    done = read(tmp_path, f"{json.dumps(FIRST)} oops {json.dumps(SECOND)}\n{json.dumps(SECOND)}\n")

    assert tools(done) == [("ls", 1), ("stat", 2)]
    assert [(one.line, one.reason.partition(":")[0]) for one in done.skipped] == [(1, "not JSON")]


def test_a_truncated_object_after_another_is_reported(tmp_path: Path) -> None:
    done = read(tmp_path, json.dumps(FIRST) + json.dumps(SECOND)[:-5])

    assert tools(done) == [("ls", 1)]
    assert "cut off" in done.skipped[0].reason


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_array_of_messages_is_read(tmp_path: Path, indent: int | None, mark: str) -> None:
    done = read(tmp_path, mark + json.dumps([SECOND, FIRST, SECOND], indent=indent, ensure_ascii=False) + "\n")

    assert [call.tool for call in done.calls] == ["stat", "ls", "stat"]
    assert done.calls[2].arguments == SECOND["arguments"]
    assert done.skipped == ()


def test_calls_of_a_document_have_the_numbers_of_their_first_lines(tmp_path: Path) -> None:
    assert tools(read(tmp_path, json.dumps([FIRST, SECOND], indent=1))) == [("ls", 2), ("stat", 7)]


def test_objects_written_over_many_lines_are_read_one_after_another(tmp_path: Path) -> None:
    text = "\n".join(json.dumps(one, indent=2) for one in (FIRST, SECOND))

    assert tools(read(tmp_path, text)) == [("ls", 1), ("stat", 6)]


@pytest.mark.parametrize("indent", [None, 2])
def test_the_messages_of_a_request_are_read(tmp_path: Path, indent: int | None) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "empty"},
    ]

    done = read(tmp_path, json.dumps({"model": "m", "messages": messages}, indent=indent))

    assert [(one.tool, one.recorded) for one in done.calls] == [("ls", "empty")]


def test_a_document_that_cannot_be_read_is_reported_once(tmp_path: Path) -> None:
    lines = json.dumps([FIRST, SECOND] * 20, indent=2).splitlines()
    lines[2] = lines[2].replace('"', "", 1)

    done = read(tmp_path, "\n".join(lines))

    assert done.calls == ()
    assert [one.line for one in done.skipped] == [3]
    assert "one JSON document" in done.skipped[0].reason


def test_a_truncated_document_is_reported_once(tmp_path: Path) -> None:
    text = "[\n" + ",\n".join([json.dumps(FIRST)] * 5)

    done = read(tmp_path, text)

    assert len(done.skipped) == 1
    assert "one JSON document" in done.skipped[0].reason


def test_lines_after_a_damaged_first_one_are_still_read(tmp_path: Path) -> None:
    done = read(tmp_path, f'{{"id": "c0", \n{json.dumps(FIRST)}\n{json.dumps(SECOND)}\n')

    assert tools(done) == [("ls", 2), ("stat", 3)]
    assert [one.line for one in done.skipped] == [1]


def test_a_document_may_come_through_a_pipe(tmp_path: Path) -> None:
    done = run_command("run", "-", "--json", given=json.dumps([FIRST], indent=2))

    assert json.loads(done.stdout.splitlines()[0])["tool"] == "ls"


def test_a_run_reports_an_unreadable_document_once(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([FIRST, SECOND], indent=2)[:-20])

    done = run_command("run", str(path))

    assert done.returncode == 1
    assert len(done.stdout.splitlines()) + len(done.stderr.splitlines()) == 1
    assert "one JSON document" in done.stderr
