"""`StorageEventStore`: event streams over any `Storage`; each change is one `create` or `replace` of a key.

A stream is the value of one key, its head. It holds the number of the newest frame, the lease, and the newest frames
themselves, so that an append is one conditional write of one small object. Frames are moved out in bulk: when the tail
has grown beyond a budget, it is stored as a segment, and segments are merged into larger ones. Contents and checkpoints
have their own keys and are stored before the frames that refer to them.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence

from attrs import evolve, field

from weakfs.class_decorators import define
from weakfs.storage.adapters import InPlaceStorage, SyncEventStore, run_in_place
from weakfs.storage.engine_base import DerivedEventStore
from weakfs.storage.errors import OutcomeUnknown, StorageDamaged, StorageError, StreamConflict
from weakfs.storage.event_store import Checkpoint, Frame, Lease
from weakfs.storage.keys import check_digest, check_frames, check_stream, escape_stream, unescape_stream
from weakfs.storage.lease_rules import check_fencing, lease_is_held, seconds_left
from weakfs.storage.storage import AsyncStorage, Storage
from weakfs.storage.stream_handle import begin_append, refers_to
from weakfs.storage.streams.format import Head, decode_head, encode_head
from weakfs.storage.streams.segments import Segments

# How many times to look for a frame that is not where it should be.
ATTEMPTS = 3
# Bytes of frames in the head, and in the segments waiting to be merged. Every append writes the tail again: on an
# object store a request costs the same for any size below this.
TAIL_BYTES = 32 * 1024
MERGE_BYTES = 2 * 1024 * 1024
# How many heads are remembered, and how many digests for each.
HEADS, DIGESTS = 256, 2_000


@define
class _Held:
    """A head as it was last seen, with its version, which is `None` if the stream does not exist yet."""

    head: Head
    version: str | None
    # Contents that are known to be stored.
    known: set[str] = field(factory=set)


class AsyncStorageEventStore(DerivedEventStore):
    """An `AsyncEventStore` over an `AsyncStorage`."""

    def __init__(
        self,
        storage: AsyncStorage,
        *,
        close_storage: bool = False,
        tail_bytes: int = TAIL_BYTES,
        merge_bytes: int = MERGE_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """The storage stays open when the store is closed, unless `close_storage` is set.

        `clock` says when leases expire: the clocks of machines that share an engine should agree within a few seconds.
        """
        self._storage, self._close_storage = storage, close_storage
        self._tail_bytes, self._merge_bytes = tail_bytes, merge_bytes
        self._clock = clock
        self._heads: OrderedDict[str, _Held] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self._storage.url

    async def head(self, stream: str) -> int:
        return (await self._current(stream)).head.number

    async def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        check_frames(frames)
        begin_append(stream, expected)
        held = self._heads.get(check_stream(stream))
        # A lease may have been taken or released since the head was read.
        if held is None or held.head.number != expected or not self._allows(held.head, fencing):
            held = await self._current(stream)
        while True:
            head = held.head
            if not _is_of(stream, head):
                raise StreamConflict(stream, expected, 0)
            if head.number != expected and frames and await self._has_frames(stream, expected, frames):
                return expected + len(frames)
            self._check_fencing(stream, head, fencing)
            if head.number != expected:
                raise StreamConflict(stream, expected, head.number)
            if contents:
                await self._store_contents(stream, held, contents)
            if not frames and held.version is not None:
                return expected
            rolled = await self._segments(stream, head).rolled(head)
            appended = rolled.appended(frames)
            if await self._swap(stream, held, appended):
                _is_of(stream, appended)
                return expected + len(frames)
            held = await self._current(stream)

    async def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> AsyncIterator[Frame]:
        position, left, attempts = max(after, 0), limit, 0
        while left is None or left > 0:
            head = (await self._current(stream)).head
            position = before = max(position, head.first - 1)
            async for frame in self._segments(stream, head).read(head, position):
                yield frame
                position = frame.number
                if left is not None:
                    left -= 1
                    if left == 0:
                        return
            if position >= head.number:
                return
            # Segments may be merged or trimmed while they are read: a missing frame is then under another key.
            attempts = attempts + 1 if position == before else 0
            if attempts == ATTEMPTS:
                raise StorageDamaged(
                    f"cannot read stream {stream!r}: frame {position + 1} of {head.number} is missing in {self.url}; "
                    f"frames up to {position} are intact; restore the others from a backup"
                )

    async def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        while True:
            held = await self._existing(stream)
            await self._store_contents(stream, held, contents)
            # Another writer may have deleted contents in the meantime, or the whole stream.
            now = (await self._load(stream)).head
            if (now.id, now.trims) == (held.head.id, held.head.trims):
                return

    async def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        wanted, found = list(map(check_digest, digests)), dict[str, bytes]()
        while True:
            held = await self._load(stream)
            keys = {self._content(stream, held.head, one): one for one in wanted if one not in found}
            values = await self._storage.get_many(keys) if held.version is not None else {}
            found |= {keys[key]: value for key, value in values.items()}
            for key, digest in keys.items() if held.head.trims else ():
                if digest not in found:
                    copies = await self._storage.get_many(await self._storage.keys(f"{key}."))
                    found.update(zip([digest], copies.values(), strict=False))
            # Contents that were trimmed in the meantime may have been stored again under another key.
            if len(found) == len(set(wanted)) or (await self._load(stream)).head.trims == held.head.trims:
                return found

    async def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        held = await self._load(stream)
        keys = {self._content(stream, held.head, digest): digest for digest in digests}
        if held.version is None:
            return set()
        if not held.head.trims:
            return {digest for key, digest in keys.items() if await self._storage.exists(key)}
        # Includes copies under other keys, one of which is enough. No digest contains a dot.
        first = {key: await self._storage.keys(key, limit=1) for key in keys}
        return {keys[key] for key, found in first.items() if found and found[0][len(key) :][:1] in ("", ".")}

    async def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        head = (await (self._current if checkpoint.number else self._existing)(stream)).head
        if head.number < checkpoint.number:
            raise StreamConflict(stream, checkpoint.number, head.number)
        directory = self._directory(stream, head, "checkpoints")
        key = f"{directory}{checkpoint.number:020d}"
        await self._storage.set(key, checkpoint.data)
        for old in await self._storage.keys(directory):
            if old < key:
                await self._storage.delete(old)

    async def get_checkpoint(self, stream: str) -> Checkpoint | None:
        held = await self._current(stream)
        directory = self._directory(stream, held.head, "checkpoints")
        while held.version is not None and (keys := await self._storage.keys(directory)):
            data = await self._storage.get(keys[-1])
            # A newer one may have replaced it in the meantime.
            if data is not None:
                return Checkpoint(int(keys[-1][len(directory) :]), data)
        return None

    async def trim(
        self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None
    ) -> None:
        digests = [check_digest(digest) for digest in contents]
        while True:
            held = await self._current(stream)
            head = held.head
            if expected is not None and head.number != expected:
                raise StreamConflict(stream, expected, head.number)
            if held.version is None:
                return
            first = max(head.first, min(before, head.number + 1))
            tail = head.tail[max(first - head.tail_first, 0) :]
            # Counted before anything is deleted. A writer that believed that the contents were stored notices the new
            # number, and stores them under different keys.
            trimmed = evolve(head, first=first, tail=tail, trims=head.trims + bool(digests))
            if trimmed == head or await self._swap(stream, held, trimmed, gone=digests):
                break
        await self._segments(stream, head).trim(first)
        for digest in digests:
            key = self._content(stream, head, digest)
            await self._storage.delete(key)
            for copy in await self._storage.keys(f"{key}.") if head.trims else ():
                if int(copy.rpartition(".")[2]) <= head.trims:
                    await self._storage.delete(copy)

    async def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        found = await self._storage.keys(
            f"heads/{escape_stream(prefix)}", after=f"heads/{escape_stream(after)}" if after else "", limit=limit
        )
        return [unescape_stream(key.partition("/")[2]) for key in found]

    async def delete(self, stream: str) -> bool:
        held = await self._load(stream)
        self._heads.pop(stream, None)
        if held.version is None:
            return False
        deleted = await self._storage.delete(_head_key(stream))
        await self._storage.clear(self._directory(stream, held.head))
        return deleted

    async def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        while True:
            held = await self._load(stream)
            head, now = held.head, self._clock()
            left = seconds_left(head.expires, head.seconds, now)
            fencing = head.fencing + (not lease_is_held(stream, owner, by=head.owner, left=left))
            leased = evolve(head, owner=owner, fencing=fencing, expires=now + seconds, seconds=seconds)
            if await self._swap(stream, held, leased):
                return Lease(stream, owner, fencing, seconds)

    async def release(self, lease: Lease) -> None:
        while True:
            held = await self._load(lease.stream)
            head = held.head
            if held.version is None or (head.owner, head.fencing) != (lease.owner, lease.fencing):
                return
            if await self._swap(lease.stream, held, evolve(head, owner="", expires=0.0)):
                return

    async def close(self) -> None:
        self._heads.clear()
        if self._close_storage:
            await self._storage.close()

    async def _load(self, stream: str) -> _Held:
        """Read the head of a stream; for one that does not exist, return a new head without a version."""
        key = _head_key(check_stream(stream))
        found = await self._storage.get_versioned(key)
        before = self._heads.get(stream)
        if found is None:
            head, version = Head(id=os.urandom(6).hex()), None
        elif before is not None and before.version == found.version:
            head, version = before.head, before.version
        else:
            head, version = decode_head(found.value, key), found.version
        is_same = before is not None and (before.head.id, before.head.trims) == (head.id, head.trims)
        held = _Held(head, version, before.known if before is not None and is_same else set())
        self._remember(stream, held)
        return held

    async def _current(self, stream: str) -> _Held:
        """Read the head of a stream; a handle to a deleted stream reads as a stream that does not exist."""
        held = await self._load(stream)
        return held if held.version is None or _is_of(stream, held.head) else _Held(Head(id=held.head.id), None)

    async def _existing(self, stream: str) -> _Held:
        while True:
            held = await self._load(stream)
            if held.version is not None:
                return held
            await self._swap(stream, held, held.head)

    async def _swap(self, stream: str, held: _Held, head: Head, *, gone: Collection[str] = ()) -> bool:
        """Replace the head unless another writer has replaced it; if that fails, forget it.

        `gone` are the contents that will be deleted next.
        """
        key, value = _head_key(stream), encode_head(head)
        with self._lock:
            self._heads.pop(stream, None)
        try:
            if held.version is None:
                version = await self._storage.create(key, value)
            else:
                version = await self._storage.replace(key, value, version=held.version)
        except OutcomeUnknown as error:
            # No two changes make the same head.
            version = await self._version_of(key, value)
            if version is None:
                raise error
        if version is None:
            return False
        self._remember(stream, _Held(head, version, held.known.difference(gone) if gone else held.known))
        return True

    async def _version_of(self, key: str, value: bytes) -> str | None:
        """Return the version of a key if it has this value; `None` if it does not, or if that is unknown."""
        try:
            found = await self._storage.get_versioned(key)
        except StorageError:
            return None
        return found.version if found is not None and found.value == value else None

    def _remember(self, stream: str, held: _Held) -> None:
        if len(held.known) > DIGESTS:
            held.known.clear()
        with self._lock:
            self._heads[stream] = held
            self._heads.move_to_end(stream)
            while len(self._heads) > HEADS:
                self._heads.popitem(last=False)

    def _check_fencing(self, stream: str, head: Head, fencing: int | None) -> None:
        check_fencing(stream, fencing, newest=head.fencing, owner=head.owner, is_held=self._is_held(head))

    def _allows(self, head: Head, fencing: int | None) -> bool:
        return not self._is_held(head) if fencing is None else fencing == head.fencing

    def _is_held(self, head: Head) -> bool:
        return seconds_left(head.expires, head.seconds, self._clock()) > 0

    async def _store_contents(self, stream: str, held: _Held, contents: Mapping[str, bytes]) -> None:
        trims = f".{held.head.trims}" if held.head.trims else ""
        new = {
            self._content(stream, held.head, one) + trims: data
            for one, data in contents.items()
            if one not in held.known
        }
        if len(new) == 1:
            ((key, data),) = new.items()
            await self._storage.create(key, data)
        elif new:
            # Existing contents are overwritten with the same bytes: checking for each would cost as many requests.
            await self._storage.set_many(new)
        held.known.update(contents)

    def _segments(self, stream: str, head: Head) -> Segments:
        directory = self._directory(stream, head, "frames")
        return Segments(self._storage, directory, self._tail_bytes, self._merge_bytes)

    def _directory(self, stream: str, head: Head, name: str = "") -> str:
        return f"streams/{escape_stream(stream)}/{head.id}/{name}{'/' if name else ''}"

    def _content(self, stream: str, head: Head, digest: str) -> str:
        return f"{self._directory(stream, head, 'contents')}{check_digest(digest)}"


def _is_of(stream: str, head: Head) -> bool:
    return refers_to(stream, head.id, head.number)


def _head_key(stream: str) -> str:
    return f"heads/{escape_stream(stream)}"


class _BlockingEventStore(AsyncStorageEventStore):
    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class StorageEventStore(SyncEventStore):
    """An `EventStore` over a `Storage`."""

    def __init__(
        self,
        storage: Storage,
        *,
        close_storage: bool = False,
        tail_bytes: int = TAIL_BYTES,
        merge_bytes: int = MERGE_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """The storage stays open when the store is closed, unless `close_storage` is set.

        `clock` says when leases expire: the clocks of machines that share an engine should agree within a few seconds.
        """
        streams = _BlockingEventStore(
            InPlaceStorage(storage),
            close_storage=close_storage,
            tail_bytes=tail_bytes,
            merge_bytes=merge_bytes,
            clock=clock,
        )
        super().__init__(streams, run=run_in_place)
