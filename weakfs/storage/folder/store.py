"""`FolderEventStore`: event streams in a folder, each with its own journal. The default engine."""

from __future__ import annotations

import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import ENOTSUP
from itertools import islice
from threading import Lock
from typing import Literal

from weakfs.platforms import HAS_FILE_LOCKS
from weakfs.storage.engines.urls import folder_url
from weakfs.storage.errors import StorageError
from weakfs.storage.event_store import Appender, Checkpoint, Frame, Lease
from weakfs.storage.folder.errors import JournalDamaged, failure
from weakfs.storage.folder.journal.records import decode_digest, encode_digest
from weakfs.storage.folder.names import walk
from weakfs.storage.folder.stream.lease_file import release_lease, take_lease
from weakfs.storage.folder.stream.locked_stream import SUFFIX
from weakfs.storage.folder.stream.repair import check, give_up
from weakfs.storage.folder.stream.root import Options, Root
from weakfs.storage.folder.stream.stream import Stream
from weakfs.storage.folder.stream.trim import trim
from weakfs.storage.keys import check_digest, check_frames, check_stream

Durability = Literal["process", "power", "manual"]

# How many streams are kept open, each with a few descriptors.
OPEN_STREAMS = 64


class FolderEventStore:
    """Event streams in a folder on a local disk, for any number of threads and processes on one machine.

    `durability` says what a completed append survives: with "process" the death of the process, with "power" a power
    failure as well, for which it waits for the disk, together with other appends. "manual" is the same as "process",
    for programs that call `flush` where it matters.

    `segment_size` and `fold_budget` are in bytes: the size at which a journal continues in a new file, and the maximum
    that one `trim` rewrites. `lock_timeout` is how long to wait for another process, in seconds. `clock` returns the
    time in seconds since 1970, for leases. Raises `ValueError` for an unknown durability, and `StorageError` (ENOTSUP)
    on Windows, which lacks flock(2).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = "process",
        *,
        segment_size: int = 32 << 20,
        fold_budget: int = 64 << 20,
        lock_timeout: float = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if durability not in ("process", "power", "manual"):
            raise ValueError(f"cannot open a store with durability {durability!r}: use 'process', 'power' or 'manual'")
        self.path = os.path.abspath(os.fspath(path))
        require_file_locks(self.path)
        self._is_flushed = durability == "power"
        self._options = Options(durability == "power", segment_size, lock_timeout, clock)
        self._fold_budget = fold_budget
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        """Forget everything that is open: at the start, and in a forked process."""
        self._process = os.getpid()
        self._root = Root(self.path, is_synced=self._options.is_synced)
        self._mutex = Lock()
        self._streams: OrderedDict[str, Stream] = OrderedDict()
        # The streams with appends that might not be on the disk yet.
        self._unsynced: set[str] = set()

    @property
    def url(self) -> str:
        """The URL of the folder, for `weakfs.storage.open_event_store`."""
        return folder_url(self.path)

    def _stream(self, name: str) -> Stream:
        stream = self._streams.get(name)
        if stream is not None and self._process == os.getpid():
            if len(self._streams) > 1:
                self._streams.move_to_end(name)
            return stream
        self._check()
        check_stream(name)
        with self._mutex:
            stream = self._streams.get(name)
            if stream is None:
                name = str(name)
                stream = self._streams[name] = Stream(self._root, name, self._options)
                if len(self._streams) > OPEN_STREAMS:
                    self._streams.popitem(last=False)[1].close()
            return stream

    def _check(self) -> None:
        # A forked process shares descriptors, and therefore locks, with its parent, so it opens its own.
        if self._process != os.getpid():
            self._begin()
        if self._is_closed:
            raise StorageError(f"cannot use {self.url!r}: the store is closed; open it again")

    def head(self, stream: str) -> int:
        """Return the number of the newest frame, 0 if there is none."""
        with self._errors("read", stream):
            return self._stream(stream).head(stream)

    def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        """Append frames, and return the number of the last one; see `EventStore.append`."""
        check_frames(frames)
        found = [(_digest(digest), data) for digest, data in contents.items()] if contents else ()
        try:
            number = self._stream(stream).append(stream, expected, frames, found, fencing)
        except OSError as error:
            # Only now, since a context manager takes a fifth as long as an append.
            with self._errors("append to", stream):
                raise error
        if not self._is_flushed:
            self._unsynced.add(stream)
        return number

    def appender(self, stream: str) -> Appender:
        """Return a function that appends to a stream without most steps of `append`; see `DirectEventStore`."""
        own = self._stream(stream)

        def append(expected: int, frame: bytes, contents: Mapping[str, bytes] | None) -> bool:
            # A session computes these digests itself, so they need no check.
            found = [(encode_digest(digest), data) for digest, data in contents.items()] if contents else ()
            self._unsynced.add(stream)
            try:
                return own.append_next(stream, expected, frame, found)
            except OSError as error:
                # Only now, since a context manager takes longer than the rest of this function.
                with self._errors("append to", stream):
                    raise error

        return append

    def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> Iterator[Frame]:
        """Yield the frames that follow frame `after`, in order. Trimmed frames are omitted."""
        with self._errors("read", stream):
            yield from self._stream(stream).read(stream, after, limit)

    def wait(self, stream: str, after: int, timeout: float) -> int:
        """Wait at most `timeout` seconds until the stream has a frame after `after`; return the newest one's number."""
        with self._errors("read", stream):
            return self._stream(stream).wait(stream, after, timeout)

    def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        """Store contents by hex digest; those that the stream already has are not written again."""
        found = [(_digest(digest), data) for digest, data in contents.items()]
        with self._errors("write contents of", stream):
            self._stream(stream).put_contents(found)
        if not self._is_flushed:
            self._unsynced.add(stream)

    def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        """Return the contents with these digests, except those that the stream does not have."""
        wanted = list(dict.fromkeys(map(_digest, digests)))
        with self._errors("read contents of", stream):
            return {decode_digest(digest): data for digest, data in self._stream(stream).contents(wanted)}

    def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        """Return which of these contents the stream has."""
        wanted = list(map(_digest, digests))
        with self._errors("read contents of", stream):
            return {decode_digest(digest) for digest in self._stream(stream).having(wanted)}

    def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        """Store a checkpoint; once complete, it replaces older ones. Appends continue in the meantime."""
        with self._errors("write a checkpoint of", stream):
            self._stream(stream).put_checkpoint(stream, checkpoint)

    def get_checkpoint(self, stream: str) -> Checkpoint | None:
        """Return the newest checkpoint, or `None` if there is none."""
        with self._errors("read the checkpoint of", stream):
            return self._stream(stream).get_checkpoint(stream)

    def trim(self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None) -> None:
        """Delete the frames numbered below `before`, and the contents with these digests; see `EventStore.trim`.

        Their space is freed when the segments that contain them are folded; one call rewrites at most `fold_budget`
        bytes.
        """
        digests = list(map(_digest, contents))
        with self._errors("trim", stream):
            trim(self._stream(stream), stream, before, digests, expected=expected, fold_budget=self._fold_budget)

    def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the names of streams, in order, at most `limit` of them."""
        self._check()
        try:
            root = self._root.folder()
            found = walk(root, SUFFIX, prefix=prefix.encode(), after=after.encode()) if root is not None else iter(())
            return list(islice(found, limit))
        except OSError as error:
            raise failure(f"list the streams in {self.path!r}", error) from error

    def delete(self, stream: str) -> bool:
        """Delete a stream with its contents and checkpoints. Return whether there was one."""
        with self._errors("delete", stream):
            found = self._stream(stream)
            with found.locked():
                return found.delete()

    def exchange(self, stream: str, expected: int, exchange: Callable[[], object]) -> None:
        """Let `exchange` put another directory in the place of a stream that ends at frame `expected`.

        Nobody can append in the meantime. To everyone who has the stream open, it then seems deleted. Raises
        `StreamConflict` if the stream ends elsewhere.
        """
        with self._errors("replace", stream):
            found = self._stream(stream)
            with found.locked():
                found.exchange(expected, exchange)

    def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        """Take or renew the lease of a stream. Raises `LeaseLost` if another writer holds it and it has not expired."""
        with self._errors("lease", stream):
            return take_lease(self._stream(stream), owner, seconds)

    def release(self, lease: Lease) -> None:
        """Release a lease. Do nothing if it has expired or was taken over."""
        with self._errors("release", lease.stream):
            release_lease(self._stream(lease.stream), lease)

    def check(self, stream: str) -> list[JournalDamaged]:
        """Read everything in a stream, and return the damage that was found: at most one place per file."""
        with self._errors("check", stream):
            return check(self._stream(stream))

    def give_up(self, stream: str, damaged: JournalDamaged) -> list[str]:
        """Cut a stream before a damaged place that `check` found; return the names of the files that were set aside.

        Everything before the damage is kept. The damaged files, and those after them, get the suffix `.damaged`.
        """
        with self._errors("repair", stream):
            return give_up(self._stream(stream), damaged, self._root.temporary_folder())

    def flush(self) -> None:
        """Wait until everything that this store appended survives a power failure."""
        for name in sorted(self._unsynced):
            self._unsynced.discard(name)
            with self._errors("flush", name):
                try:
                    self._stream(name).flush()
                except OSError:
                    self._unsynced.add(name)
                    raise

    def close(self) -> None:
        """Release descriptors; closing again does nothing. Call `flush` first to sync the disk."""
        if self._process != os.getpid():
            self._begin()
        with self._mutex:
            self._is_closed = True
            for stream in self._streams.values():
                stream.close()
            self._streams.clear()
            self._root = Root(self.path, is_synced=False)

    def __enter__(self) -> FolderEventStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _errors(self, action: str, stream: str) -> Iterator[None]:
        """Raise an error of the engine unchanged, and any other as `StorageError`."""
        try:
            yield
        except StorageError:
            raise
        except OSError as error:
            raise failure(f"{action} stream {stream!r} in {self.path!r}", error) from error


def require_file_locks(path: str) -> None:
    """Raise `StorageError` (ENOTSUP) on a system without flock(2)."""
    if not HAS_FILE_LOCKS:
        error = StorageError(
            f"cannot open the folder {path!r} as a store: that needs flock, which {sys.platform!r} does not have; use "
            f"a 'sqlite:' URL instead"
        )
        error.errno = ENOTSUP
        raise error


def _digest(digest: str) -> bytes:
    return encode_digest(check_digest(digest))
