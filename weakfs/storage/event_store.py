"""`EventStore`, the protocol of event streams: numbered frames, contents by digest, and checkpoints.

A stream holds one session. Its frames are numbered 1, 2, 3 without gaps; each holds the data of one commit of the
session. Contents belong to a stream too, so that deleting a session deletes all its data. The frames of different
streams have no order, so sessions can be spread over any number of machines. A stream exists from its first change on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Frame(NamedTuple):
    """One frame of a stream: its number, and its bytes."""

    number: int
    data: bytes


class Checkpoint(NamedTuple):
    """The state after a frame, in whatever form the writer chooses."""

    number: int
    data: bytes


class Lease(NamedTuple):
    """The exclusive right to append to a stream, until it expires.

    `fencing` is a number that grows with every lease of the stream: an append that carries an older one is refused.
    """

    stream: str
    owner: str
    fencing: int
    # How long the lease was granted for, in seconds by the engine's clock.
    seconds: float


@runtime_checkable
class EventStore(Protocol):
    """Event streams. Every method may be called from any thread, and takes a `StreamHandle` as well as a name."""

    @property
    def url(self) -> str:
        """Where the streams are stored, without passwords."""
        ...

    def head(self, stream: str) -> int:
        """Return the number of the newest frame, 0 if there is none."""
        ...

    def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        """Append frames, and return the number of the last one.

        `contents` maps hex digests to bytes that the frames refer to; they are stored before the frames, and those that
        the stream already has are not written again. Raises `StreamConflict`, with nothing changed, if the stream does
        not end at `expected`, unless exactly these frames follow there: a retry after an unknown outcome succeeds.
        Raises `LeaseLost` if `fencing` is not the number of the newest lease, or if it is `None` and somebody holds a
        lease. Without frames, only the contents are stored.
        """
        ...

    def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> Iterator[Frame]:
        """Yield the frames that follow frame `after`, in order. Trimmed frames are omitted."""
        ...

    def wait(self, stream: str, after: int, timeout: float) -> int:
        """Wait at most `timeout` seconds until the stream has a frame after `after`; return the newest one's number."""
        ...

    def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        """Store contents by hex digest; those that the stream already has are not written again."""
        ...

    def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        """Return the contents with these digests, except those that the stream does not have."""
        ...

    def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        """Return those of the given digests whose contents the stream has."""
        ...

    def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        """Store a checkpoint; once complete, it replaces those with the same or a lower number.

        Raises `StreamConflict` if the stream ends before it: the stream was deleted in the meantime.
        """
        ...

    def get_checkpoint(self, stream: str) -> Checkpoint | None:
        """Return the checkpoint with the highest number, or `None` if there is none."""
        ...

    def trim(self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None) -> None:
        """Delete the frames numbered below `before`, and the contents with these digests. The stream keeps its head.

        Pass as `expected` the number of the last frame that was searched for references to the contents: this raises
        `StreamConflict`, with nothing changed, if the stream does not end there. A later append stores the contents
        that are passed to it again.
        """
        ...

    def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the names of streams that start with `prefix` and follow `after`, in order, at most `limit` of them.

        The order is that of their UTF-8 bytes, but engines may put names with `/`, `%` or a leading dot elsewhere.
        """
        ...

    def delete(self, stream: str) -> bool:
        """Delete a stream with its contents and checkpoints. Return whether there was one."""
        ...

    def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        """Take or renew the lease of a stream. Raises `LeaseLost` if somebody else holds it and it has not expired.

        A lease that is renewed before it expires keeps its fencing number. `owner` is the name of one writer; no two
        writers use the same name at the same time.
        """
        ...

    def release(self, lease: Lease) -> None:
        """Release a lease. Do nothing if it has expired or was taken over."""
        ...

    def flush(self) -> None:
        """Wait until everything that was appended is as durable as the engine can make it."""
        ...

    def close(self) -> None:
        """Release connections and descriptors; closing again does nothing."""
        ...


# Appends one frame with its contents: see `DirectEventStore`.
Appender = Callable[[int, bytes, Mapping[str, bytes] | None], bool]


@runtime_checkable
class DirectEventStore(Protocol):
    """An event store with a fast path for nearly all appends: those by the only writer of a stream."""

    def appender(self, stream: str) -> Appender:
        """Return a function that appends one frame to a stream. It may be called in this process only.

        It takes the number of the frame at which the stream ends, the new frame, and the contents that the frame refers
        to. It may return false at any time, with nothing changed; call `append` then, which handles every case.
        """
        ...


@runtime_checkable
class AsyncEventStore(Protocol):
    """`EventStore` with `async` methods. A cancelled append has taken effect as a whole or not at all."""

    @property
    def url(self) -> str: ...
    async def head(self, stream: str) -> int: ...
    async def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int: ...
    def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> AsyncIterator[Frame]: ...
    async def wait(self, stream: str, after: int, timeout: float) -> int: ...
    async def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None: ...
    async def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]: ...
    async def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]: ...
    async def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None: ...
    async def get_checkpoint(self, stream: str) -> Checkpoint | None: ...
    async def trim(
        self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None
    ) -> None: ...
    async def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]: ...
    async def delete(self, stream: str) -> bool: ...
    async def lease(self, stream: str, owner: str, seconds: float) -> Lease: ...
    async def release(self, lease: Lease) -> None: ...
    async def flush(self) -> None: ...
    async def close(self) -> None: ...
