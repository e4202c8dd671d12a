"""Calls through a toolset: what is answered, what is raised, and what is recorded of each."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from tests.tools.probes import only_call, probe, toolset_with
from weakfs import DEFAULT_TOOLS, Registry, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.session import Session as AnySession
from weakfs.tools import Receipt, ToolCall, ToolCalls, ToolValidationError, build_tool_context, require_filesystem
from weakfs.tools.handlers import LsParams, ls_handler

# Answers


def test_without_a_filesystem_the_files_of_the_session_are_used_with_file_limits() -> None:
    session = Session()
    InMemoryFilesystem(session).write("/a", "x")

    toolset = Toolset(session, limits=evolve(Limits.tools(), max_file_size=10))

    assert toolset.call("exists", {"path": "/a"}).message == "/a exists (file)"
    assert toolset.filesystem.limits == Limits(max_file_size=10, max_grep_matches=None, max_node_count=1_000_000)


def test_a_tool_that_reads_and_writes_back_keeps_every_line_of_a_long_file() -> None:
    def shout(context: ToolContext) -> ToolResult[object]:
        fs = require_filesystem(context)
        fs.write("/long", fs.read("/long").content.upper())
        return ToolResult(f"{len(fs.grep('LINE'))} lines", None)

    toolset = toolset_with(probe(shout))
    toolset.filesystem.write("/long", "line\n" * 3000)

    result = toolset.call("probe", {})

    assert result.message == "3000 lines"
    assert toolset.filesystem.read("/long", limit=-1).content == "LINE\n" * 3000


def test_answers_are_bounded_by_the_limits_of_the_toolset() -> None:
    toolset = toolset_with(limits=Limits(default_read_limit=2, max_grep_matches=3))
    toolset.filesystem.write("/long", "line\n" * 3000)

    assert toolset.call("read_file", {"path": "/long"}).message.startswith("line\nline\n[lines 1 to 2 of 3000")
    assert toolset.call("grep", {"pattern": "line"}).summary_text == "3 matches found, and there are more"


def test_the_answer_for_an_unknown_tool_has_the_nearest_name() -> None:
    toolset = toolset_with()

    result = toolset.call("read_fil", {})

    assert (result.success, result.status, result.error_code) == (False, "error", "unknown_tool")
    assert result.message.startswith("there is no tool 'read_fil'; did you mean read_file? use one of ls, ")
    assert only_call(toolset.session).tool == "read_fil"


def test_the_answer_for_wrong_arguments_names_the_tool() -> None:
    toolset = toolset_with()

    result = toolset.call("rm", {"path": 5})

    assert result.message == "cannot call rm: path: expected text, got number 5"
    assert (result.status, result.error_code) == ("error", "invalid_arguments")
    assert type(result.value).__name__ == "RmReceipt"


@pytest.mark.parametrize("arguments", [None, [], "text", 5, {5: 6}, {"path": {"a": [None]}}])
def test_arguments_of_any_shape_are_answered_and_recorded(arguments: Any) -> None:
    toolset = toolset_with()

    assert toolset.call("ls", arguments).error_code == "invalid_arguments"
    assert only_call(toolset.session).error_code == "invalid_arguments"


def test_a_name_of_any_shape_is_answered_and_recorded() -> None:
    toolset = toolset_with()

    for name in (None, 5, ["ls"], "x" * 1_000_000, "a\nb\ud800"):
        result = toolset.call(name, {})  # type: ignore[arg-type]  # what a broken runtime might pass
        assert result.error_code == "unknown_tool"
        assert len(result.message) < 1000
    assert len(toolset.session[ToolCalls].all()) == 5


def test_the_message_of_a_failure_stays_short_whatever_the_model_sent() -> None:
    result = toolset_with().call("read_file", {"path": "/" + "x" * 1_000_000})

    assert not result.success
    assert len(result.message) <= 2000
    assert len(result.summary_text) <= 300


def test_a_tool_outside_the_toolset_cannot_be_called() -> None:
    toolset = Toolset(Session(), tools=[Tool("list", "", LsParams, ls_handler, read_only=True)])

    assert toolset.call("list", {}).success
    assert toolset.call("ls", {}).error_code == "unknown_tool"
    assert [tool.name for tool in toolset.tools] == ["list"]


def test_two_tools_with_the_same_name_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot use two tools named 'ls'"):
        toolset_with(DEFAULT_TOOLS[0])


def test_a_handler_without_a_filesystem_says_so() -> None:
    context = build_tool_context(session=Session())

    for tool in DEFAULT_TOOLS:
        names = {parameter.name: "x" for parameter in tool.parameters if parameter.required}
        with pytest.raises(ToolValidationError, match="there is no filesystem in this context"):
            tool.handler(tool.read_arguments(names), context=context)


# Records


def test_a_call_is_recorded_with_its_changes() -> None:
    toolset = toolset_with()
    session = toolset.session

    toolset.call("write_file", {"path": "a", "content": "x"}, call_id="c1", caller="ann")

    call = only_call(session)
    assert (call.call_id, call.tool, call.status, call.error_code) == ("c1", "write_file", "ok", None)
    assert (call.summary, call.caller) == ("Created /a (1 byte)", "ann")
    assert call.arguments == '{"path":"a","content":"x"}'
    assert call.read_arguments() == {"path": "a", "content": "x"}
    receipt: Any = call.read_receipt()
    assert (receipt["status"], receipt["path"], receipt["created"]) == ("ok", "/a", True)
    assert call.started_at < session.records[0].at < call.ended_at
    assert (call.first_seq, call.last_seq) == (1, 1)
    assert [record.cause for record in session.records] == ["c1", "c1", "c1"]
    assert session.records[1].event == call


def test_a_call_that_changes_nothing_has_no_records() -> None:
    toolset = toolset_with()

    toolset.call("ls", {})
    toolset.call("mkdir", {"path": "/"})

    assert [(call.first_seq, call.last_seq) for call in toolset.session[ToolCall].all()] == [(None, None)] * 2
    assert len(toolset.session.records) == 2


def test_long_arguments_and_receipts_are_kept_as_bytes() -> None:
    toolset = toolset_with()
    toolset.call("write_file", {"path": "a", "content": "é" * 1000})
    toolset.call("read_file", {"path": "a"})

    wrote, read = toolset.session[ToolCall].all()

    assert isinstance(wrote.arguments, bytes)
    assert isinstance(wrote.receipt, str)
    assert isinstance(read.receipt, bytes)
    assert wrote.read_arguments() == {"path": "a", "content": "é" * 1000}


def test_calls_without_an_id_get_numbered_ids_below_that_of_the_session() -> None:
    toolset = toolset_with()

    toolset.call("ls", {})
    toolset.call("ls", {}, call_id="mine")
    toolset.call("ls", {})

    assert [call.call_id for call in toolset.session[ToolCalls].all()] == ["s/call1", "mine", "s/call2"]
    assert len({call.call_id for call in _after_another_toolset(toolset.session)}) == 4


def _after_another_toolset(session: AnySession) -> tuple[ToolCall, ...]:
    Toolset(session).call("ls", {})
    return session[ToolCalls].all()


def test_a_rollback_of_the_session_keeps_the_calls() -> None:
    toolset = toolset_with()
    snapshot = toolset.session.snapshot()
    toolset.call("write_file", {"path": "a", "content": "x"})

    toolset.session.rollback(snapshot)

    assert not toolset.filesystem.exists("/a")
    assert len(toolset.session[ToolCalls].all()) == 1


def test_a_toolset_installs_its_slice_in_a_session_with_a_custom_registry() -> None:
    session = Session(registry=Registry.standard())

    Toolset(session).call("ls", {})
    Toolset(session).call("ls", {})

    assert len(session[ToolCalls].all()) == 2


# Results and receipts


def test_a_result_needs_only_a_message_and_a_value() -> None:
    ok = ToolResult("two\nlines", 2)
    no = ToolResult("no", None, success=False)

    assert (ok.success, ok.status, ok.error_code, ok.summary_text) == (True, "ok", None, "two\\nlines")
    assert (no.status, no.summary_text) == ("error", "no")


def test_every_receipt_can_describe_a_failure_with_common_fields_alone() -> None:
    for tool in DEFAULT_TOOLS:
        assert issubclass(tool.receipt, Receipt)
        tool.receipt(status="error", error_code="x", summary_text="y")


def test_every_read_only_tool_is_marked_as_such() -> None:
    reading = {"ls", "read_file", "glob", "grep", "stat", "exists"}

    assert {tool.name for tool in DEFAULT_TOOLS if tool.read_only} == reading
    assert {tool.name for tool in DEFAULT_TOOLS} - reading == {
        "write_file",
        "edit_file",
        "apply_patch",
        "rm",
        "mkdir",
        "mv",
        "cp",
        "shell",
    }
