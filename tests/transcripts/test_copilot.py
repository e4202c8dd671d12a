"""Copilot CLI's session files: read, performed by our tools, and compared with what they record."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transcripts.claude_code_lines import ANY
from tests.transcripts.claude_code_model import ROOT, Line, as_jsonl
from tests.transcripts.imported import Import
from weakfs.tools import ToolCalls
from weakfs.transcripts import Source, read_transcript


def event(id: str, kind: str, **data: object) -> Line:
    return {"type": kind, "id": id, "parentId": None, "timestamp": "2026-04-30T09:29:33.000Z", "data": data}


def start(cwd: str = ROOT) -> Line:
    context = {"cwd": cwd, "gitRoot": cwd, "branch": "main"}
    fields = {"sessionId": "s1", "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.80"}
    return event("start", "session.start", **fields, startTime="2026-04-30T09:29:33.000Z", context=context)


def call(id: str, tool: str, content: str = "done", *, error: str | None = None, **arguments: object) -> list[Line]:
    done: Line = {"toolCallId": id, "success": error is None}
    done |= {"result": {"content": content}} if error is None else {"error": {"message": error, "code": "failure"}}
    return [
        event(f"s{id}", "tool.execution_start", toolCallId=id, toolName=tool, arguments=arguments),
        event(f"c{id}", "tool.execution_complete", **done),
    ]


def test_calls_and_answers_are_read(tmp_path: Path) -> None:
    request = {"toolCallId": "1", "name": "view", "arguments": {"path": "a"}, "type": "function"}
    lines = [
        start(),
        event("u", "user.message", content="hello"),
        event("m", "assistant.message", messageId="m1", content="", toolRequests=[request]),
        *call("1", "view", "1. one", path=f"{ROOT}/a"),
        *call("2", "bash", error="it timed out", command="make"),
        event("e", "session.shutdown"),
    ]
    (tmp_path / "t").write_bytes(as_jsonl(lines))

    transcript = read_transcript(tmp_path / "t")

    assert transcript.formats == ("copilot",)
    assert (transcript.skipped, transcript.known_count) == ((), len(lines))
    assert [(one.tool, one.recorded, one.recorded_error) for one in transcript.calls] == [
        ("view", "1. one", False),
        ("bash", "it timed out", True),
    ]
    assert transcript.calls[0].source == Source("copilot", ROOT, ROOT)


def test_files_are_created_viewed_and_edited(imported: Import) -> None:
    done = imported(
        start(),
        *call("1", "create", path=f"{ROOT}/a", file_text="one\ntwo\n"),
        *call("2", "view", "1. one\n2. two\n3. ", path=f"{ROOT}/a"),
        *call("3", "edit", path=f"{ROOT}/a", old_str="two", new_str="2"),
        *call("4", "view", "2. 2", path=f"{ROOT}/a", view_range=[2, 2]),
        *call("5", "edit", path=f"{ROOT}/a", old_str="one", new_str=""),
    )

    assert done.text("/a") == "\n2\n"
    assert [agreement for agreement, _ in done.agreements] == ["agreed"] * 5
    assert done.baseline == {}


def test_an_existing_file_is_in_the_baseline(imported: Import) -> None:
    done = imported(
        start(),
        *call("1", "edit", path="a", old_str="one", new_str="1"),
        *call("2", "view", "1. 1\n2. two", path=f"{ROOT}/a"),
    )

    assert done.baseline == {"/a": "one\ntwo"}
    assert done.text("/a") == "1\ntwo"


def test_the_commands_of_the_earlier_editor_are_its_tools(imported: Import) -> None:
    tool = "str_replace_editor"
    done = imported(
        start(),
        *call("1", tool, command="create", path=f"{ROOT}/a", file_text="one\n"),
        *call("2", tool, command="str_replace", path=f"{ROOT}/a", old_str="one", new_str="1"),
        *call("3", tool, command="insert", path=f"{ROOT}/a", insert_line=1, new_str="2"),
    )

    assert [agreement for agreement, _ in done.agreements] == ["agreed", "agreed", "no_counterpart"]
    assert done.text("/a") == "1\n"


def test_the_edited_one_of_several_places_is_not_guessed(imported: Import) -> None:
    lines = [start(), *call("1", "create", path="a", file_text="x x\n")]

    done = imported(*lines, *call("2", "edit", path="a", old_str="x", new_str="y"))

    assert done.agreements[1] == ("not_checked", "not_at_all")


@pytest.mark.parametrize("content", ["a\nb", "1. one\n3. three", "0. zero", "", "1. one\n[truncated]"])
def test_text_without_line_numbers_is_not_mistaken_for_a_file(imported: Import, content: str) -> None:
    done = imported(start(), *call("1", "view", content, path=ROOT))

    assert done.agreements == [("not_checked", "not_at_all")]
    assert done.contents() == {}


def test_a_missing_file_and_a_refusal_are_failures(imported: Import) -> None:
    missing = f"Path {ROOT}/a does not exist. Please provide a valid path."
    done = imported(
        start(),
        *call("1", "view", error=missing, path=f"{ROOT}/a"),
        *call("2", "create", error="The user rejected this tool call.", path=f"{ROOT}/a", file_text="x"),
        *call("3", "bash", error="timeout", command="make"),
    )

    assert [agreement for agreement, _ in done.agreements] == ["agreed", "not_checked", "no_counterpart"]
    assert [one.status for one in done.session[ToolCalls].all()][1:] == ["error", "error"]
    assert done.contents() == {}


def test_the_session_may_change_its_directory(imported: Import) -> None:
    done = imported(
        start("/x/repo"),
        event("d", "session.context_changed", cwd="/x/repo-feature", branch="feature"),
        *call("1", "create", path="a", file_text="x"),
    )

    assert done.contents() == {"/.worktrees/repo-feature/a": "x"}


def test_a_repeated_event_counts_once(imported: Import) -> None:
    lines = [start(), *call("1", "create", path="a", file_text="x")]

    done = imported(*lines, *lines)

    assert len(done.verdicts) == 1
    assert done.summary.repeated_count == 3


def test_texts_are_doubtful_after_a_rewind_of_the_program(imported: Import) -> None:
    done = imported(
        start(),
        *call("1", "create", path="a", file_text="one\n"),
        event("r", "session.snapshot_rewind", upToEventId="s1", eventsRemoved=2),
        *call("2", "edit", error="old_str was not found", path="a", old_str="one", new_str="1"),
    )

    assert [agreement for agreement, _ in done.agreements] == ["agreed", "no_counterpart", "not_checked"]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "1. x", f"{ROOT}/a", "\0", "{"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["content", "cwd", "path"]), inner),
    max_leaves=6,
)
FIELDS = ["path", "file_text", "old_str", "new_str", "view_range", "command", "timeout"]
TOOLS = st.sampled_from(["view", "create", "edit", "bash", "str_replace_editor", "task"])


@ANY
@given(st.data())
def test_no_value_anywhere_makes_the_importer_raise(imported: Import, data: st.DataObject) -> None:
    fields = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, ANYTHING | st.just(f"{ROOT}/a")))
    started = {"toolCallId": "1", "toolName": data.draw(TOOLS | ANYTHING), "arguments": data.draw(fields | ANYTHING)}
    completed = st.fixed_dictionaries({}, optional=dict.fromkeys(["success", "result", "error"], ANYTHING))
    lines = [
        event("0", "session.start", context=data.draw(ANYTHING | st.just({"cwd": ROOT}))),
        event("1", "tool.execution_start", **started),
        event("2", "tool.execution_complete", toolCallId="1", **data.draw(completed)),
    ]

    done = imported(*lines)

    assert len(done.verdicts) <= 1
