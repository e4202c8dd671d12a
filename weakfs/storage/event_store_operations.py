"""The operations on an event store, as values: what steps yield."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weakfs.class_decorators import frozen
from weakfs.storage.event_store import AsyncEventStore, Checkpoint, EventStore, Frame, Lease


class Operation:
    """One operation on an event store."""

    __slots__ = ()

    def run(self, store: Any) -> Any:
        """Perform the operation. The methods of an asynchronous store return awaitables instead of results."""
        raise NotImplementedError

    async def arun(self, store: AsyncEventStore) -> object:
        """Perform the operation with an asynchronous store."""
        return await self.run(store)


@frozen
class Append(Operation):
    """Append frames; the result is the number of the last one."""

    stream: str
    expected: int
    frames: Sequence[bytes]
    contents: Mapping[str, bytes] | None = None
    fencing: int | None = None

    def run(self, store: EventStore) -> int:
        return store.append(self.stream, self.expected, self.frames, contents=self.contents, fencing=self.fencing)


@frozen
class Read(Operation):
    """Read the frames after a given one; a synchronous store reads them while they are iterated over."""

    stream: str
    after: int
    limit: int | None = None

    def run(self, store: EventStore) -> Iterable[Frame]:
        return store.read(self.stream, after=self.after, limit=self.limit)

    async def arun(self, store: AsyncEventStore) -> Iterable[Frame]:
        return [frame async for frame in store.read(self.stream, after=self.after, limit=self.limit)]


@frozen
class Head(Operation):
    """Ask for the number of the newest frame."""

    stream: str

    def run(self, store: EventStore) -> int:
        return store.head(self.stream)


@frozen
class Wait(Operation):
    """Wait up to `timeout` seconds for a frame after a given one; the result is the number of the newest frame."""

    stream: str
    after: int
    timeout: float

    def run(self, store: EventStore) -> int:
        return store.wait(self.stream, self.after, self.timeout)


@frozen
class PutContents(Operation):
    """Store contents by digest."""

    stream: str
    contents: Mapping[str, bytes]

    def run(self, store: EventStore) -> None:
        return store.put_contents(self.stream, self.contents)


@frozen
class GetContents(Operation):
    """Read contents by digest."""

    stream: str
    digests: Sequence[str]

    def run(self, store: EventStore) -> dict[str, bytes]:
        return store.get_contents(self.stream, self.digests)


@frozen
class GetCheckpoint(Operation):
    """Read the newest checkpoint."""

    stream: str

    def run(self, store: EventStore) -> Checkpoint | None:
        return store.get_checkpoint(self.stream)


@frozen
class ListStreams(Operation):
    """List the first streams."""

    limit: int

    def run(self, store: EventStore) -> list[str]:
        return store.streams(limit=self.limit)


@frozen
class TakeLease(Operation):
    """Take or renew a lease."""

    stream: str
    owner: str
    seconds: float

    def run(self, store: EventStore) -> Lease:
        return store.lease(self.stream, self.owner, self.seconds)


@frozen
class ReleaseLease(Operation):
    """Release a lease."""

    lease: Lease

    def run(self, store: EventStore) -> None:
        return store.release(self.lease)
