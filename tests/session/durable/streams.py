"""Event streams in memory, which can be made to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Condition

from attrs import define, field

from weakfs.storage import Checkpoint, Frame, Lease, LeaseLost, OutcomeUnknown, StorageError, StreamConflict


@define
class _Stream:
    frames: list[Frame] = field(factory=list[Frame])
    contents: dict[str, bytes] = field(factory=dict[str, bytes])
    checkpoint: Checkpoint | None = None
    lease: Lease | None = None
    head: int = 0


class MemoryStreams:
    """An `EventStore` of dicts. `fault` is called before and after each append, and may raise."""

    url = "memory:"

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        self._changed = Condition()
        self.fault: Callable[[str], None] = lambda moment: None
        self.appended_bytes = 0

    def fill(self, name: str, frames: Sequence[Frame], contents: Mapping[str, bytes], checkpoint: Checkpoint) -> None:
        """Make a stream that holds these frames, contents and checkpoint."""
        self._streams[name] = _Stream(list(frames), dict(contents), checkpoint, head=frames[-1].number)

    def _stream(self, name: str) -> _Stream:
        return self._streams.setdefault(name, _Stream())

    def head(self, stream: str) -> int:
        return self._streams[stream].head if stream in self._streams else 0

    def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        with self._changed:
            self.fault("before")
            own = self._stream(stream)
            if own.lease is not None and fencing != own.lease.fencing:
                raise LeaseLost(f"stream {stream!r} is leased to {own.lease.owner!r}", owner=own.lease.owner)
            place = len(own.frames) - (own.head - expected)
            tail = [frame.data for frame in own.frames[place : place + len(frames)]] if place >= 0 else []
            if tail[: len(frames)] == list(frames):
                return expected + len(frames)
            if own.head != expected:
                raise StreamConflict(stream, expected, own.head)
            own.contents |= contents or {}
            own.frames += [Frame(expected + 1 + place, data) for place, data in enumerate(frames)]
            own.head += len(frames)
            self.appended_bytes += sum(map(len, frames))
            self._changed.notify_all()
            self.fault("after")
            return own.head

    def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> Iterator[Frame]:
        own = self._stream(stream)
        place = max(len(own.frames) - (own.head - after), 0)
        return iter(own.frames[place : None if limit is None else place + limit])

    def wait(self, stream: str, after: int, timeout: float) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self.head(stream) > after, timeout)
            return self.head(stream)

    def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        self._stream(stream).contents |= contents

    def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        known = self._stream(stream).contents
        return {digest: known[digest] for digest in digests if digest in known}

    def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        return set(digests) & self._stream(stream).contents.keys()

    def contents(self, stream: str) -> dict[str, bytes]:
        """Return all contents of a stream."""
        return dict(self._stream(stream).contents)

    def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        if checkpoint.number > self.head(stream):
            raise StreamConflict(stream, checkpoint.number, self.head(stream))
        self._stream(stream).checkpoint = checkpoint

    def get_checkpoint(self, stream: str) -> Checkpoint | None:
        return self._stream(stream).checkpoint

    def trim(self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None) -> None:
        own = self._stream(stream)
        if expected is not None and expected != own.head:
            raise StreamConflict(stream, expected, own.head)
        own.frames = [frame for frame in own.frames if frame.number >= before]
        for digest in contents:
            own.contents.pop(digest, None)

    def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return sorted(name for name in self._streams if name.startswith(prefix) and name > after)[:limit]

    def delete(self, stream: str) -> bool:
        return self._streams.pop(stream, None) is not None

    def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        own = self._stream(stream)
        if own.lease is not None and own.lease.owner != owner:
            raise LeaseLost(f"stream {stream!r} is leased to {own.lease.owner!r}", owner=own.lease.owner)
        fencing = own.lease.fencing if own.lease is not None else 1
        own.lease = Lease(stream, owner, fencing, seconds)
        return own.lease

    def release(self, lease: Lease) -> None:
        own = self._stream(lease.stream)
        if own.lease == lease:
            own.lease = None

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def failing_once(moment: str, error: StorageError | None = None) -> Callable[[str], None]:
    """Return a fault that raises at a moment, the first time."""
    raised: list[bool] = []

    def fault(now: str) -> None:
        if now == moment and not raised:
            raised.append(True)
            raise error or (StorageError("told to fail") if moment == "before" else OutcomeUnknown("told to vanish"))

    return fault
