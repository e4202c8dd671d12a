"""Opening, following and closing sessions on an event loop, cancelled at each suspension: nothing is left behind."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.models.cancellation_points import Point, at_each_point
from tests.session.durable.awaited import GatedStreams, Nothing, gated_session, ids, names, write
from weakfs import Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.session import SessionFileError
from weakfs.session.durable.aopen_session import AsyncWhere
from weakfs.session.durable.open_session import Durability, OnOthers
from weakfs.storage import (
    Lease,
    LeaseLost,
    MemoryStorage,
    OutcomeUnknown,
    StorageError,
    StorageEventStore,
    open_event_store,
)
from weakfs.storage.engines.memory import AsyncMemoryStorage
from weakfs.storage.storage import Versioned
from weakfs.tools import ToolCalls


class SlowStorage(AsyncMemoryStorage):
    """Storage in memory that is waited for before and after each operation."""

    async def get_versioned(self, key: str) -> Versioned | None:
        await asyncio.sleep(0)
        found = await super().get_versioned(key)
        await asyncio.sleep(0)
        return found

    async def set_many(self, values: Mapping[str, bytes]) -> None:
        await asyncio.sleep(0)
        await super().set_many(values)
        await asyncio.sleep(0)

    async def create(self, key: str, value: bytes) -> str | None:
        await asyncio.sleep(0)
        version = await super().create(key, value)
        await asyncio.sleep(0)
        return version

    async def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        await asyncio.sleep(0)
        new = await super().replace(key, value, version=version)
        await asyncio.sleep(0)
        return new


async def opened(where: AsyncWhere, durability: Durability, *, exclusive: bool = False, merge: bool = False) -> Session:
    others: OnOthers = "merge" if merge else "raise"
    return await Session.aopen(where, "s", durability=durability, exclusive=exclusive, on_conflict=others)


def location(engine: str, place: Path) -> tuple[AsyncWhere, Durability]:
    """Return a location of an engine, and the durability with which it is opened there."""
    if engine == "awaited":
        return SlowStorage(), "process"
    if engine == "sqlite":
        return f"sqlite:{place}/s.db", "process"
    return place / "store", "power" if engine == "synced folder" else "process"


async def is_free(where: AsyncWhere, durability: Durability) -> list[str]:
    """Check that another process can use a session exclusively and change it; return the names of its files before."""
    async with await opened(where, durability, exclusive=True) as other:
        found = names(other)
        assert (await write(Toolset(other), "/last")).success
    return found


ENGINES = pytest.mark.parametrize("engine", ["awaited", "folder", "synced folder", "sqlite"])


@pytest.mark.slow
@ENGINES
def test_a_session_whose_opening_is_cancelled_is_closed(engine: str, tmp_path: Path) -> None:
    async def scenario(point: Point, place: Path) -> None:
        where, durability = location(engine, place)
        async with await opened(where, durability) as session:
            await write(Toolset(session), "/kept")

        result = await point.cancels(opened(where, durability, exclusive=True))

        assert isinstance(result, asyncio.CancelledError) == point.was_reached
        if isinstance(result, Session):
            await result.aclose()
        # The lease was released.
        assert await is_free(where, durability) == ["kept"]

    assert at_each_point(scenario, tmp_path) > 3


@pytest.mark.slow
@ENGINES
def test_a_session_whose_closing_is_cancelled_is_closed(engine: str, tmp_path: Path) -> None:
    async def scenario(point: Point, place: Path) -> None:
        where, durability = location(engine, place)
        session = await opened(where, durability, exclusive=True)
        await write(Toolset(session), "/kept")
        calls = [asyncio.create_task(write(Toolset(session), f"/{number}")) for number in range(3)]
        for _ in range(3):
            await asyncio.sleep(0)

        result = await point.cancels(session.aclose())

        assert isinstance(result, asyncio.CancelledError) == point.was_reached
        results = await asyncio.gather(*calls)
        acknowledged = [str(number) for number, result in enumerate(results) if result.success]
        assert await is_free(where, durability) == [*acknowledged, "kept"] == names(session)

    assert at_each_point(scenario, tmp_path) > 3


@pytest.mark.slow
@ENGINES
def test_a_session_can_be_used_after_following_it_was_cancelled(engine: str, tmp_path: Path) -> None:
    async def follow(session: Session) -> None:
        async for record in session.awatch():
            if record.cause == "b":
                break

    async def scenario(point: Point, place: Path) -> None:
        where, durability = location(engine, place)
        async with await opened(where, durability) as session, await opened(where, durability) as other:
            await write(Toolset(other), "/a")
            change = asyncio.create_task(write(Toolset(other), "/b"))

            result = await point.cancels(follow(session))

            assert isinstance(result, asyncio.CancelledError) == point.was_reached
            await change
            await session.arefresh()
            assert names(session) == ["a", "b"]
            assert (await write(Toolset(session), "/c")).success

    assert at_each_point(scenario, tmp_path) > 3


def merging(engine: str) -> Callable[[Point, Path], Coroutine[Any, Any, None]]:
    """Return a scenario in which a call is cancelled while it is merged with another one."""

    async def scenario(point: Point, place: Path) -> None:
        where, durability = location(engine, place)
        async with (
            await opened(where, durability, merge=True) as session,
            await opened(where, durability, merge=True) as other,
        ):
            await write(Toolset(other), "/others")
            result = await point.cancels(write(Toolset(session), "/own"))

            assert isinstance(result, asyncio.CancelledError) == point.was_reached
            await session.aflush()
            await session.arefresh()
            if names(session) == ["others", "own"]:
                assert "own" in ids(session)
            else:
                assert point.was_reached
            # A repetition with the same id is neither left out nor done twice.
            assert (await write(Toolset(session), "/own")).success
            await other.arefresh()
            assert names(session) == names(other) == ["others", "own"]

    return scenario


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["awaited", "sqlite"])
def test_a_call_cancelled_while_it_is_merged_is_complete_or_undone(engine: str, tmp_path: Path) -> None:
    assert at_each_point(merging(engine), tmp_path) > 3


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in Python 3.12")
@pytest.mark.parametrize("engine", ["awaited", "sqlite"])
def test_a_call_in_an_eager_task_that_is_cancelled_while_it_is_merged_is_complete_or_undone(
    engine: str, tmp_path: Path
) -> None:
    assert at_each_point(merging(engine), tmp_path, is_eager=True) > 3


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["awaited", "sqlite"])
def test_a_call_on_uvloop_that_is_cancelled_while_it_is_merged_is_complete_or_undone(
    engine: str, tmp_path: Path
) -> None:
    uvloop = pytest.importorskip("uvloop")
    assert at_each_point(merging(engine), tmp_path, new_loop=uvloop.new_event_loop) > 3


def test_a_call_that_failed_is_recorded_even_if_it_is_cancelled_meanwhile(tmp_path: Path) -> None:
    async def main() -> None:
        store, session, tools = await gated_session()
        store.hold("before")
        call = asyncio.create_task(tools.acall("rm", {"path": "/missing"}, call_id="missing"))
        await store.reached()
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        store.let_go()
        await session.aflush()
        assert [(one.call_id, one.error_code) for one in session[ToolCalls].all()] == [("missing", "not_found")]
        await session.aclose()

    asyncio.run(main())


def test_a_cancelled_copy_is_complete_before_the_cancellation_is_raised() -> None:
    may_go, reached = threading.Event(), threading.Event()

    class HeldStorage(MemoryStorage):
        def create(self, key: str, value: bytes) -> str | None:
            reached.set()
            may_go.wait(60)
            return super().create(key, value)

    async def main() -> None:
        source, target = Session(session_id="s"), HeldStorage()
        await write(Toolset(source), "/a")
        copy = asyncio.create_task(source.acopy_to(target))
        await asyncio.to_thread(reached.wait, 60)
        copy.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not copy.done()
        may_go.set()
        await asyncio.wait([copy])
        assert copy.cancelled()
        with Session.open(target, "s") as copied:
            assert names(copied) == ["a"]

    asyncio.run(main())


class UncertainStore(StorageEventStore):
    """An event store that loses the answers to requests for a lease."""

    def __init__(self, lost: int) -> None:
        super().__init__(MemoryStorage())
        self.lost = lost

    def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        lease = super().lease(stream, owner, seconds)
        if self.lost:
            self.lost -= 1
            raise OutcomeUnknown("the connection was lost")
        return lease


def test_a_lease_whose_answer_is_lost_is_taken_again() -> None:
    with Session.open(UncertainStore(lost=2), "s", exclusive=True) as session:
        assert Toolset(session).call("write_file", {"path": "/a", "content": ""}).success


def test_a_lease_whose_answers_are_all_lost_is_released() -> None:
    store = UncertainStore(lost=3)
    with pytest.raises(OutcomeUnknown):
        Session.open(store, "s", exclusive=True)
    with Session.open(store, "s", exclusive=True) as session:
        assert Toolset(session).call("write_file", {"path": "/a", "content": ""}).success


def test_a_session_that_cannot_be_opened_leaves_no_lease() -> None:
    store = open_event_store(MemoryStorage())
    store.append("s", 0, [b"no frame of a session"])
    with pytest.raises(SessionFileError):
        Session.open(store, "s", exclusive=True)
    store.lease("s", "another", 30)
    # The lease of another is left alone.
    with pytest.raises(LeaseLost):
        Session.open(store, "s", exclusive=True)
    with pytest.raises(LeaseLost):
        store.append("s", 1, [b"a"])


def test_a_session_whose_event_loop_has_ended_refuses_work_that_would_wait() -> None:
    loop = asyncio.new_event_loop()
    try:
        session = loop.run_until_complete(Session.aopen(SlowStorage(), "s"))
        # The loop is stopped, so it would never run what a thread submits to it.
        with pytest.raises(StorageError, match="belongs to an event loop"):
            Toolset(session).call("write_file", {"path": "/a", "content": ""})
        assert names(session) == []
        loop.run_until_complete(session.aclose())
    finally:
        loop.close()


def test_a_session_of_streams_that_never_wait_is_used_after_its_event_loop_has_ended() -> None:
    store = GatedStreams()

    def handle(params: Any, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult("done", None)

    session = asyncio.run(Session.aopen(store, "s"))
    assert Toolset(session, tools=[Tool("note", "", Nothing, handle)]).call("note", {}).success
    session.close()
