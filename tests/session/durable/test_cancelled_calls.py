"""Calls that run in the task itself, because nothing in them waits, and are cancelled at any turn of the event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.tools import ToolCalls


def names(session: Session) -> set[str]:
    return {entry.name for entry in InMemoryFilesystem(session).list()}


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("where", ["folder", "memory"])
def test_a_call_cancelled_at_any_turn_succeeds_or_changes_nothing(where: str, turns: int, tmp_path: Path) -> None:
    async def main() -> bool:
        session = await Session.aopen(tmp_path, "s") if where == "folder" else Session()
        call = asyncio.create_task(Toolset(session).acall("write_file", {"path": "/a", "content": "1"}))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        try:
            answered = (await call).success
        except asyncio.CancelledError:
            answered = False
        assert names(session) == ({"a"} if answered else set())
        assert len(session[ToolCalls].all()) == answered
        if where == "folder":
            assert names(Session.open(tmp_path, "s")) == names(session)
        await session.aclose()
        return answered

    # It waits once, before it starts.
    assert asyncio.run(main()) == (turns > 1)


async def test_other_tasks_have_their_turn_between_calls() -> None:
    session = Session()
    tools = Toolset(session)
    is_done = asyncio.Event()
    asyncio.get_running_loop().call_soon(is_done.set)
    for number in range(3):
        await tools.acall("write_file", {"path": f"/{number}", "content": ""})
        assert is_done.is_set()


async def test_a_transaction_that_begins_while_a_call_waits_for_its_turn_is_not_joined() -> None:
    session = Session()
    tools = Toolset(session)
    call = asyncio.create_task(tools.acall("write_file", {"path": "/a", "content": "1"}))
    await asyncio.sleep(0)
    with pytest.raises(ZeroDivisionError), session.transaction():
        InMemoryFilesystem(session).write("/b", "1")
        raise ZeroDivisionError
    assert (await call).success
    assert names(session) == {"a"}
