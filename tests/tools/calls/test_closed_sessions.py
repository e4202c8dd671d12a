"""A call on a closed session, or through a closed fork, gets an answer and leaves no record there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event

import pytest
from attrs import frozen

from weakfs import HostFilesystem, InMemoryFilesystem, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.tools import ToolCalls, require_filesystem

CALLS: list[tuple[str, dict[str, object]]] = [
    ("read_file", {"path": "/a"}),
    ("write_file", {"path": "/b", "content": "b\n"}),
    ("edit_file", {"path": "/a", "old_string": "a", "new_string": "b"}),
    ("grep", {"pattern": "a"}),
    ("rm", {"path": "/a"}),
    ("shell", {"command": "echo > b"}),
    ("no_such_tool", {}),
]


@pytest.fixture(params=["memory", "host"])
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> Toolset:
    session = Session()
    if request.param == "memory":
        files: InMemoryFilesystem | HostFilesystem = InMemoryFilesystem(session)
    else:
        (tmp_path / "root").mkdir()
        files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
    files.write("/a", "a\n")
    return Toolset(session, files)


@pytest.mark.parametrize(("name", "arguments"), CALLS)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_on_a_closed_session_is_answered_and_not_recorded(
    tools: Toolset, name: str, arguments: dict[str, object], is_async: bool
) -> None:
    tools.session.close("its conversation has ended")
    before, seq = tools.filesystem.tree().fingerprint, tools.session.seq

    result = asyncio.run(tools.acall(name, arguments)) if is_async else tools.call(name, arguments)

    assert (result.success, result.status, result.error_code) == (False, "error", "session_closed")
    assert "its conversation has ended" in result.message
    assert (tools.session.seq, tools.session[ToolCalls].all()) == (seq, ())
    assert tools.filesystem.tree().fingerprint == before


def test_a_call_through_a_closed_fork_is_answered(tools: Toolset) -> None:
    if not isinstance(tools.filesystem, InMemoryFilesystem):
        pytest.skip("an external filesystem has no forks")
    fork = tools.session.fork()
    through = Toolset(fork, tools.filesystem.bind(fork))
    assert through.call("write_file", {"path": "/b", "content": "b\n"}).success
    tools.session.merge(fork)
    fork.close()
    recorded = len(tools.session[ToolCalls].all())
    assert through.call("write_file", {"path": "/c", "content": "c\n"}).error_code == "session_closed"
    assert len(tools.session[ToolCalls].all()) == recorded == 1
    assert tools.call("read_file", {"path": "/b"}).success


@frozen
class Nothing:
    """No parameters."""


def test_a_session_that_is_closed_while_a_call_runs_undoes_it(tools: Toolset) -> None:
    def close(params: Nothing, *, context: ToolContext) -> ToolResult[object]:
        require_filesystem(context).write("/b", "b\n")
        context.session.close("it was closed meanwhile")
        return ToolResult("done", None)

    before = tools.filesystem.tree().fingerprint
    own = Toolset(tools.session, tools.filesystem, tools=[Tool("own", "For tests.", Nothing, close)])
    result = own.call("own", {})
    assert (result.success, result.error_code) == (False, "session_closed")
    assert tools.filesystem.tree().fingerprint == before


def test_a_handler_that_writes_to_a_closed_fork_fails_and_is_recorded(tools: Toolset) -> None:
    def write(params: Nothing, *, context: ToolContext) -> ToolResult[object]:
        context.session.next_id("used")
        fork = Session().fork()
        fork.close()
        InMemoryFilesystem(fork).write("/b", "b\n")
        return ToolResult("done", None)

    own = Toolset(tools.session, tools.filesystem, tools=[Tool("own", "For tests.", Nothing, write)])
    assert own.call("own", {}).error_code == "session_closed"
    (call,) = tools.session[ToolCalls].all()
    assert (call.tool, call.error_code) == ("own", "session_closed")


def test_a_toolset_can_be_created_for_a_closed_session(tools: Toolset) -> None:
    tools.session.close()
    assert Toolset(tools.session, tools.filesystem).call("ls", {}).error_code == "session_closed"


async def test_a_call_cancelled_after_its_session_was_closed_raises_cancelled_error() -> None:
    began, goes_on = Event(), Event()

    def wait(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        began.set()
        goes_on.wait(60)
        return ToolResult("waited", None)

    session = Session()
    tools = Toolset(session, tools=[Tool("wait", "wait", Nothing, wait)])
    task = asyncio.create_task(tools.acall("wait", {}))
    await asyncio.to_thread(began.wait, 60)
    session.close()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    goes_on.set()
