"""Sessions that were opened on an event loop: it awaits their commits, and goes on with other tasks meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine
from pathlib import Path
from random import Random
from typing import Literal

import pytest
from attrs import frozen

from tests.sampling import sample
from tests.session.durable.awaited import GatedStreams
from tests.session.durable.streams import MemoryStreams
from weakfs import HostFilesystem, InMemoryFilesystem, MergeConflict, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.session import SessionClosed, SessionConflict, SessionError
from weakfs.storage import OutcomeUnknown, StorageError
from weakfs.storage.adapters import ThreadedEventStore
from weakfs.storage.engines.memory import AsyncMemoryStorage
from weakfs.tools import ToolCalls, require_filesystem


def names(session: Session) -> list[str]:
    return sorted(entry.name for entry in InMemoryFilesystem(session).list())


def ids(session: Session) -> list[str]:
    return [call.call_id for call in session[ToolCalls].all()]


def write(tools: Toolset, path: str, content: str = "1") -> Coroutine[object, None, ToolResult[object]]:
    return tools.acall("write_file", {"path": path, "content": content}, call_id=path[1:])


async def is_as_stored(session: Session, store: GatedStreams) -> None:
    """Check that another session opened on the storage is the same."""
    async with await Session.aopen(store, session.session_id) as other:
        assert other.to_bytes() == session.to_bytes()


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_other_tasks_go_on_while_an_append_waits() -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session)
        store.hold("before")
        call = asyncio.create_task(write(tools, "/a"))
        await store.reached()
        assert not call.done()
        assert names(session) == []
        store.let_go()
        assert (await call).success
        assert names(session) == ["a"]
        await is_as_stored(session, store)

    asyncio.run(main())


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_call_cancelled_during_its_commit_is_undone(moment: str) -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session)
        await write(tools, "/kept")
        before = session.to_bytes()
        store.hold(moment)
        call = asyncio.create_task(write(tools, "/lost"))
        await store.reached()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert session.to_bytes() == before
        assert ids(session) == ["kept"]
        store.let_go()
        # If it was stored after all, that is recognized and rolled back.
        assert (await write(tools, "/next")).success
        assert names(session) == ["kept", "next"]
        await is_as_stored(session, store)

    asyncio.run(main())


def test_others_do_not_see_a_cancelled_call_that_was_stored_nevertheless() -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session)
        await write(tools, "/kept")
        store.hold("after")
        call = asyncio.create_task(write(tools, "/lost"))
        await store.reached()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        store.let_go()
        await session.aflush()

        other = await Session.aopen(store, "s")
        assert names(other) == ["kept"]
        assert (await write(Toolset(other), "/others")).success
        await session.arefresh()
        assert names(session) == ["kept", "others"]
        await is_as_stored(session, store)

    asyncio.run(main())


def test_closing_undoes_a_cancelled_call_that_was_stored_nevertheless() -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session)
        await write(tools, "/kept")
        store.hold("after")
        call = asyncio.create_task(write(tools, "/lost"))
        await store.reached()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        store.let_go()

        await session.aclose()

        async with await Session.aopen(store, "s") as again:
            assert names(again) == ["kept"]

    asyncio.run(main())


@pytest.mark.parametrize("steps", sample(range(12)))
def test_a_call_cancelled_after_any_number_of_steps_is_whole_or_undone(steps: int) -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session)
        await write(tools, "/kept")
        call = asyncio.create_task(write(tools, "/a", "x" * 2000))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        try:
            await call
            stays = True
        except asyncio.CancelledError:
            stays = "a" in names(session)
        assert ("a" in ids(session)) == stays
        assert (await write(tools, "/next")).success
        assert names(session) == (["a", "kept", "next"] if stays else ["kept", "next"])
        await is_as_stored(session, store)

    asyncio.run(main())


def test_a_call_that_waits_for_its_turn_can_be_cancelled() -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session)
        store.hold("before")
        first, second, third = (asyncio.create_task(write(tools, path)) for path in ("/a", "/b", "/c"))
        await store.reached()
        await turns()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        store.let_go()
        assert (await first).success
        assert (await third).success
        assert names(session) == ["a", "c"]
        assert ids(session) == ["a", "c"]
        await is_as_stored(session, store)

    asyncio.run(main())


@pytest.mark.parametrize("moment", ["before", "after"])
def test_others_in_the_same_append_as_a_cancelled_call_are_stored(moment: str) -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session)
        store.hold("before")
        first = asyncio.create_task(write(tools, "/first"))
        await store.reached()
        others = [asyncio.create_task(write(tools, f"/{n}")) for n in range(4)]
        await turns()
        store.let_go()
        store.hold(moment, frames=2)
        await first
        await store.reached()
        others[2].cancel()
        with pytest.raises(asyncio.CancelledError):
            await others[2]
        assert names(session) == ["first"]
        store.let_go()
        results = await asyncio.gather(*(call for n, call in enumerate(others) if n != 2))
        assert all(result.success for result in results)
        assert names(session) == ["0", "1", "3", "first"]
        await is_as_stored(session, store)

    asyncio.run(main())


@pytest.mark.slow
def test_a_thousand_calls_at_once_share_appends_and_lose_nothing() -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session)
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

    asyncio.run(main())


def test_each_caller_gets_its_own_error() -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session, refuse_stale_writes=False)
        await write(tools, "/shared", "base\n")
        store.hold("before")
        first = asyncio.create_task(write(tools, "/first"))
        await store.reached()
        calls = [
            write(tools, "/shared", "one\n"),
            write(tools, "/shared", "two\n"),
            tools.acall("rm", {"path": "/missing"}, call_id="missing"),
            tools.acall("write_file", {"path": "/x"}, call_id="malformed"),
            write(tools, "/other"),
        ]
        tasks = [asyncio.create_task(call) for call in calls]
        await turns()
        store.let_go()
        results = await asyncio.gather(first, *tasks)
        assert [result.error_code for result in results] == [
            None, None, "merge_conflict", "not_found", "invalid_arguments", None
        ]  # fmt: skip
        assert InMemoryFilesystem(session).read("/shared").content == "one\n"
        await is_as_stored(session, store)

    asyncio.run(main())


@pytest.mark.parametrize("error", [StorageError("told to fail"), OutcomeUnknown("told to vanish")])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_calls_that_cannot_be_stored_are_undone(error: StorageError, moment: str) -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session)
        await write(tools, "/kept")
        before = session.to_bytes()

        def fail(now: str) -> None:
            if now == moment:
                raise error

        store.fault = fail
        results = await asyncio.gather(*(write(tools, f"/{n}") for n in range(3)), return_exceptions=True)
        assert all(isinstance(result, StorageError) for result in results)
        assert session.to_bytes() == before
        store.fault = lambda moment: None
        assert (await write(tools, "/next")).success
        assert names(session) == ["kept", "next"]
        await is_as_stored(session, store)

    asyncio.run(main())


@pytest.mark.parametrize("seed", sample(range(60)))
def test_calls_that_fail_or_are_cancelled_at_random_are_whole_or_undone(seed: int) -> None:
    dice = Random(seed)

    class Faulty(GatedStreams):
        async def _pass(self, moment: str, count: int) -> None:
            for _ in range(dice.randrange(4)):
                await asyncio.sleep(0)
            if dice.random() < 0.2:
                raise dice.choice([OutcomeUnknown, StorageError])("told to fail")

    async def main() -> None:
        store = Faulty()
        session = await Session.aopen(store, "s", on_conflict="merge")
        other = await Session.aopen(store, "s", on_conflict="merge")
        calls: dict[str, asyncio.Task[ToolResult[object]]] = {}
        for number in range(24):
            tools = Toolset(dice.choice([session, session, other] if seed % 2 else [session]))
            calls[str(number)] = asyncio.create_task(write(tools, f"/{number}"))
            for _ in range(dice.randrange(6)):
                await asyncio.sleep(0)
            if dice.random() < 0.3:
                dice.choice([*calls.values()]).cancel()
        ended = await asyncio.gather(*calls.values(), return_exceptions=True)
        for one in (session, other):
            while True:
                try:
                    await one.arefresh()
                    break
                except StorageError:
                    continue
        assert names(session) == names(other)
        for name, result in zip(calls, ended, strict=True):
            if isinstance(result, ToolResult) and result.success:
                assert name in names(session)
            elif isinstance(result, (ToolResult, StorageError)):
                # One on which the other session had built before it could be rolled back stays.
                assert seed % 2 or name not in names(session)
            else:
                assert isinstance(result, asyncio.CancelledError)
        recorded = [call.call_id for call in session[ToolCalls].all() if call.status == "ok"]
        assert set(names(session)) <= set(recorded)

    asyncio.run(main())


def test_an_append_whose_outcome_is_unknown_is_sent_again_and_stored_once() -> None:
    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session)
        lost = [OutcomeUnknown("the connection was lost")]

        def lose(moment: str) -> None:
            if moment == "after" and lost:
                raise lost.pop()

        store.fault = lose
        assert (await write(tools, "/a")).success
        assert ids(session) == ["a"]
        await is_as_stored(session, store)

    asyncio.run(main())


def test_a_synchronous_change_completes_the_commit_that_is_under_way() -> None:
    async def main() -> None:
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

    asyncio.run(main())


def test_threads_and_tasks_change_one_session() -> None:
    async def main() -> None:
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

    asyncio.run(main())


def test_a_synchronous_change_is_refused_where_it_would_have_to_wait_for_its_own_loop() -> None:
    async def main() -> None:
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

    asyncio.run(main())


@frozen
class Nothing:
    """No parameters."""


def test_a_handler_in_a_thread_is_committed_by_the_loop() -> None:
    threads: list[int] = []

    def handle(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        threads.append(threading.get_ident())
        require_filesystem(context).write("/a", "by a thread")
        return ToolResult("done", None)

    async def main() -> None:
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

    asyncio.run(main())


def test_a_call_cancelled_while_its_handler_hangs_is_undone_and_recorded() -> None:
    reached, may_go, refused = threading.Event(), threading.Event(), list[BaseException]()

    def handle(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        fs = require_filesystem(context)
        fs.write("/half", "1")
        reached.set()
        may_go.wait(60)
        try:
            fs.write("/late", "2")
        except BaseException as error:
            refused.append(error)
            raise
        return ToolResult("done", None)

    async def main() -> None:
        store = GatedStreams()
        session = await Session.aopen(store, "s")
        tools = Toolset(session, tools=[Tool("slow", "", Nothing, handle)])
        call = asyncio.create_task(tools.acall("slow", {}, call_id="slow"))
        await asyncio.to_thread(reached.wait, 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        may_go.set()
        await session.aflush()
        assert names(session) == []
        assert [(one.call_id, one.error_code) for one in session[ToolCalls].all()] == [("slow", "cancelled")]
        await is_as_stored(session, store)

    asyncio.run(main())
    assert len(refused) <= 1


@pytest.mark.parametrize("fails", [False, True])
def test_a_host_directory_and_its_session_are_committed_together(tmp_path: Path, fails: bool) -> None:
    async def main() -> None:
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

    asyncio.run(main())


@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
def test_two_sessions_change_one_stream(on_conflict: Literal["raise", "merge"]) -> None:
    async def main() -> None:
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

    asyncio.run(main())


def test_what_both_changed_is_merged_by_lines_or_refused() -> None:
    async def main() -> None:
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

    asyncio.run(main())


def test_a_session_is_followed_with_async_for() -> None:
    async def main() -> None:
        store = GatedStreams()
        reader = await Session.aopen(store, "s")
        writer = await Session.aopen(store, "s")
        records = reader.awatch()
        following = asyncio.ensure_future(anext(records))
        await turns()
        await write(Toolset(writer), "/a")
        assert type((await following).event).__name__ == "FileWritten"
        await reader.aclose()
        # What it had read by then.
        assert [type(record.event).__name__ async for record in records] == ["ToolCall"]

    asyncio.run(main())


def test_closing_waits_for_the_commits_that_are_under_way() -> None:
    async def main() -> None:
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

    asyncio.run(main())


def test_a_session_with_one_stream_opens_without_an_id_and_more_are_named() -> None:
    async def main() -> None:
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

    asyncio.run(main())


@pytest.mark.parametrize(
    "location",
    ["memory:", "folder:{}", "folder:{}?durability=power", "sqlite:{}/s.db", "sqlite:{}/s.db?durability=power"],
)
def test_local_engines(location: str, tmp_path: Path) -> None:
    async def main() -> None:
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

    asyncio.run(main())


def test_an_exclusive_session_keeps_others_out() -> None:
    async def main() -> None:
        store = GatedStreams()
        async with await Session.aopen(store, "s", exclusive=True) as session:
            await write(Toolset(session), "/a")
            other = await Session.aopen(store, "s")
            with pytest.raises(StorageError, match="lease"):
                await write(Toolset(other), "/b")
        assert (await write(Toolset(other), "/b")).success

    asyncio.run(main())


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
def test_a_call_is_not_repeated_by_the_process_that_goes_on(moment: str, how: str) -> None:
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


def test_a_call_that_failed_or_was_rolled_back_is_made_again() -> None:
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
