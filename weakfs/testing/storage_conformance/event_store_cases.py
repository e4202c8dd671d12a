"""`EventStoreConformance`: what every store of event streams must do."""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from weakfs.storage import AsyncEventStore, EventStore, SyncEventStore

from .content_cases import ContentCases
from .frame_cases import FrameCases
from .storage_cases import cancel_after
from .stream_cases import StreamCases


class EventStoreConformance(FrameCases, ContentCases, StreamCases):
    """Test an event store; inherit from it and implement `open_event_store`."""


class AsyncEventStoreConformance(EventStoreConformance):
    """Test an event store with `async` methods; inherit from it and implement `aopen_event_store`."""

    @abstractmethod
    async def aopen_event_store(self) -> AsyncEventStore:
        """Open the store of the running test, as `EventStoreConformance.open_event_store` does."""

    def open_event_store(self) -> EventStore:
        return SyncEventStore.opened(self.aopen_event_store())

    def test_a_cancelled_append_is_whole_or_absent(self) -> None:
        async def cancel() -> None:
            store = await self.aopen_event_store()
            for steps in range(30):
                number, frames = await store.head("s"), [b"%d" % steps, b"b", b"c"]
                task = asyncio.ensure_future(store.append("s", number, frames, contents={f"{steps:02x}": b"c"}))
                was_done = await cancel_after(task, steps)
                found = [frame.data async for frame in store.read("s", after=number)]
                assert found == frames or (not found and not was_done)
                if found:
                    assert await store.has_contents("s", [f"{steps:02x}"])
                assert await store.append("s", number, frames) == number + 3
            await store.close()

        asyncio.run(cancel())

    def test_a_cancelled_wait_ends(self) -> None:
        async def cancel() -> None:
            store = await self.aopen_event_store()
            task = asyncio.ensure_future(store.wait("s", 0, 3600))
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])
            assert await store.append("s", 0, [b"a"]) == 1
            assert await store.wait("s", 0, 3600) == 1
            await store.close()

        asyncio.run(cancel())
