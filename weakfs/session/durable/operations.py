"""Commits as steps: generators that yield operations on an event store, and get each result back.

What a commit does is written once. `run` performs its operations with a synchronous store; a `Flight` lets an event
loop await them, with the session unlocked in the meantime. Every operation can be repeated: a store recognizes frames
that it already has.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from attrs import frozen

from weakfs.storage.event_store import AsyncEventStore, Checkpoint, EventStore, Frame, Lease

T = TypeVar("T")


class Operation(Protocol):
    """One operation on an event store."""

    def run(self, store: EventStore) -> object: ...
    async def arun(self, store: AsyncEventStore) -> object: ...


# Each operation that is yielded gets its result sent back, or its error thrown.
Steps = Generator[Operation, Any, T]


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
    """Read the frames after one; a synchronous store reads them while they are iterated over."""

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


def run(steps: Steps[T], store: EventStore) -> T:
    """Perform steps with a synchronous store, and return their result."""
    try:
        operation = next(steps)
        while True:
            try:
                reply = operation.run(store)
            except BaseException as error:
                operation = steps.throw(error)
            else:
                operation = steps.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


class ContentsNeeded(BaseException):
    """Contents that are not in memory are needed by code that cannot wait for them; see `supplied`."""

    def __init__(self, stream: str, digests: Sequence[str]) -> None:
        self.stream, self.digests = stream, digests
        super().__init__(stream, digests)


# The contents that the running step was given, `None` for those that the stream does not have. Outside `supplied` there
# are none: a store then reads.
_SUPPLIED: ContextVar[dict[str, bytes | None] | None] = ContextVar("weakfs_supplied", default=None)


def supplied(step: Callable[[], T]) -> Steps[T]:
    """Return the result of `step`, with the contents that it reads from the stream fetched between the steps.

    It is repeated whenever it needs contents that are not there yet, so it must not change anything before it ends.
    """
    contents: dict[str, bytes | None] = {}
    while True:
        token = _SUPPLIED.set(contents)
        try:
            return step()
        except ContentsNeeded as needed:
            stream, digests = needed.stream, needed.digests
        finally:
            _SUPPLIED.reset(token)
        found = yield GetContents(stream, digests)
        contents.update({digest: found.get(digest) for digest in digests})


def supplied_contents(stream: str, digests: Sequence[str]) -> dict[str, bytes] | None:
    """Return the contents that the running step was given, or `None` if it may read.

    Raises `ContentsNeeded` if some are missing.
    """
    contents = _SUPPLIED.get()
    if contents is None:
        return None
    missing = [digest for digest in digests if digest not in contents]
    if missing:
        raise ContentsNeeded(stream, missing)
    return {digest: found for digest in digests if (found := contents[digest]) is not None}
