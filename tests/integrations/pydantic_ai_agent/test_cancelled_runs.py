"""Runs of pydantic-ai's agents that are cancelled at each suspension: merged as a whole, or without a trace."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integrations.pydantic_ai_agent.conftest import Nothing, agent, scripted, write
from tests.models.cancellation_points import Point, at_each_point
from tests.session.durable.test_cancelled_anywhere import SlowStorage
from weakfs import Filesystem, HostFilesystem, InMemoryFilesystem, Session, Tool, Toolset
from weakfs.integrations.pydantic_ai import SessionToolset
from weakfs.session import Session as AnySession
from weakfs.session import SessionClosed
from weakfs.tools import DEFAULT_TOOLS, ToolContext, ToolResult


async def opened(engine: str, place: Path) -> Session:
    if engine == "threads":
        return Session.open(f"sqlite:{place}/s.db", "s")
    return await Session.aopen(SlowStorage(), "s")


async def tasks_ended() -> None:
    """End the tasks that pydantic-ai leaves when a run is cancelled, as the end of the event loop does."""
    own = asyncio.current_task()
    while left := [one for one in asyncio.all_tasks() if one is not own and not one.get_name().startswith("weakfs-")]:
        for task in left:
            task.cancel()
        await asyncio.wait(left)


def names(files: Filesystem) -> list[str]:
    return sorted(entry.name for entry in files.list())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["threads", "awaited"])
def test_a_run_cancelled_anywhere_is_merged_or_leaves_no_trace(engine: str, tmp_path: Path) -> None:
    forks: list[AnySession] = []

    def keep(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        forks.append(context.session)
        return ToolResult("kept", None)

    async def scenario(point: Point, place: Path) -> None:
        loop, threads = asyncio.get_running_loop(), ThreadPoolExecutor()
        loop.set_default_executor(threads)
        session = await opened(engine, place)
        files = InMemoryFilesystem(session)
        tools = SessionToolset[object](
            Toolset(session, files, tools=[*DEFAULT_TOOLS, Tool("keep", "Keep the session.", Nothing, keep)])
        )
        before = session.seq
        forks.clear()

        result = await point.cancels(agent(scripted([("keep", {}), write("/a", "1")]), tools).run(""))

        found, seq = names(files), session.seq
        assert isinstance(result, asyncio.CancelledError) == point.was_reached
        assert found == ["a"] or (point.was_reached and seq == before)
        for fork in forks:
            with pytest.raises(SessionClosed):
                InMemoryFilesystem(fork).write("/late", "")
        # Nothing takes effect later.
        await tasks_ended()
        threads.shutdown()
        loop.set_default_executor(ThreadPoolExecutor())
        assert (names(files), session.seq) == (found, seq)
        session.close() if engine == "threads" else await session.aclose()

    assert at_each_point(scenario, tmp_path) > 3


@pytest.mark.slow
def test_a_run_on_the_host_that_fails_and_is_cancelled_is_reverted(tmp_path: Path) -> None:
    async def scenario(point: Point, place: Path) -> None:
        (place / "root").mkdir()
        session = Session(session_id="s")
        files = HostFilesystem(place / "root", session=session, store=place / "store")
        failing = agent(scripted([write("/a", "1")], [("end", {})]), SessionToolset(Toolset(session, files)))

        @failing.tool_plain
        def end() -> str:
            raise ZeroDivisionError

        result = await point.cancels(failing.run("go"))

        # pydantic-ai does not always raise the cancellation.
        assert isinstance(result, (asyncio.CancelledError, ZeroDivisionError))
        assert names(files) == []
        await tasks_ended()
        assert names(files) == []

    assert at_each_point(scenario, tmp_path) > 3
