"""Sessions on an event loop: calls that are cancelled or cannot be stored are complete or undone."""

from __future__ import annotations

import asyncio
import threading
from random import Random

import pytest

from tests.sampling import sample
from tests.session.durable.awaited import GatedStreams, Nothing, gated_session, ids, is_as_stored, names, turns, write
from weakfs import InMemoryFilesystem, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.storage import OutcomeUnknown, StorageError
from weakfs.tools import ToolCalls, require_filesystem


async def cancelled_write(store: GatedStreams, tools: Toolset, moment: str) -> None:
    """Write `/lost` in a call that is cancelled at a moment of its append."""
    store.hold(moment)
    call = asyncio.create_task(write(tools, "/lost"))
    await store.reached()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_call_cancelled_during_its_commit_is_undone(moment: str) -> None:
    store, session, tools = await gated_session()
    await write(tools, "/kept")
    before = session.to_bytes()
    await cancelled_write(store, tools, moment)
    assert session.to_bytes() == before
    assert ids(session) == ["kept"]
    store.let_go()
    # If it was stored after all, this is noticed and rolled back.
    assert (await write(tools, "/next")).success
    assert names(session) == ["kept", "next"]
    await is_as_stored(session, store)


async def test_others_do_not_see_a_cancelled_call_that_was_stored() -> None:
    store, session, tools = await gated_session()
    await write(tools, "/kept")
    await cancelled_write(store, tools, "after")
    store.let_go()
    await session.aflush()

    other = await Session.aopen(store, "s")
    assert names(other) == ["kept"]
    assert (await write(Toolset(other), "/others")).success
    await session.arefresh()
    assert names(session) == ["kept", "others"]
    await is_as_stored(session, store)


async def test_closing_undoes_a_cancelled_call_that_was_stored() -> None:
    store, session, tools = await gated_session()
    await write(tools, "/kept")
    await cancelled_write(store, tools, "after")
    store.let_go()

    await session.aclose()

    async with await Session.aopen(store, "s") as again:
        assert names(again) == ["kept"]


@pytest.mark.parametrize("steps", sample(range(12)))
async def test_a_call_cancelled_after_any_number_of_steps_is_complete_or_undone(steps: int) -> None:
    store, session, tools = await gated_session()
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


async def test_a_call_that_waits_for_its_turn_can_be_cancelled() -> None:
    store, session, tools = await gated_session()
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


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_others_in_the_same_append_as_a_cancelled_call_are_stored(moment: str) -> None:
    store, session, tools = await gated_session()
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


async def test_each_caller_gets_its_own_error() -> None:
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


@pytest.mark.parametrize("error", [StorageError("told to fail"), OutcomeUnknown("told to vanish")])
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_calls_that_cannot_be_stored_are_undone(error: StorageError, moment: str) -> None:
    store, session, tools = await gated_session()
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


@pytest.mark.parametrize("seed", sample(range(60)))
async def test_calls_that_fail_or_are_cancelled_at_random_are_complete_or_undone(seed: int) -> None:
    dice = Random(seed)

    class Faulty(GatedStreams):
        async def _pass(self, moment: str, count: int) -> None:
            for _ in range(dice.randrange(4)):
                await asyncio.sleep(0)
            if dice.random() < 0.2:
                raise dice.choice([OutcomeUnknown, StorageError])("told to fail")

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
            # A change stays if the other session built on it before it could be rolled back.
            assert seed % 2 or name not in names(session)
        else:
            assert isinstance(result, asyncio.CancelledError)
    recorded = [call.call_id for call in session[ToolCalls].all() if call.status == "ok"]
    assert set(names(session)) <= set(recorded)


async def test_an_append_whose_outcome_is_unknown_is_sent_again_and_stored_once() -> None:
    store, session, tools = await gated_session()
    lost = [OutcomeUnknown("the connection was lost")]

    def lose(moment: str) -> None:
        if moment == "after" and lost:
            raise lost.pop()

    store.fault = lose
    assert (await write(tools, "/a")).success
    assert ids(session) == ["a"]
    await is_as_stored(session, store)


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
