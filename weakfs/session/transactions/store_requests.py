"""The operations on an event store that commits consist of, each with its synchronous and asynchronous form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weakfs.class_decorators import frozen
from weakfs.storage.event_store import AsyncEventStore, Checkpoint, EventStore, Frame, Lease


@frozen
class Append:
    """Append frames; the result is the number of the last one."""

    stream: str
    expected: int
    frames: Sequence[bytes]
    contents: Mapping[str, bytes] | None = None
    fencing: int | None = None

    def run(self, store: EventStore) -> int:
        return store.append(self.stream, self.expected, self.frames, contents=self.contents, fencing=self.fencing)

    async def arun(self, store: AsyncEventStore) -> int:
        return await store.append(self.stream, self.expected, self.frames, contents=self.contents, fencing=self.fencing)


@frozen
class Read:
    """Read the frames after a given one; a synchronous store reads them while they are iterated over."""

    stream: str
    after: int
    limit: int | None = None

    def run(self, store: EventStore) -> Iterable[Frame]:
        return store.read(self.stream, after=self.after, limit=self.limit)

    async def arun(self, store: AsyncEventStore) -> Iterable[Frame]:
        return [frame async for frame in store.read(self.stream, after=self.after, limit=self.limit)]


@frozen
class Head:
    """Ask for the number of the newest frame."""

    stream: str

    def run(self, store: EventStore) -> int:
        return store.head(self.stream)

    async def arun(self, store: AsyncEventStore) -> int:
        return await store.head(self.stream)


@frozen
class Wait:
    """Wait up to `timeout` seconds for a frame after a given one; the result is the number of the newest frame."""

    stream: str
    after: int
    timeout: float

    def run(self, store: EventStore) -> int:
        return store.wait(self.stream, self.after, self.timeout)

    async def arun(self, store: AsyncEventStore) -> int:
        return await store.wait(self.stream, self.after, self.timeout)


@frozen
class PutContents:
    """Store contents by digest."""

    stream: str
    contents: Mapping[str, bytes]

    def run(self, store: EventStore) -> None:
        store.put_contents(self.stream, self.contents)

    async def arun(self, store: AsyncEventStore) -> None:
        await store.put_contents(self.stream, self.contents)


@frozen
class GetContents:
    """Read contents by digest."""

    stream: str
    digests: Sequence[str]

    def run(self, store: EventStore) -> dict[str, bytes]:
        return store.get_contents(self.stream, self.digests)

    async def arun(self, store: AsyncEventStore) -> dict[str, bytes]:
        return await store.get_contents(self.stream, self.digests)


@frozen
class GetCheckpoint:
    """Read the newest checkpoint."""

    stream: str

    def run(self, store: EventStore) -> Checkpoint | None:
        return store.get_checkpoint(self.stream)

    async def arun(self, store: AsyncEventStore) -> Checkpoint | None:
        return await store.get_checkpoint(self.stream)


@frozen
class ListStreams:
    """List the first streams."""

    limit: int

    def run(self, store: EventStore) -> list[str]:
        return store.streams(limit=self.limit)

    async def arun(self, store: AsyncEventStore) -> list[str]:
        return await store.streams(limit=self.limit)


@frozen
class TakeLease:
    """Take or renew a lease."""

    stream: str
    owner: str
    seconds: float

    def run(self, store: EventStore) -> Lease:
        return store.lease(self.stream, self.owner, self.seconds)

    async def arun(self, store: AsyncEventStore) -> Lease:
        return await store.lease(self.stream, self.owner, self.seconds)


@frozen
class ReleaseLease:
    """Release a lease."""

    lease: Lease

    def run(self, store: EventStore) -> None:
        store.release(self.lease)

    async def arun(self, store: AsyncEventStore) -> None:
        await store.release(self.lease)
