"""`Journal`: the segments of one stream, as they were when its lock was last held.

The lock of the stream is held while its journal is used. The newest segment is the active one; the others are sealed,
and listed in the newest state record. Each segment begins with such a record.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from weakfs.class_decorators import frozen
from weakfs.storage.errors import StorageError
from weakfs.storage.folder.errors import JournalDamaged
from weakfs.storage.folder.files import (
    Descriptor,
    TemporaryFolder,
    extend,
    lock_unchanged,
    remove,
    rename,
    size_of,
    sync_file,
    sync_folder,
    unlock,
)
from weakfs.storage.folder.journal.index import TOMBSTONE, Filters, key_of
from weakfs.storage.folder.journal.reader import BadRecord
from weakfs.storage.folder.journal.records import (
    COMMIT_SIZE,
    FRAME_SIZE,
    OVERHEAD,
    Batch,
    Entry,
    Header,
    HeaderProblem,
    State,
    encode_frame,
    encode_segment,
)
from weakfs.storage.folder.journal.segment import DELETED, Segment, index_name, next_name, open_segment, segment_name
from weakfs.storage.folder.journal.torn_tail import cut_torn_tail

# How many sealed segments are kept open.
AWAKE = 64
NO_PIECES: Sequence[bytes] = ()
_SEGMENT = re.compile(r"([0-9]{16})\.journal")


@frozen
class Place:
    """The location of a stream, and how it is written."""

    stream: str
    path: str
    temporary_folder: Callable[[], TemporaryFolder]
    # Whether new files are synced before they are used.
    is_synced: bool


class Journal:
    """The segments of a stream."""

    def __init__(self, place: Place, folder: Descriptor, active: Segment) -> None:
        self.place, self.folder, self.active = place, folder, active
        self._is_synced = place.is_synced
        self.before, self.fencing, self.head = 1, 0, active.last
        # The number of the newest lease that is known to be over.
        self.ended_lease = 0
        self.sealed: tuple[Entry, ...] = ()
        # The offset up to which the active segment is known to be on the disk, for streams that sync.
        self.synced = 0
        self._awake: OrderedDict[int, Segment] = OrderedDict()
        # The filters of the sealed segments, loaded on first use.
        self._filters = Filters()

    # Opening, and following other processes

    def catch_up(self) -> None:
        """Read what has been appended since, and cut off a torn tail. Raises `JournalDamaged`."""
        while True:
            active = self.active
            size = size_of(active.file)
            known = active.state_at
            try:
                if size < active.end:
                    raise BadRecord(size, f"the file was {active.end} bytes long")
                active.read_on(size)
            except BadRecord as bad:
                if not cut_torn_tail(active, bad):
                    raise self.damaged(active.sequence, bad, active.last) from bad
            if active.state_at != known or not active.state_at:
                self._take_state()
            self.head = active.last
            if active.following in (None, DELETED):
                break
            self._follow()

    @property
    def is_deleted(self) -> bool:
        """Return whether the stream was deleted: its files are gone, or soon will be."""
        return self.active.following == DELETED

    def _take_state(self) -> None:
        try:
            state = self.active.state()
        except BadRecord as bad:
            raise self.damaged(self.active.sequence, bad, self.active.last) from None
        self.before, self.fencing = state.before, state.fencing
        # A folded segment has a different size.
        listed = {(entry.sequence, entry.size) for entry in state.sealed}
        for entry in self.sealed:
            if (entry.sequence, entry.size) not in listed:
                self._forget(entry.sequence)
        self.sealed = state.sealed

    def _forget(self, sequence: int) -> None:
        self._awake.pop(sequence, None)

    def _follow(self) -> None:
        """Continue with the segment after the active one."""
        active, following = self.active, self.active.following
        assert following is not None
        try:
            if segment_name(following) not in (names := os.listdir(self.folder.number)):
                if next_name(following) not in names:
                    cause = f"segment {following}, which should follow, is missing"
                    raise self.damaged(active.sequence, BadRecord(active.end, cause), active.last)
                rename(next_name(following), self.folder, segment_name(following), self.folder)
            self.active = self._opened(following)
        except HeaderProblem as problem:
            raise self.damaged(following, BadRecord(0, str(problem)), active.last) from None
        if active.uncovered:
            active.load_index(self.folder)
        self._awake[active.sequence] = active
        self.synced = 0

    def _opened(self, sequence: int) -> Segment:
        """Open a segment of this stream."""
        segment = open_segment(segment_name(sequence), sequence, self.folder)
        if segment.stream != self.place.stream or segment.stream_id != self.active.stream_id:
            raise HeaderProblem(f"it belongs to another stream, which was called {segment.stream!r}")
        return segment

    def damaged(self, sequence: int, bad: BadRecord, number: int) -> JournalDamaged:
        """Return the error for a bad record in a segment; `number` is the last frame before it."""
        path = os.path.join(self.place.path, segment_name(sequence))
        return JournalDamaged(path, bad.offset, max(number, 0), bad.cause)

    def check_files(self, names: Iterable[str]) -> None:
        """Compare the files with the list of segments: remove leftovers, and raise if one is missing."""
        found = {int(match[1]) for name in names if (match := _SEGMENT.fullmatch(name))}
        listed = {entry.sequence for entry in self.sealed}
        for entry in self.sealed:
            if entry.sequence not in found:
                raise self.damaged(entry.sequence, BadRecord(0, "the file is missing"), entry.first - 1)
        for sequence in found - listed - {self.active.sequence}:
            self.remove_segment(sequence)

    def remove_segment(self, sequence: int) -> None:
        """Remove a segment that the newest state no longer lists."""
        self._forget(sequence)
        # Anything left is removed when the stream is next opened.
        with suppress(OSError):
            remove(index_name(sequence), self.folder)
            remove(segment_name(sequence), self.folder)

    # Looking things up

    def segment(self, sequence: int) -> Segment:
        """Return an open segment. Raises `JournalDamaged`."""
        if sequence == self.active.sequence:
            return self.active
        if (segment := self._awake.get(sequence)) is not None:
            self._awake.move_to_end(sequence)
            return segment
        entry = next(entry for entry in self.sealed if entry.sequence == sequence)
        try:
            segment = self._opened(sequence)
            if not segment.load_index(self.folder) or segment.following is None:
                segment.read_on(size_of(segment.file))
                if segment.following is None:
                    raise BadRecord(segment.end, "the file ends before the segment does")
                segment.save_index(self.folder, self.place.temporary_folder())
        except FileNotFoundError:
            raise self.damaged(sequence, BadRecord(0, "the file is missing"), entry.first - 1) from None
        except HeaderProblem as problem:
            raise self.damaged(sequence, BadRecord(0, str(problem)), entry.first - 1) from None
        except BadRecord as bad:
            raise self.damaged(sequence, bad, segment.last if segment is not None else entry.first - 1) from None
        segment.contents = entry.contents
        self._awake[sequence] = segment
        if len(self._awake) > AWAKE:
            self._awake.popitem(last=False)
        return segment

    def locate(self, digest: bytes, *, before: int | None = None) -> tuple[int, int] | None:
        """Return the segment and the offset of a blob; `None` if the stream does not have it, or no longer has it.

        With `before`, only segments before that one are searched.
        """
        sequence = self.active.sequence
        try:
            if before is None and (offset := self.active.find(digest)) is not None:
                return None if offset & TOMBSTONE else (sequence, offset)
            if not self.sealed:
                return None
            for sequence in self._loaded_filters().may_have(key_of(digest)):
                is_there = any(entry.sequence == sequence for entry in self.sealed)
                if is_there and (before is None or sequence < before):
                    offset = self.segment(sequence).find(digest)
                    if offset is not None:
                        return None if offset & TOMBSTONE else (sequence, offset)
        except BadRecord as bad:
            raise self.damaged(sequence, bad, self.segment(sequence).first - 1) from None
        return None

    def _loaded_filters(self) -> Filters:
        """Return the filters, after loading the filters of all sealed segments."""
        if self.sealed[-1].sequence not in self._filters.sequences:
            for entry in self.sealed:
                if entry.sequence not in self._filters.sequences:
                    self._filters.add(entry.sequence, self.segment(entry.sequence).filter)
        return self._filters

    def content(self, digest: bytes) -> bytes | None:
        """Return a blob. Raises `JournalDamaged`."""
        place = self.locate(digest)
        if place is None:
            return None
        segment = self.segment(place[0])
        try:
            return segment.content(digest, place[1])
        except BadRecord as bad:
            raise self.damaged(place[0], bad, segment.first - 1) from None

    # Writing

    def batch(self) -> Batch:
        """Return an empty batch, for the end of the active segment."""
        return Batch(self.active.end, self.active.seed)

    def write(self, batch: Batch) -> None:
        """Write a batch with its commit. If that fails, the journal is unchanged."""
        active = self.active
        batch.commit(active.marker, batch.offset - self.synced if self._is_synced else 0)
        active.kept = None
        active.end = extend(active.file, active.end, b"".join(batch.pieces))
        active.seed = batch.seed

    def append(self, frames: Sequence[bytes], contents: Sequence[tuple[bytes, bytes]]) -> None:
        """Append contents that the stream does not have yet, and frames."""
        batch = self.batch()
        places = self._add_contents(batch, contents)
        offset, number = batch.offset, self.head
        for frame in frames:
            number += 1
            batch.frame(number, frame)
        if not batch.pieces:
            return
        self.write(batch)
        self._index_contents(places)
        for number, frame in enumerate(frames, self.head + 1):
            size = FRAME_SIZE + len(frame)
            self.active.add_frame(number, offset, size)
            offset += size
        self.head = number

    def append_next(self, frame: bytes, contents: Iterable[tuple[bytes, bytes]]) -> bool:
        """Append contents and one frame if the journal is up to date; the caller does not hold the lock.

        Returns false, with nothing written, if somebody else has appended anything, removed the folder or holds the
        lock. It combines the steps of `append`, for sessions that do not wait for the disk.
        """
        active, folder, number = self.active, self.folder, self.head + 1
        start = offset = active.end
        if not lock_unchanged(folder, active.name, active.inode, start):
            return False
        try:
            seed, before, places = active.seed, NO_PIECES, None
            if contents:
                batch = Batch(offset, seed)
                places = self._add_contents(batch, contents)
                before, offset, seed = batch.pieces, batch.offset, batch.seed
            record, end, seed = encode_frame(number, frame, active.marker, offset, seed)
            active.kept = None
            active.end = extend(active.file, start, b"".join((*before, record, end)))
        finally:
            unlock(folder)
        active.seed = seed
        active.add_frame(number, offset, FRAME_SIZE + len(frame))
        self.head = number
        if places is not None:
            self._index_contents(places)
        return True

    def _add_contents(self, batch: Batch, contents: Iterable[tuple[bytes, bytes]]) -> dict[bytes, tuple[int, int]]:
        """Add the contents that the stream does not have to a batch; return the offset and size of each."""
        places: dict[bytes, tuple[int, int]] = {}
        for digest, data in contents:
            if digest not in places and self.locate(digest) is None:
                places[digest] = batch.offset, OVERHEAD + len(digest) + len(data)
                batch.content(digest, data)
        return places

    def _index_contents(self, places: Mapping[bytes, tuple[int, int]]) -> None:
        for digest, (offset, size) in places.items():
            self.active.add_content(digest, offset, size)

    def state(self) -> State:
        return State(self.before, self.head, self.fencing, self.sealed)

    def write_state(self, batch: Batch, state: State) -> None:
        """Write a batch that ends with a new state."""
        offset = batch.offset
        batch.state(state)
        self.write(batch)
        self.active.state_at = offset
        self._take_state()

    def delete(self) -> None:
        """Mark the stream as deleted for all processes that have it open."""
        batch = self.batch()
        batch.seal(DELETED)
        self.write(batch)
        self.active.following = DELETED

    def roll_over(self) -> None:
        """Seal the active segment, and continue in a new one."""
        active, place = self.active, self.place
        following = active.sequence + 1
        batch = self.batch()
        batch.seal(following)
        sealed_size = batch.offset + OVERHEAD + COMMIT_SIZE
        sealed = (*self.sealed, active.entry._replace(size=sealed_size))
        header = Header(following, self.head + 1, active.stream_id, os.urandom(16), place.stream)
        # The new segment is complete on the disk before the old one names it as the next.
        place.temporary_folder().publish(
            encode_segment(header, State(self.before, self.head, self.fencing, sealed)),
            next_name(following),
            self.folder,
            is_synced=place.is_synced,
        )
        self.write(batch)
        active.following = following
        if place.is_synced:
            sync_file(active.file)
        active.save_index(self.folder, place.temporary_folder())
        self.catch_up()
        if place.is_synced:
            sync_folder(self.folder)
            self.synced = self.active.end


def create_segment(place: Place, folder: Descriptor) -> None:
    """Write the first segment of a new stream."""
    header = Header(1, 1, os.urandom(16), os.urandom(16), place.stream)
    pieces = encode_segment(header, State(1, 0, 0, ()))
    place.temporary_folder().publish(pieces, segment_name(1), folder, is_synced=place.is_synced)


def open_journal(place: Place, folder: Descriptor) -> Journal:
    """Open the newest segment of a stream, and read what its index does not cover.

    Raises `JournalDamaged`; damage to older segments is found when they are read.
    """
    names = os.listdir(folder.number)
    sequences = sorted(int(match[1]) for name in names if (match := _SEGMENT.fullmatch(name)))
    if not sequences:
        raise StorageError(
            f"cannot open the stream {place.stream!r}: there is no journal in {place.path!r}; restore the folder from "
            f"a backup, or remove it"
        )
    sequence = sequences[-1]
    path = os.path.join(place.path, segment_name(sequence))
    try:
        active = open_segment(segment_name(sequence), sequence, folder)
        if active.stream != place.stream:
            raise HeaderProblem(f"it belongs to another stream, which was called {active.stream!r}")
    except (HeaderProblem, BadRecord) as problem:
        cause = problem.cause if isinstance(problem, BadRecord) else str(problem)
        raise JournalDamaged(path, 0, 0, cause) from None
    active.load_index(folder)
    active.kept = []
    journal = Journal(place, folder, active)
    if active.state_at:
        journal._take_state()
    journal.catch_up()
    if not journal.is_deleted:
        journal.check_files(names)
    return journal
