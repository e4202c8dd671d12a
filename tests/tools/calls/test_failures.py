"""Every failure of every tool leaves the files exactly as they were, and is recorded."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest
from attrs import frozen

from tests.tools.calls.failing import FAILURES, SMALL, WRITING, failing_late, populate
from tests.tools.commands import TOOLS
from weakfs import DEFAULT_TOOLS, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import FilesystemSnapshot
from weakfs.session import RolledBack
from weakfs.tools import ToolCalls
from weakfs.tools.errors import classify


def ids(case: object) -> str:
    return str(case)[:60]


@pytest.mark.parametrize(("name", "arguments", "status", "code"), FAILURES, ids=ids)
def test_a_failed_call_leaves_everything_as_it_was(
    name: str, arguments: dict[str, object], status: str, code: str
) -> None:
    session = Session(session_id="s")
    toolset = Toolset(session, populate(session, limits=SMALL), tools=TOOLS)
    before, fingerprint = toolset.filesystem.tree(), toolset.filesystem.tree().fingerprint

    result = toolset.call(name, arguments, call_id="c1")

    assert (result.success, result.status, result.error_code) == (False, status, code)
    assert toolset.filesystem.tree() is before
    assert toolset.filesystem.tree().fingerprint == fingerprint
    (call,) = session[ToolCalls].all()
    assert (call.call_id, call.status, call.error_code) == ("c1", status, code)
    assert call.summary == result.summary_text
    assert "\n" not in call.summary


def test_every_tool_has_a_failure_here() -> None:
    assert {name for name, *_ in FAILURES} > {tool.name for tool in DEFAULT_TOOLS}
    assert set(WRITING) == {tool.name for tool in DEFAULT_TOOLS if not tool.read_only}


@pytest.mark.parametrize("name", WRITING)
def test_a_read_only_filesystem_refuses_every_change(name: str) -> None:
    session = Session(session_id="s")
    toolset = Toolset(session, populate(session, read_only=True), tools=TOOLS)
    before = toolset.filesystem.tree()

    result = toolset.call(name, WRITING[name])

    assert (result.status, result.error_code) == ("forbidden", "read_only")
    assert toolset.filesystem.tree() is before


@pytest.mark.parametrize("name", WRITING)
def test_a_call_that_fails_after_its_work_was_done_is_undone(name: str) -> None:
    (tool,) = [tool for tool in TOOLS if tool.name == name]
    session = Session(session_id="s")
    toolset = Toolset(session, populate(session), tools=[failing_late(tool)])
    before, fingerprint = toolset.filesystem.tree(), toolset.filesystem.tree().fingerprint

    result = toolset.call(name, WRITING[name], call_id="c1")

    assert (result.status, result.error_code) == ("error", "no_space_left")
    assert toolset.filesystem.tree() is before
    assert toolset.filesystem.tree().fingerprint == fingerprint
    *made, rolled_back, _ = [record for record in session.records if record.cause == "c1"]
    assert made
    assert isinstance(rolled_back.event, RolledBack)
    (call,) = session[ToolCalls].all()
    assert (call.first_seq, call.last_seq) == (made[0].seq, rolled_back.seq)


@pytest.mark.parametrize("name", WRITING)
def test_a_successful_call_can_be_rolled_back(name: str) -> None:
    session = Session(session_id="s")
    toolset = Toolset(session, populate(session), tools=TOOLS)
    before = toolset.filesystem.tree().fingerprint

    assert toolset.call(name, WRITING[name]).success
    (call,) = session[ToolCalls].all()
    assert call.first_seq is not None
    assert toolset.filesystem.tree().fingerprint != before
    session.rollback(call.first_seq - 1)

    assert toolset.filesystem.tree().fingerprint == before


def test_a_custom_tool_that_restores_a_snapshot_and_fails_is_undone() -> None:
    session = Session(session_id="s")
    fs = populate(session)
    empty: FilesystemSnapshot = InMemoryFilesystem().snapshot()

    @frozen
    class Nothing:
        pass

    def restore(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        fs.restore(empty, foreign=True)
        assert fs.list() == ()
        return ToolResult("no", None, success=False)

    toolset = Toolset(session, fs, tools=[Tool("restore", "For tests.", Nothing, restore)])
    before = fs.tree()

    toolset.call("restore", {})

    assert fs.tree() is before


def test_errors_are_classified_by_errno_first_and_then_by_the_nearest_class() -> None:
    class OwnMissing(FileNotFoundError):
        pass

    assert classify(OwnMissing("x")) == ("not_found", "not_found")
    assert classify(FileNotFoundError(errno.ENOENT, "x")) == ("not_found", "not_found")
    assert classify(PermissionError(errno.EPERM, "x")) == ("forbidden", "path_forbidden")
    assert classify(OSError(errno.EROFS, "x")) == ("forbidden", "read_only")
    assert classify(OSError(errno.ELOOP, "x")) == ("error", "too_many_links")
    assert classify(OSError("x")) == ("error", "io_error")
    assert classify(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x")) == ("error", "invalid_input")
    assert classify(KeyError("x")) == ("error", "internal_error")


@frozen
class Empty:
    pass


def test_a_handler_that_raises_stop_iteration_is_undone_recorded_and_raised() -> None:
    session = Session(session_id="s")
    fs = populate(session)

    def run_dry(params: Empty, *, context: ToolContext) -> ToolResult[None]:
        fs.write("/new", "")
        return ToolResult(next(iter(())), None)

    toolset = Toolset(session, fs, tools=[Tool("dry", "For tests.", Empty, run_dry)])
    before = fs.tree()

    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        toolset.call("dry", {})

    assert caught.value.__cause__ is not None
    assert fs.tree() is before
    assert not session.in_transaction
    assert [call.error_code for call in session[ToolCalls].all()] == ["internal_error"]


def test_a_handler_that_raises_generator_exit_is_undone_at_once_recorded_and_raised() -> None:
    session = Session(session_id="s")
    fs = populate(session)
    # The traceback of an exception that somebody keeps must not keep the transaction open.
    error = GeneratorExit("left")

    def leave(params: Empty, *, context: ToolContext) -> ToolResult[None]:
        fs.write("/new", "")
        raise error

    toolset = Toolset(session, fs, tools=[Tool("leave", "For tests.", Empty, leave)])
    before = fs.tree()

    with pytest.raises(GeneratorExit, match="left"):
        toolset.call("leave", {})

    assert fs.tree() is before
    assert not session.in_transaction
    assert [call.error_code for call in session[ToolCalls].all()] == ["internal_error"]


def test_a_call_whose_coroutine_is_closed_is_undone_at_once_and_recorded() -> None:
    session = Session(session_id="s")
    fs = populate(session)

    async def wait(params: Empty, *, context: ToolContext) -> ToolResult[None]:
        fs.write("/new", "")
        await asyncio.sleep(0)
        raise AssertionError("the coroutine was resumed")

    call = Toolset(session, fs, tools=[Tool("wait", "For tests.", Empty, wait)]).acall("wait", {})
    before = fs.tree()

    call.send(None)
    call.close()

    assert fs.tree() is before
    assert not session.in_transaction
    assert [done.error_code for done in session[ToolCalls].all()] == ["internal_error"]


@pytest.mark.parametrize(
    "wrong", [{"status": None}, {"summary_text": None}, {"error_code": 5}, {"success": "yes"}, {"message": b""}]
)
def test_a_result_of_wrong_types_is_undone_recorded_and_raised(wrong: dict[str, Any]) -> None:
    session = Session(session_id="s")
    fs = populate(session)

    def answer_wrongly(params: Empty, *, context: ToolContext) -> ToolResult[None]:
        fs.write("/new", "")
        return ToolResult(**{"message": "done", "value": None, **wrong})

    toolset = Toolset(session, fs, tools=[Tool("wrong", "For tests.", Empty, answer_wrongly)])
    before = fs.tree()

    with pytest.raises((TypeError, AttributeError)):
        toolset.call("wrong", {})

    assert fs.tree() is before
    assert [call.error_code for call in session[ToolCalls].all()] == ["internal_error"]


def test_a_value_that_cannot_be_recorded_is_replaced_by_a_description() -> None:
    class Odd:
        def __fspath__(self) -> str:
            raise RuntimeError("no path")

    session = Session(session_id="s")

    def answer(params: Empty, *, context: ToolContext) -> ToolResult[Odd]:
        return ToolResult("done", Odd())

    assert Toolset(session, tools=[Tool("odd", "For tests.", Empty, answer)]).call("odd", {}).success
    assert "unrecorded" in str(session[ToolCalls].all()[0].receipt)


def test_arguments_are_recorded_as_they_were_when_the_call_began() -> None:
    session = Session(session_id="s")
    arguments: dict[str, object] = {}

    def change(params: Empty, *, context: ToolContext) -> ToolResult[None]:
        arguments["later"] = 1
        return ToolResult("done", None)

    Toolset(session, tools=[Tool("change", "For tests.", Empty, change)]).call("change", arguments)
    assert session[ToolCalls].all()[0].read_arguments() == {}
