"""Adapters between engines with and without `async`: where their calls run, and what cancelling them does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from weakfs.storage import AsyncMemoryStorage, AsyncStorage, MemoryStorage, SyncStorage, ThreadedStorage
from weakfs.storage.adapters import BackgroundLoop, run_in_place


class Held(MemoryStorage):
    """A storage whose changes wait until they are released."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.let_go = threading.Event(), threading.Event()

    def set(self, key: str, value: bytes) -> None:
        self.begun.set()
        assert self.let_go.wait(60)
        super().set(key, value)


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    held.let_go.set()


async def test_cancelling_a_started_call_waits_for_its_end(held: Held) -> None:
    storage = ThreadedStorage(held)
    task = asyncio.ensure_future(storage.set("a", b"1"))
    await asyncio.to_thread(held.begun.wait)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    held.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await storage.get("a") == b"1"
    await storage.close()


async def test_a_call_cancelled_before_its_start_never_happens(held: Held) -> None:
    storage = ThreadedStorage(held, threads=1)
    first = asyncio.ensure_future(storage.set("a", b"1"))
    await asyncio.to_thread(held.begun.wait)
    second = asyncio.ensure_future(storage.set("b", b"2"))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    held.let_go.set()
    await first
    assert await storage.keys() == ["a"]
    await storage.close()
    await storage.close()


async def test_a_storage_whose_closing_is_cancelled_is_closed(held: Held) -> None:
    closed: list[str] = []
    held.close = lambda: closed.append("storage")  # type: ignore[method-assign]
    storage = ThreadedStorage(held, threads=1)
    change = asyncio.ensure_future(storage.set("a", b"1"))
    await asyncio.to_thread(held.begun.wait)
    closing = asyncio.ensure_future(storage.close())
    for _ in range(3):
        await asyncio.sleep(0)
        closing.cancel()
    held.let_go.set()
    await change
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert closed == ["storage"]


async def test_the_failure_of_a_cancelled_call_is_not_reported(held: Held) -> None:
    storage = ThreadedStorage(held)
    task = asyncio.ensure_future(storage.set("", b"1"))
    await asyncio.to_thread(held.begun.wait)
    task.cancel()
    held.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await storage.close()


def test_coroutines_run_on_a_loop_in_the_background() -> None:
    async def where() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    loop = BackgroundLoop()
    assert loop(where()) == "weakfs-storage"
    loop.close()
    loop.close()
    assert loop.is_closed


def test_a_coroutine_that_waits_cannot_run_synchronously() -> None:
    with pytest.raises(RuntimeError, match="run it with a BackgroundLoop"):
        run_in_place(asyncio.sleep(0))


def test_a_storage_that_cannot_be_opened_leaves_no_thread() -> None:
    async def fail() -> AsyncStorage:
        raise OSError("unreachable")

    before = {*threading.enumerate()}
    with pytest.raises(OSError, match="unreachable"):
        SyncStorage.opened(fail())
    assert {*threading.enumerate()} <= before


def test_an_abandoned_iterator_is_closed() -> None:
    storage = SyncStorage(AsyncMemoryStorage())
    storage.set_many({"a": b"1", "b": b"2"})
    items = storage.items()
    assert next(items) == ("a", b"1")
    del items
    assert storage.clear() == 2
    storage.close()
    storage.close()
