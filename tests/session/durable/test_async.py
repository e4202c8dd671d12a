"""Sessions opened on an event loop, which awaits their commits and runs other tasks meanwhile."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Literal

import pytest

from tests.session.durable.awaited import GatedStreams, Nothing, gated_session, ids, is_as_stored, names, turns, write
from tests.session.durable.streams import MemoryStreams
from weakfs import HostFilesystem, InMemoryFilesystem, MergeConflict, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.session import RolledBack, SessionClosed, SessionConflict, SessionError
from weakfs.storage import StorageError
from weakfs.storage.engines.memory import AsyncMemoryStorage
from weakfs.tools import ToolCall, require_filesystem


async def test_other_tasks_continue_while_an_append_waits() -> None:
    store, session, tools = await gated_session()
    store.hold("before")
    call = asyncio.create_task(write(tools, "/a"))
    await store.reached()
    assert not call.done()
    assert names(session) == []
    store.let_go()
    assert (await call).success
    assert names(session) == ["a"]
    await is_as_stored(session, store)


@pytest.mark.slow
async def test_a_thousand_concurrent_calls_share_appends_and_lose_nothing() -> None:
    store, session, tools = await gated_session()
    store.hold("before")
    calls = [asyncio.create_task(write(tools, f"/{n % 40}/{n}", str(n))) for n in range(1000)]
    await store.reached()
    await turns()
    store.let_go()
    assert all(result.success for result in await asyncio.gather(*calls))
    assert ids(session) == [f"{n % 40}/{n}" for n in range(1000)]
    assert sum(store.groups) == 1000
    assert len(store.groups) < 20
    fs = InMemoryFilesystem(session)
    assert all(fs.read(f"/{n % 40}/{n}").content == str(n) for n in range(1000))
    await is_as_stored(session, store)


async def test_a_synchronous_change_completes_the_commit_that_is_under_way() -> None:
    streams = MemoryStreams()
    streams.url = "elsewhere:"
    session = await Session.aopen(streams, "s")
    tools = Toolset(session)
    call = asyncio.create_task(write(tools, "/a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    InMemoryFilesystem(session).write("/b", "2")
    assert names(session)[-1] == "b"
    assert (await call).success
    assert names(session) == ["a", "b"]
    await session.aclose()
    assert names(Session.open(streams, "s")) == ["a", "b"]


async def test_threads_and_tasks_change_one_session() -> None:
    streams = MemoryStreams()
    streams.url = "elsewhere:"
    session = await Session.aopen(streams, "s")
    tools = Toolset(session)
    fs = InMemoryFilesystem(session)

    def work(place: int) -> None:
        for number in range(20):
            fs.write(f"/thread-{place}-{number}", str(number))

    threads = asyncio.gather(*(asyncio.to_thread(work, place) for place in range(2)))
    results = await asyncio.gather(*(write(tools, f"/call-{number}") for number in range(40)))
    await threads
    assert all(result.success for result in results)
    assert len(names(session)) == 80
    await session.aclose()
    assert Session.open(streams, "s").to_bytes() == session.to_bytes()


async def test_a_synchronous_change_that_would_wait_for_its_own_loop_is_refused() -> None:
    store = GatedStreams()
    session = await Session.aopen(store, "s")
    InMemoryFilesystem(session).write("/in-place", "1")
    store.hold("before")
    with pytest.raises(StorageError, match=r"async with session\.transaction"):
        InMemoryFilesystem(session).write("/waits", "2")
    store.let_go()
    async with session.transaction():
        InMemoryFilesystem(session).write("/awaited", "3")
    assert names(session) == ["awaited", "in-place"]
    await is_as_stored(session, store)


async def test_a_handler_in_a_thread_is_committed_by_the_loop() -> None:
    threads: list[int] = []

    def handle(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        threads.append(threading.get_ident())
        require_filesystem(context).write("/a", "by a thread")
        return ToolResult("done", None)

    store = GatedStreams()
    session = await Session.aopen(store, "s")
    tools = Toolset(session, tools=[Tool("slow", "", Nothing, handle)])
    store.hold("before")
    call = asyncio.create_task(tools.acall("slow", {}))
    await store.reached()
    assert threads[0] != threading.get_ident()
    assert names(session) == []
    store.let_go()
    assert (await call).success
    assert names(session) == ["a"]
    await is_as_stored(session, store)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_host_directory_and_its_session_are_committed_together(tmp_path: Path, fails: bool) -> None:
    store = GatedStreams()
    session = await Session.aopen(store, "s")
    (tmp_path / "root").mkdir()
    files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
    tools = Toolset(session, files)
    assert (await write(tools, "/kept")).success

    def fail(moment: str) -> None:
        if moment == "before" and fails:
            raise StorageError("told to fail")

    store.fault = fail
    results = await asyncio.gather(write(tools, "/a"), return_exceptions=True)
    store.fault = lambda moment: None
    assert isinstance(results[0], StorageError) == fails
    assert (tmp_path / "root" / "a").exists() != fails
    await session.arefresh()
    assert ids(session) == (["kept"] if fails else ["kept", "a"])
    await is_as_stored(session, store)


@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
async def test_two_sessions_change_one_stream(on_conflict: Literal["raise", "merge"]) -> None:
    store = GatedStreams()
    one, other = [await Session.aopen(store, "s", on_conflict=on_conflict) for _ in range(2)]
    assert (await write(Toolset(one), "/one", "1" * 1000)).success
    if on_conflict == "raise":
        with pytest.raises(SessionConflict):
            await write(Toolset(other), "/other")
        assert await other.arefresh() > 0
    assert (await write(Toolset(other), "/other")).success
    await one.arefresh()
    assert names(one) == names(other) == ["one", "other"]
    assert one.to_bytes() == other.to_bytes()


async def test_changes_by_both_are_merged_by_lines_or_refused() -> None:
    store = GatedStreams()
    lines = [f"line {number} {'x' * 40}\n" for number in range(30)]
    one, other = [await Session.aopen(store, "s", on_conflict="merge") for _ in range(2)]
    fs = [InMemoryFilesystem(session) for session in (one, other)]
    async with one.transaction():
        fs[0].write("/a", "".join(lines))
    await one.acheckpoint()
    # So that the contents are not in memory.
    other = await Session.aopen(store, "s", on_conflict="merge")
    fs[1] = InMemoryFilesystem(other)
    async with one.transaction():
        fs[0].write("/a", "".join(["first\n", *lines[1:]]))
    async with other.transaction():
        fs[1].write("/a", "".join([*lines[:-1], "last\n"]))
    assert fs[1].read("/a").content == "".join(["first\n", *lines[1:-1], "last\n"])
    with pytest.raises(MergeConflict):
        async with one.transaction():
            fs[0].write("/a", "".join(["second\n", *lines[1:]]))
            async with other.transaction():
                fs[1].write("/a", "".join(["third\n", *lines[1:-1], "last\n"]))
    await one.aflush()
    await other.arefresh()
    assert one.to_bytes() == other.to_bytes()


@pytest.mark.parametrize("is_awaited", [False, True])
async def test_a_call_that_conflicts_with_the_changes_of_others_names_its_own_records(is_awaited: bool) -> None:
    streams = MemoryStreams()
    streams.url = "elsewhere:"
    with Session.open(streams, "s") as other:
        fs = InMemoryFilesystem(other)
        fs.write("/a", "base\n")
        session = (
            await Session.aopen(streams, "s", on_conflict="merge")
            if is_awaited
            else Session.open(streams, "s", on_conflict="merge")
        )
        for path in ("/a", "/b", "/c"):
            fs.write(path, "other\n")
    result = await write(Toolset(session), "/a", "mine\n")
    assert result.error_code == "merge_conflict"
    (call,) = session[ToolCall].all()
    assert (call.first_seq, call.last_seq) == (6, 7)
    assert [record.cause for record in session.records[5:7]] == [call.call_id] * 2
    assert isinstance(session.records[6].event, RolledBack)


async def test_a_session_is_followed_with_async_for() -> None:
    store = GatedStreams()
    reader = await Session.aopen(store, "s")
    writer = await Session.aopen(store, "s")
    records = reader.awatch()
    following = asyncio.ensure_future(anext(records))
    await turns()
    await write(Toolset(writer), "/a")
    assert type((await following).event).__name__ == "FileWritten"
    await reader.aclose()
    # What it had read up to that point.
    assert [type(record.event).__name__ async for record in records] == ["ToolCall"]


async def test_an_awaited_watcher_receives_records_made_before_its_session_was_closed() -> None:
    session = await Session.aopen(GatedStreams(), "s")
    watched = session.awatch()
    await write(Toolset(session), "/a")
    first = await anext(watched)
    await write(Toolset(session), "/b")
    await session.aclose()
    assert [first.seq] + [record.seq async for record in watched] == list(range(1, session.seq + 1))


async def test_closing_waits_for_the_commits_that_are_under_way() -> None:
    store = GatedStreams()
    session = await Session.aopen(store, "s")
    store.hold("before")
    call = asyncio.create_task(write(Toolset(session), "/a"))
    await store.reached()
    closing = asyncio.create_task(session.aclose())
    await turns()
    assert not closing.done()
    store.let_go()
    await closing
    assert (await call).success
    with pytest.raises(SessionClosed):
        async with session.transaction():
            InMemoryFilesystem(session).write("/late", "1")


async def test_a_session_with_one_stream_opens_without_an_id_and_more_are_named() -> None:
    store = AsyncMemoryStorage()
    async with await Session.aopen(store) as session:
        await write(Toolset(session), "/a")
    async with await Session.aopen(store) as again:
        assert again.session_id == session.session_id
    async with await Session.aopen(store, "other") as other:
        await write(Toolset(other), "/b")
    with pytest.raises(SessionError, match="pass session_id"):
        await Session.aopen(store)
    with pytest.raises(TypeError, match=r"use Session\.aopen"):
        Session.open(store)  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize(
    "location",
    ["memory:", "folder:{}", "folder:{}?durability=power", "sqlite:{}/s.db", "sqlite:{}/s.db?durability=power"],
)
async def test_sessions_on_local_engines_can_be_awaited(location: str, tmp_path: Path) -> None:
    url = location.format(tmp_path)
    async with await Session.aopen(url, "s") as session:
        results = await asyncio.gather(*(write(Toolset(session), f"/{n}") for n in range(20)))
        assert all(result.success for result in results)
        await session.acheckpoint()
        await session.aflush()
        await write(Toolset(session), "/after")
        await session.acopy_to(tmp_path / "copy")
    async with await Session.aopen(tmp_path / "copy") as copied:
        assert len(names(copied)) == 21
    if not location.startswith("memory:"):
        async with await Session.aopen(url, "s") as again:
            assert again.to_bytes() == session.to_bytes()


async def test_an_exclusive_session_keeps_others_out() -> None:
    store = GatedStreams()
    async with await Session.aopen(store, "s", exclusive=True) as session:
        await write(Toolset(session), "/a")
        other = await Session.aopen(store, "s")
        with pytest.raises(StorageError, match="lease"):
            await write(Toolset(other), "/b")
    assert (await write(Toolset(other), "/b")).success
