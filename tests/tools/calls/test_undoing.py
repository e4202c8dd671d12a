"""Calls that fail by themselves or because of others: all of their changes are undone, and no others."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from attrs import frozen

from tests.tools.probes import only_call, probe, toolset_with, writing
from weakfs import DEFAULT_TOOLS, MergeConflict, ToolContext, ToolResult, Toolset, event
from weakfs.reducers.events import FileWritten
from weakfs.session import ConflictEntry, RolledBack
from weakfs.tools import ToolCall, ToolCalls

# Failures


def test_a_failed_call_is_rolled_back_and_its_records_stay() -> None:
    def fail(context: ToolContext) -> ToolResult[object]:
        writing(context)
        raise OSError("the disk is gone")

    toolset = toolset_with(probe(fail))
    before = toolset.filesystem.tree()

    result = toolset.call("probe", {}, call_id="c1")

    assert (result.success, result.status, result.error_code) == (False, "error", "io_error")
    assert result.message == "the disk is gone"
    assert toolset.filesystem.tree() is before
    written, rolled_back, called = (record.event for record in toolset.session.records)
    assert isinstance(written, FileWritten)
    assert isinstance(rolled_back, RolledBack)
    assert (called.first_seq, called.last_seq, called.error_code) == (1, 2, "io_error")


def test_an_unsuccessful_result_is_rolled_back_too() -> None:
    def refuse(context: ToolContext) -> ToolResult[object]:
        writing(context)
        return ToolResult("no", "value", success=False, error_code="not_today")

    toolset = toolset_with(probe(refuse))

    result = toolset.call("probe", {})

    assert (result.message, result.value, result.status, result.error_code) == ("no", "value", "error", "not_today")
    assert not toolset.filesystem.exists("/probe")
    assert only_call(toolset.session).receipt == '"value"'


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("error", [KeyError("bug"), TypeError("bug"), RecursionError("bug"), KeyboardInterrupt()])
def test_a_bug_in_a_handler_is_rolled_back_recorded_and_raised(error: BaseException, read_only: bool) -> None:
    def break_down(context: ToolContext) -> ToolResult[object]:
        if not read_only:
            writing(context)
        raise error

    toolset = toolset_with(probe(break_down, read_only=read_only))

    with pytest.raises(type(error)) as caught:
        toolset.call("probe", {}, call_id="c1")

    assert caught.value is error
    assert not toolset.filesystem.exists("/probe")
    call = only_call(toolset.session)
    assert (call.status, call.error_code) == ("error", "internal_error")
    assert call.summary.startswith(type(error).__name__)
    assert (call.first_seq, call.last_seq) == ((None, None) if read_only else (1, 2))
    assert toolset.call("ls", {}).success


def test_a_handler_that_returns_something_other_than_a_result_is_a_bug() -> None:
    def forget(context: ToolContext) -> ToolResult[object]:
        writing(context)
        return "done"  # type: ignore[return-value]  # the mistake that this is about

    toolset = toolset_with(probe(forget))

    with pytest.raises(TypeError, match="the handler of 'probe' returned a str; return a ToolResult"):
        toolset.call("probe", {})
    assert not toolset.filesystem.exists("/probe")


def test_a_call_past_its_deadline_is_rolled_back() -> None:
    def dawdle(context: ToolContext) -> ToolResult[object]:
        writing(context)
        for _ in range(100):
            context.session.now()
        return ToolResult("done", None)

    toolset = toolset_with(probe(dawdle))

    result = toolset.call("probe", {}, deadline=toolset.session.now() + 50)

    assert (result.status, result.error_code) == ("error", "deadline_exceeded")
    assert "nothing was changed" in result.message
    assert not toolset.filesystem.exists("/probe")
    assert toolset.call("probe", {}, deadline=toolset.session.now() + 1000).success


@pytest.mark.parametrize("name", ["ls", "write_file"])
def test_a_call_whose_deadline_has_passed_does_not_begin(name: str) -> None:
    toolset = toolset_with()
    arguments = {"path": "/"} if name == "ls" else {"path": "/a", "content": ""}

    assert toolset.call(name, arguments, deadline=0).error_code == "deadline_exceeded"
    assert len(toolset.session.records) == 1


def test_a_timeout_error_of_the_handler_itself_is_a_different_error() -> None:
    def wait(context: ToolContext) -> ToolResult[object]:
        raise TimeoutError("no answer from the server")

    assert toolset_with(probe(wait)).call("probe", {}).error_code == "timed_out"


def test_a_call_inside_a_transaction_is_rolled_back_with_it() -> None:
    toolset = toolset_with()
    session = toolset.session

    def change_and_fail() -> None:
        with session.transaction(cause="user"):
            toolset.call("write_file", {"path": "a", "content": "x"}, call_id="c1")
            assert not toolset.call("rm", {"path": "/none"}, call_id="c2").success
            assert toolset.filesystem.exists("/a")
            raise RuntimeError("the user changed their mind")

    with pytest.raises(RuntimeError):
        change_and_fail()

    assert not toolset.filesystem.exists("/a")
    assert [call.call_id for call in session[ToolCalls].all()] == ["c1", "c2"]


def test_a_tool_may_call_other_tools() -> None:
    toolset = toolset_with()

    def both(context: ToolContext) -> ToolResult[object]:
        outer.call("write_file", {"path": "/a", "content": "x"}, call_id="inner")
        inner = outer.call("edit_file", {"path": "/a", "old_string": "y", "new_string": "z"})
        return ToolResult(inner.message, None, success=inner.success)

    outer = Toolset(toolset.session, tools=(*DEFAULT_TOOLS, probe(both)))

    assert not outer.call("probe", {}).success
    assert not outer.filesystem.exists("/a")
    assert [call.status for call in outer.session[ToolCalls].all()] == ["ok", "not_found", "error"]


# Others at the same time


def meanwhile(action: Callable[[], object]) -> None:
    """Call a function in another thread, outside the transaction of this one, and wait for it."""
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def test_a_different_concurrent_change_is_a_conflict() -> None:
    def race(context: ToolContext) -> ToolResult[object]:
        writing(context, "/a")
        meanwhile(lambda: toolset.call("write_file", {"path": "/a", "content": "first"}, call_id="other"))
        return ToolResult("done", None)

    toolset = toolset_with(probe(race))

    result = toolset.call("probe", {}, call_id="late")

    assert (result.success, result.status, result.error_code) == (False, "conflict", "merge_conflict")
    assert "/a" in result.message
    assert toolset.filesystem.read("/a").content == "first"
    call = toolset.session[ToolCall].latest()
    assert call is not None
    assert call.error_code == "merge_conflict"
    assert call.first_seq is not None
    assert call.last_seq is not None
    made = toolset.session.records[call.first_seq - 1 : call.last_seq]
    assert [type(record.event) for record in made] == [FileWritten, RolledBack]
    assert {record.cause for record in made} == {"late"}


def test_concurrent_changes_elsewhere_stay_and_record_numbers_are_correct() -> None:
    def race(context: ToolContext) -> ToolResult[object]:
        writing(context, "/a")
        meanwhile(lambda: toolset.call("write_file", {"path": "/b", "content": "x"}, call_id="other"))
        writing(context, "/c")
        return ToolResult("done", None)

    toolset = toolset_with(probe(race))

    assert toolset.call("probe", {}, call_id="late").success

    assert [entry.path for entry in toolset.filesystem.list()] == ["/a", "/b", "/c"]
    call = toolset.session[ToolCall].latest()
    assert call is not None
    assert call.first_seq is not None
    made = toolset.session.records[call.first_seq - 1 : call.last_seq]
    assert [(record.cause, record.event.path) for record in made] == [("late", "/a"), ("late", "/c")]


def test_record_numbers_are_correct_if_another_change_follows_immediately() -> None:
    toolset = toolset_with()
    toolset.session.subscribe(FileWritten, lambda record: toolset.session.dispatch(Noted(record.event.path)))

    toolset.call("write_file", {"path": "/a", "content": "x"}, call_id="c1")

    assert [type(record.event) for record in toolset.session.records] == [FileWritten, ToolCall, Noted]
    assert (only_call(toolset.session).first_seq, only_call(toolset.session).last_seq) == (1, 1)


@event("test/noted")
@frozen
class Noted:
    path: str


def test_a_merge_conflict_inside_a_handler_is_an_answer_too() -> None:
    def clash(context: ToolContext) -> ToolResult[object]:
        raise MergeConflict((ConflictEntry("/a", "content", "fs/tree"),))

    assert toolset_with(probe(clash)).call("probe", {}).status == "conflict"
