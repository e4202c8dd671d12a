"""Calls that are cancelled at each of their suspensions: undone or complete, and followed by others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.models.cancellation_points import Point, at_each_point
from tests.session.durable.awaited import GatedStreams, Nothing
from weakfs import HostFilesystem, InMemoryFilesystem, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.filesystem import Filesystem
from weakfs.session.current_timeline import Transaction
from weakfs.tools import ToolCalls, require_filesystem


def change(context: ToolContext) -> ToolResult[None]:
    """Write a file through the filesystem, or as a program does."""
    if context.directory is not None:
        Path(context.directory, "a").write_text("1")
    else:
        require_filesystem(context).write("/a", "1")
    return ToolResult("done", None)


def handle(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
    return change(context)


async def await_(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
    await asyncio.sleep(0)
    result = change(context)
    await asyncio.sleep(0)
    return result


def fail(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
    change(context)
    raise ValueError("it fails")


async def await_and_fail(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
    await asyncio.sleep(0)
    change(context)
    raise ValueError("it fails")


HANDLERS: dict[str, Any] = {"handle": handle, "await": await_, "fail": fail, "await and fail": await_and_fail}


class SlowStreams(GatedStreams):
    """Streams in memory that are waited for before and after each append."""

    async def _pass(self, moment: str, count: int) -> None:
        await asyncio.sleep(0)


async def session_in(where: str, store: SlowStreams) -> Session:
    return await Session.aopen(store, "s") if where == "awaited" else Session()


def files_of(session: Session, kind: str, place: Path) -> Filesystem:
    if kind == "memory":
        return InMemoryFilesystem(session)
    (place / "root").mkdir()
    return HostFilesystem(place / "root", session=session, store=place / "store")


def names(files: Filesystem) -> list[str]:
    return sorted(entry.name for entry in files.list())


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("runs_programs", [False, True])
@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("kind", ["memory", "host"])
@pytest.mark.parametrize("where", ["memory", "awaited"])
def test_a_call_cancelled_anywhere_is_complete_or_undone(
    where: str, kind: str, handler: str, runs_programs: bool, tmp_path: Path
) -> None:
    async def scenario(point: Point, place: Path) -> None:
        store = SlowStreams()
        session = await session_in(where, store)
        files = files_of(session, kind, place)
        tool = Tool("change", "", Nothing, HANDLERS[handler], runs_programs=runs_programs)
        tools = Toolset(session, files, tools=[tool])

        result = await point.cancels(tools.acall("change", {}, call_id="first"))

        # A cancellation is never swallowed: the task would go on.
        assert isinstance(result, asyncio.CancelledError) == point.was_reached
        await session.aflush()
        calls = {call.call_id: call.status for call in session[ToolCalls].all()}
        if "fail" in handler:
            assert names(files) == []
            assert calls == {"first": "error"}
        elif names(files) or not point.was_reached:
            assert names(files) == ["a"]
            assert calls == {"first": "ok"}
        repeated = await tools.acall("change", {}, call_id="second")
        assert repeated.success == ("fail" not in handler)
        assert names(files) == (["a"] if repeated.success else [])
        if kind == "host":
            assert [path.name for path in (place / "root").iterdir()] == names(files)
        await is_stored(session, store, where)

    assert at_each_point(scenario, tmp_path) > 3


async def is_stored(session: Session, store: SlowStreams, where: str) -> None:
    """Check that another session opened on the storage is the same."""
    if where == "awaited":
        await session.aflush()
        data = session.to_bytes()
        await session.aclose()
        async with await Session.aopen(store, "s") as other:
            assert other.to_bytes() == data


@pytest.mark.parametrize("kind", ["memory", "host"])
def test_an_external_call_cancelled_anywhere_is_complete_or_undone(kind: str, tmp_path: Path) -> None:
    async def scenario(point: Point, place: Path) -> None:
        session = Session()
        files = files_of(session, kind, place)
        tools = Toolset(session, files)

        async def work() -> None:
            async with tools.external_call("editor", call_id="first") as call:
                Path(call.directory, "a").write_text("1")
                await asyncio.sleep(0)

        result = await point.cancels(work())

        assert isinstance(result, asyncio.CancelledError) == point.was_reached
        calls = {call.call_id: call.status for call in session[ToolCalls].all()}
        assert calls == {"first": "ok" if names(files) else "error"}
        assert point.was_reached or names(files) == ["a"]
        assert (await tools.acall("write_file", {"path": "/b", "content": ""})).success

    assert at_each_point(scenario, tmp_path) > 3


def test_a_call_that_fails_while_it_is_cancelled_is_recorded_before_the_cancellation_is_raised() -> None:
    has_failed, is_running, may_fail = threading.Event(), threading.Event(), threading.Event()

    class LateSession(Session):
        """A session whose cancellations come just after the end of the call's transaction."""

        def _end(self, own: Transaction, error: BaseException | None) -> None:
            super()._end(own, error)
            has_failed.set()
            # The handler's thread is not faster than the cancellation.
            may_record.wait(60)

        def _cancel(self, own: Transaction, reason: str) -> bool:
            may_fail.set()
            has_failed.wait(60)
            return super()._cancel(own, reason)

    may_record = threading.Event()

    def slow(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        is_running.set()
        may_fail.wait(60)
        raise ValueError("it fails")

    async def main() -> None:
        session = LateSession()
        call = asyncio.create_task(Toolset(session, tools=[Tool("slow", "", Nothing, slow)]).acall("slow", {}))
        await asyncio.to_thread(is_running.wait, 60)
        call.cancel()
        await asyncio.wait([call])
        try:
            assert call.cancelled()
            assert [one.error_code for one in session[ToolCalls].all()] == ["cancelled"]
        finally:
            may_record.set()

    asyncio.run(main())


def test_a_handler_that_waits_for_a_thread_does_not_run_once_its_call_is_cancelled() -> None:
    async def main(open_session: Callable[[], Any]) -> None:
        loop = asyncio.get_running_loop()
        may_end = threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        ran: list[str] = []

        def note(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
            ran.append("handler")
            return ToolResult("done", None)

        session = await open_session()
        tools = Toolset(session, tools=[Tool("note", "", Nothing, note)])
        busy = loop.run_in_executor(None, may_end.wait, 60)
        call = asyncio.create_task(tools.acall("note", {}))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        may_end.set()
        await busy
        await asyncio.to_thread(lambda: None)
        assert call.cancelled()
        assert ran == []
        await session.aclose()

    async def in_memory() -> Session:
        return Session()

    asyncio.run(main(in_memory))
    asyncio.run(main(lambda: Session.aopen(GatedStreams(), "s")))
