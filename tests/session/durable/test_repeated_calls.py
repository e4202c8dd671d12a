"""A call whose outcome a dead process did not learn is not performed twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest

from tests.session.durable.awaited import ids
from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session, Tool, ToolResult, Toolset
from weakfs.storage import StorageError
from weakfs.storage.adapters import ThreadedEventStore
from weakfs.tools import APPLY_PATCH, CP, EDIT_FILE, MKDIR, MV, RM, WRITE_FILE


def dead_process(streams: MemoryStreams, last: str) -> None:
    """Make a call in a session that never learns its outcome, and stores nothing after this moment."""
    session = Session.open(streams, "s")
    is_dead = False

    def die(moment: str) -> None:
        nonlocal is_dead
        if is_dead:
            raise StorageError("a dead process stores nothing")
        if moment == last:
            is_dead = True
            raise KeyboardInterrupt

    streams.fault = die
    with pytest.raises((KeyboardInterrupt, StorageError)):
        Toolset(session).call("write_file", {"path": "/log", "content": "1\n", "mode": "append"}, call_id="c1")
    streams.fault = lambda moment: None


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("how", ["call", "acall", "meanwhile"])
def test_a_call_is_not_repeated_by_the_process_that_takes_over(moment: str, how: str) -> None:
    arguments = {"mode": "append", "content": "1\n", "path": "/log"}
    streams = MemoryStreams()
    with Session.open(streams, "s") as session:
        InMemoryFilesystem(session).write("/log", "0\n")
    early = Session.open(streams, "s", on_conflict="merge")
    dead_process(streams, moment)
    if how == "acall":

        async def main() -> tuple[Session, ToolResult[object]]:
            session = await Session.aopen(ThreadedEventStore(streams), "s")
            return session, await Toolset(session).acall("write_file", json.dumps(arguments), call_id="c1")

        session, result = asyncio.run(main())
    else:
        # One that was open all the time learns of the first call when it commits its own.
        session = early if how == "meanwhile" else Session.open(streams, "s")
        result = Toolset(session).call("write_file", arguments, call_id="c1")
    assert result.success
    assert "/log" in result.summary_text
    assert InMemoryFilesystem(session).read("/log").content == "0\n1\n"
    assert ids(session) == ["c1"]


def test_another_id_tool_or_argument_is_another_call() -> None:
    session = Session.open(MemoryStreams(), "s")
    tools = Toolset(session)
    first = tools.call("write_file", {"path": "/a", "content": "1"}, call_id="c1")
    assert tools.call("write_file", {"path": "/a", "content": "1"}, call_id="c1").value == first.value
    assert tools.call("write_file", {"path": "/a", "content": "2"}, call_id="c1").success
    assert tools.call("write_file", {"path": "/a", "content": "2"}, call_id="c2").success
    assert tools.call("rm", {"path": "/a"}, call_id="c1").success
    assert tools.call("exists", {"path": "/a"}, call_id="c3").success
    assert tools.call("exists", {"path": "/a"}, call_id="c3").success
    assert ids(session) == ["c1", "c1", "c2", "c1", "c3", "c3"]


def test_a_call_that_failed_or_was_rolled_back_is_repeated() -> None:
    session = Session.open(MemoryStreams(), "s")
    tools, fs = Toolset(session), InMemoryFilesystem(session)
    assert not tools.call("rm", {"path": "/a"}, call_id="c1").success
    fs.write("/a", "1")
    written = session.seq
    assert tools.call("rm", {"path": "/a"}, call_id="c1").success
    removed = session.seq
    session.rollback(written)
    session.rollback(removed)
    assert not fs.exists("/a")
    assert tools.call("rm", {"path": "/a"}, call_id="c1").success
    session.rollback(written)
    assert tools.call("rm", {"path": "/a"}, call_id="c1").success
    assert not fs.exists("/a")
    assert len(ids(session)) == 3


@pytest.mark.parametrize("tool", [WRITE_FILE, EDIT_FILE, APPLY_PATCH, MKDIR, CP, MV, RM], ids=lambda tool: tool.name)
def test_a_repeated_call_has_a_receipt_of_its_tool(tool: Tool) -> None:
    tools = Toolset(Session.open(MemoryStreams(), "s"))
    tools.filesystem.write("/a", "one\n")
    arguments: Mapping[str, object] = {
        "write_file": {"path": "/a", "content": "two"},
        "edit_file": {"path": "/a", "old_string": "one", "new_string": "two"},
        "apply_patch": {"patch": "*** Begin Patch\n*** Update File: a\n-one\n+two\n*** End Patch"},
        "mkdir": {"path": "/d"},
        "cp": {"source": "/a", "destination": "/b"},
        "mv": {"source": "/a", "destination": "/b"},
        "rm": {"path": "/a"},
    }[tool.name]
    first = tools.call(tool, arguments, call_id="c1")
    again = tools.call(tool, arguments, call_id="c1")
    assert first.success
    assert isinstance(again.value, tool.receipt)
    assert again.value == first.value
