"""A call that makes other calls is one operation: undoing it undoes their changes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.session.undo.desk import Desk, in_memory
from weakfs import Session, SessionError, Toolset
from weakfs.session import Record
from weakfs.tools import DEFAULT_TOOLS, HISTORY_TOOLS, Receipt, Tool, ToolCall, ToolContext, ToolResult

# What an outer call does: names of tools, which may be `outer` itself, with their arguments.
Work = tuple[tuple[str, dict[str, Any]], ...]


@frozen
class Params:
    """The parameters of the tool that makes calls."""

    name: str


class Nesting:
    """A desk with a tool, `outer`, that makes the calls of a plan, each with an id of its own."""

    def __init__(self, desk: Desk, **plans: Work) -> None:
        self.desk, self.session, self.plans = desk, desk.session, plans
        outer = Tool("outer", "Make calls.", Params, self._outer)
        self.tools = Toolset(desk.session, desk.fs, tools=(*DEFAULT_TOOLS, *HISTORY_TOOLS, outer))

    def _outer(self, params: Params, *, context: ToolContext) -> ToolResult[Receipt]:
        assert context.filesystem is not None
        inside = Toolset(context.session, context.filesystem, tools=self.tools.tools)
        for number, (tool, arguments) in enumerate(self.plans[params.name]):
            inside.call(tool, arguments, call_id=f"{params.name}.{number}")
        if params.name == "fails":
            raise ValueError("no more")
        return ToolResult("done", Receipt(summary_text="done"))

    def outer(self, name: str) -> str:
        self.tools.call("outer", {"name": name}, call_id=name)
        return name

    def shown(self) -> dict[str, str]:
        fs = self.desk.fs
        return {one.path: fs.read(one.path).content for one in fs.walk("/") if one.is_file and one.path != "/below"}


def write(path: str, content: str = "1\n") -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


@pytest.fixture
def nesting(desk: Desk) -> Nesting:
    return Nesting(
        desk,
        both=(write("/a"), ("rm", {"path": "/missing"}), write("/b")),
        twice=(write("/c"), ("outer", {"name": "both"})),
        fails=(write("/a"), write("/b")),
        back=(("undo", {}), write("/c")),
        only_back=(("undo", {}),),
        reads=(("ls", {"path": "/"}), ("rm", {"path": "/missing"})),
    )


def test_a_call_is_reverted_by_its_own_id_with_the_calls_in_it(nesting: Nesting) -> None:
    nesting.desk.write("/first", "1\n")
    nesting.outer("both")
    nesting.desk.write("/later", "1\n")
    assert sorted(nesting.session.revert("both").paths) == ["/a", "/b"]
    assert nesting.shown().keys() == {"/first", "/later"}
    nesting.session.undo()
    assert nesting.shown().keys() == {"/first", "/later", "/a", "/b"}


def test_a_call_in_a_call_in_a_call_is_reverted_by_each_of_their_ids(nesting: Nesting) -> None:
    nesting.outer("twice")
    session = nesting.session
    assert session.revert("both.0").paths == ("/a",)
    session.undo()
    assert sorted(session.revert("twice.1").paths) == ["/a", "/b"]
    session.undo()
    assert sorted(session.revert("twice").paths) == ["/a", "/b", "/c"]
    assert nesting.shown() == {}


def test_a_call_is_undone_and_redone_with_the_calls_in_it(nesting: Nesting) -> None:
    nesting.desk.write("/first", "1\n")
    nesting.outer("twice")
    everything = nesting.shown()
    nesting.session.undo()
    assert nesting.shown().keys() == {"/first"}
    nesting.session.redo()
    assert nesting.shown() == everything
    nesting.session.undo(2)
    assert nesting.shown() == {}


def test_a_call_concurrent_with_others_is_undone_with_the_calls_in_it(nesting: Nesting) -> None:
    async def both() -> None:
        one = nesting.tools.acall("outer", {"name": "both"}, call_id="both")
        await asyncio.gather(one, nesting.tools.acall(*write("/other"), call_id="other"))

    asyncio.run(both())
    assert sorted(nesting.session.revert("both", preview=True).paths) == ["/a", "/b"]
    assert nesting.session.revert("both.0").paths == ("/a",)
    assert nesting.session.revert("both").paths == ("/b",)
    assert nesting.shown().keys() == {"/other"}


def test_the_calls_of_a_call_in_a_fork_are_reverted_after_its_merge(tmp_path: Path) -> None:
    desk = in_memory()
    fork = desk.session.fork("f")
    inside = Nesting(Desk(fork, desk.fs.bind(fork)), both=(write("/a"), write("/b")))
    inside.outer("both")
    inside.desk.write("/c", "1\n")
    desk.write("/other", "1\n")
    desk.session.merge(fork)
    outside = Nesting(desk)
    assert desk.session.revert("both.1").paths == ("/b",)
    assert desk.session.revert("both").paths == ("/a",)
    assert outside.shown().keys() == {"/c", "/other"}
    desk.session.save(tmp_path / "s.json")
    again = Session.load(tmp_path / "s.json")
    again.undo(2)
    assert again.revert("both", preview=True).paths == ("/a", "/b")


def test_a_call_that_failed_with_the_calls_in_it_is_not_an_operation(nesting: Nesting) -> None:
    nesting.desk.write("/first", "1\n")
    nesting.outer("fails")
    for call in ("fails", "fails.0"):
        with pytest.raises(SessionError, match=f"cannot revert '{call}'"):
            nesting.session.revert(call)
    nesting.session.undo()
    assert nesting.shown() == {}


@pytest.mark.parametrize("call", ["reads", "reads.0", "reads.1"])
def test_a_call_that_changed_nothing_is_refused(nesting: Nesting, call: str) -> None:
    nesting.outer("reads")
    before = nesting.session.seq
    with pytest.raises(SessionError, match="it changed nothing that can be undone"):
        nesting.session.revert(call)
    assert nesting.session.seq == before


def test_a_record_that_changed_nothing_is_refused(nesting: Nesting) -> None:
    nesting.outer("reads")
    record: Record = nesting.session.records[-1]
    assert isinstance(record.event, ToolCall)
    with pytest.raises(SessionError, match=f"cannot revert record {record.seq}: it changed nothing"):
        nesting.session.revert(record)


def test_a_call_that_undoes_and_changes_more_is_one_operation(nesting: Nesting) -> None:
    nesting.desk.write("/first", "1\n")
    nesting.outer("back")
    assert nesting.shown().keys() == {"/c"}
    nesting.session.undo()
    assert nesting.shown().keys() == {"/first"}
    nesting.session.redo()
    assert nesting.shown().keys() == {"/c"}


def test_calls_that_only_undo_are_redone_one_by_one(nesting: Nesting) -> None:
    for path in ("/a", "/b", "/c"):
        nesting.desk.write(path, "1\n")
    nesting.tools.call("undo", {"count": 2})
    nesting.outer("only_back")
    assert nesting.shown() == {}
    for count in range(1, 4):
        nesting.session.redo()
        assert len(nesting.shown()) == count


def test_an_undo_within_a_call_does_not_undo_all_of_it(nesting: Nesting) -> None:
    nesting.plans["own"] = (write("/a"), write("/b"), ("undo", {}))
    nesting.outer("own")
    assert nesting.shown().keys() == {"/a"}
    nesting.session.undo()
    assert nesting.shown() == {}
    nesting.session.redo()
    assert nesting.shown().keys() == {"/a"}


def test_a_reversion_by_a_tool_is_reverted_by_the_id_of_its_call(nesting: Nesting) -> None:
    first = nesting.desk.write("/first", "1\n")
    nesting.tools.call("revert", {"call_id": first}, call_id="taken back")
    assert nesting.shown() == {}
    nesting.session.revert("taken back")
    assert nesting.shown().keys() == {"/first"}
