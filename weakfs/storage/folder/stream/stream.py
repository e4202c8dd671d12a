"""`Stream`: one stream, shared by all threads of a process: appending, reading, waiting, checkpoints and syncs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from threading import Condition

from weakfs.storage.errors import OutcomeUnknown, StreamConflict
from weakfs.storage.event_store import Checkpoint, Frame
from weakfs.storage.folder.files import Descriptor, open_folder, sync_file, sync_folder
from weakfs.storage.folder.journal.frame_reader import frames_from, segment_frames
from weakfs.storage.folder.journal.journal import Journal
from weakfs.storage.folder.stream.checkpoints import read_checkpoint, write_checkpoint
from weakfs.storage.folder.stream.group_sync import Position
from weakfs.storage.folder.stream.lease_file import check_lease
from weakfs.storage.folder.stream.locked_stream import LockedStream
from weakfs.storage.folder.stream.root import Options, Root
from weakfs.storage.stream_handle import StreamHandle, begin_append

# A reader holds the lock for one segment of frames, or for this many contents.
CONTENTS_AT_ONCE = 64
_LONGEST_POLL = 0.05
# If more bytes than this were appended, a checkpoint also writes the index, so that opening need not read them again.
_INDEX_EACH = 1 << 20


class Stream(LockedStream):
    """A stream that can be appended to and read."""

    def __init__(self, root: Root, name: str, options: Options) -> None:
        super().__init__(root, name, options)
        self._arrived = Condition()
        self._waiting = 0

    def append(
        self,
        name: str,
        expected: int,
        frames: Sequence[bytes],
        contents: Sequence[tuple[bytes, bytes]],
        fencing: int | None,
    ) -> int:
        """Append frames and contents; see `EventStore.append`."""
        begin_append(name, expected)
        if fencing is None and len(frames) == 1 and self.append_next(name, expected, frames[0], contents):
            return expected + 1
        number, position = self._append(name, expected, frames, contents, fencing)
        if self.options.is_synced:
            self._sync.wait(position, self._sync_written)
        if self._waiting:
            self._notify()
        return number

    def append_next(self, name: str, expected: int, frame: bytes, contents: Iterable[tuple[bytes, bytes]]) -> bool:
        """Append one frame in a third of the time of `append`, in the simple case, which is nearly every append.

        The journal must be open and end at `expected`, no other process may have changed it or taken a lease, and
        appends must not wait for the disk. Otherwise return false, with nothing changed.
        """
        with self._mutex:
            journal = self._direct
            # The first frame is left to `append`, which makes a handle refer to the stream.
            if journal is None or not expected or journal.head != expected:
                return False
            active = journal.active
            if isinstance(name, StreamHandle) and name.identity != active.stream_id:
                return False
            try:
                if not journal.append_next(frame, contents):
                    return False
                if active.end >= self.options.segment_size:
                    self._direct = None
            except BaseException:
                # The state in memory may be behind the one on the disk, and an interrupt may leave the lock held.
                self._unlock()
                raise
        if self._waiting:
            self._notify()
        return True

    def _notify(self) -> None:
        with self._arrived:
            self._arrived.notify_all()

    def _append(
        self,
        name: str,
        expected: int,
        frames: Sequence[bytes],
        contents: Sequence[tuple[bytes, bytes]],
        fencing: int | None,
    ) -> tuple[int, Position]:
        with self.locked():
            self._sync.refuse_after_failure()
            while True:
                journal = self.journal_of(name)
                if journal is None and self._opened is not None:
                    raise StreamConflict(self.name, expected, 0)
                head = journal.head if journal is not None else 0
                if expected != head and journal is not None and frames and self._holds(journal, expected, frames):
                    number = expected + len(frames)
                    break
                if fencing is not None or (journal is not None and journal.fencing):
                    check_lease(self, fencing)
                if expected != head:
                    raise StreamConflict(self.name, expected, head)
                if journal is None:
                    if not frames and not contents:
                        return 0, self._sync.reached
                    self.create()
                    # Another process may have created it first, and appended frames or taken a lease.
                    continue
                if journal.active.end >= self.options.segment_size:
                    journal.roll_over()
                journal.append(frames, contents)
                number = journal.head
                break
            self.journal_of(name)
            return number, (journal.active.sequence, journal.active.end)

    def put_contents(self, contents: Sequence[tuple[bytes, bytes]]) -> None:
        """Append contents without frames, whatever the number of the newest frame."""
        with self.locked():
            self._sync.refuse_after_failure()
            if not contents:
                return
            journal = self.create()
            if journal.active.end >= self.options.segment_size:
                journal.roll_over()
            journal.append((), contents)
            position = journal.active.sequence, journal.active.end
        if self.options.is_synced:
            self._sync.wait(position, self._sync_written)

    def _holds(self, journal: Journal, expected: int, frames: Sequence[bytes]) -> bool:
        """Return whether the frames to append were already appended."""
        if not journal.before - 1 <= expected <= journal.head - len(frames):
            return False
        found = islice(frames_from(journal, expected + 1), len(frames))
        return [frame.data for frame in found] == list(frames)

    def head(self, name: str) -> int:
        """Return the number of the newest frame."""
        with self.locked():
            journal = self.journal_of(name)
            return journal.head if journal is not None else 0

    def read(self, name: str, after: int, limit: int | None) -> Iterator[Frame]:
        """Yield frames. The lock is not held in the meantime."""
        number, left = max(after, 0) + 1, limit
        while left is None or left > 0:
            with self.locked():
                journal = self.journal_of(name)
                if journal is None or (number := max(number, journal.before)) > journal.head:
                    return
                found, last = segment_frames(journal, number)
            if left is not None:
                found = islice(found, left)
                left -= last + 1 - number
            yield from found
            number = last + 1

    def contents(self, digests: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the contents with these digests, except those that the stream does not have."""
        for start in range(0, len(digests), CONTENTS_AT_ONCE):
            with self.locked():
                if self._opened is None:
                    return
                chosen = digests[start : start + CONTENTS_AT_ONCE]
                found = [(digest, self._opened.content(digest)) for digest in chosen]
            yield from ((digest, data) for digest, data in found if data is not None)

    def having(self, digests: Sequence[bytes]) -> set[bytes]:
        """Return which of these contents the stream has."""
        with self.locked():
            journal = self._opened
            return {digest for digest in digests if journal is not None and journal.locate(digest) is not None}

    def wait(self, name: str, after: int, timeout: float) -> int:
        """Wait for a frame after `after`. Appends by this process notify; appends by others are found by polling."""
        deadline, delay = time.monotonic() + timeout, 0.001
        while True:
            head = self.head(name)
            left = deadline - time.monotonic()
            if head > after or left <= 0:
                return head
            with self._arrived:
                self._waiting += 1
                try:
                    self._arrived.wait(min(delay, left))
                finally:
                    self._waiting -= 1
            delay = min(2 * delay, _LONGEST_POLL)

    # Checkpoints

    def put_checkpoint(self, name: str, checkpoint: Checkpoint) -> None:
        """Write a checkpoint once the frames before it are on the disk. The lock is not held in the meantime."""
        with self.locked():
            journal = self.journal_of(name) if checkpoint.number else self.create()
            if journal is None or journal.head < checkpoint.number:
                raise StreamConflict(self.name, checkpoint.number, 0 if journal is None else journal.head)
            folder = journal.folder
            if journal.active.uncovered > _INDEX_EACH:
                journal.active.save_index(folder, self.root.temporary_folder())
        self.flush()
        write_checkpoint(checkpoint, folder, self.root.temporary_folder())

    def get_checkpoint(self, name: str) -> Checkpoint | None:
        """Return the newest checkpoint."""
        with self.locked():
            journal = self.journal_of(name)
            folder = journal.folder if journal is not None else None
        return read_checkpoint(folder, self.path) if folder is not None else None

    # Syncing

    def flush(self) -> None:
        """Wait until everything that was appended is on the disk."""
        with self.locked():
            journal = self._opened
            if journal is None:
                return
            position = journal.active.sequence, journal.active.end
        try:
            self._sync.wait(position, self._sync_written)
        except OutcomeUnknown:
            self._direct = None
            raise

    def _sync_written(self) -> Position:
        """Sync everything that is not synced yet; appends continue in the meantime."""
        with self.locked():
            journal, synced = self._opened, self._sync.reached
            if journal is None:
                return synced  # deleted in the meantime
            reached = journal.active.sequence, journal.active.end
            sealed = [entry.sequence for entry in journal.sealed if entry.sequence >= synced[0]]
            files = [*(journal.segment(sequence).file for sequence in sealed), journal.active.file]
            folder = journal.folder
        for file in files:
            sync_file(file)
        if reached[0] != synced[0]:
            # The directory is gone if the stream was deleted in the meantime.
            with suppress(FileNotFoundError):
                self._sync_names(folder)
        if not self._mutex.locked():
            # Only used to recognize a torn tail, so it may be out of date.
            with self._mutex:
                if self._opened is journal and journal.active.sequence == reached[0]:
                    journal.synced = max(journal.synced, reached[1])
        return reached

    def _sync_names(self, folder: Descriptor) -> None:
        """Sync the directory of the stream, and those above it."""
        sync_folder(folder)
        above = self.root.made()
        for part in self._parts:
            sync_folder(above)
            above = open_folder(part, above)
