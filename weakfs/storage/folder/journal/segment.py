"""`Segment`: one file of a journal, with its index and the records that the index does not cover."""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EROFS

from weakfs.storage.folder.files import Descriptor, TemporaryFolder, inode_of, open_file, size_of
from weakfs.storage.folder.journal.index import (
    APART,
    EACH,
    TOMBSTONE,
    Filter,
    Index,
    Summary,
    encode_index,
    key_of,
    read_index,
)
from weakfs.storage.folder.journal.reader import (
    BadRecord,
    Part,
    batches,
    head_at,
    read_header,
    record_at,
    seed_at,
)
from weakfs.storage.folder.journal.records import (
    CONTENT,
    FRAME,
    NUMBER,
    ODD,
    SEAL,
    STATE,
    Entry,
    HeaderProblem,
    State,
    decode_state,
    digest_of,
    is_digest,
)
from weakfs.storage.folder.journal.records import TOMBSTONE as TOMBSTONE_RECORD

# The number that `seal` gives as the next segment in a deleted stream.
DELETED = 0
_number = NUMBER.unpack_from
_EVERYTHING = Filter(b"\xff" * 8, 63)


def segment_name(sequence: int) -> str:
    """Return the name of a segment file; the names sort in the order of the numbers."""
    return f"{sequence:016d}.journal"


def index_name(sequence: int) -> str:
    return f"{sequence:016d}.index"


def next_name(sequence: int) -> str:
    """Return the name that a segment has until the previous one is sealed."""
    return f"{sequence:016d}.next"


class Segment:
    """An open segment, known up to `end`. The lock of the stream is held while it is used."""

    __slots__ = (
        "_index", "_marked", "_marks", "_offsets", "contents", "end", "file", "first", "following", "frames",
        "header_size", "inode", "kept", "last", "marker", "name", "salt", "seed", "sequence", "state_at", "stream",
        "stream_id",
    )  # fmt: skip

    def __init__(self, file: Descriptor, sequence: int) -> None:
        """Read the header. Raises `HeaderProblem`."""
        header, size = read_header(file)
        if header.sequence != sequence:
            raise HeaderProblem(f"it is segment {header.sequence}, under the name of segment {sequence}")
        self.file, self.sequence, self.header_size = file, sequence, size
        self.name, self.inode = segment_name(sequence), inode_of(file)
        self.salt, self.marker = header.salt, header.marker
        self.stream, self.stream_id, self.first = header.stream, header.stream_id, header.first
        self.last, self.end, self.frames, self.contents, self.state_at = header.first - 1, size, 0, 0, 0
        # The number of the next segment; `None` while this one is not sealed.
        self.following: int | None = None
        # The newest frames, kept when the stream is opened because opening a session reads them next.
        self.kept: list[bytes] | None = None
        # The checksum before `end`.
        self.seed = seed_at(file, size)
        self._index: Index | None = None
        # The contents that the index does not cover: offsets by digest, with `TOMBSTONE` added for tombstones.
        self._offsets: dict[bytes, int] = {}
        self._marks: list[tuple[int, int]] = []
        self._marked = 0

    @property
    def entry(self) -> Entry:
        """Return the entry for the segment in a state record."""
        return Entry(self.sequence, self.first, self.last, self.end, self.frames, self.contents)

    @property
    def filter(self) -> Filter:
        """Return a filter of the segment's blobs."""
        return self._index.filter if self._index and not self.uncovered else _EVERYTHING

    @property
    def uncovered(self) -> int:
        """Return how many bytes the index on the disk does not cover."""
        return self.end - (self._index.summary.covered if self._index else 0)

    def load_index(self, folder: Descriptor) -> bool:
        """Use the index on the disk. Return false if there is none, or if it does not belong to the segment."""
        try:
            file = open_file(index_name(self.sequence), folder)
            index = read_index(file, self.salt, size_of(self.file))
        except OSError:
            return False  # an unreadable index is treated like a missing one
        if index is None:
            return False
        _, self.end, self.first, self.last, self.frames, self.contents, self.state_at, following = index.summary
        self.following = following - 1 if following else None
        self.seed = seed_at(self.file, self.end)
        self._index, self._offsets, self._marks = index, {}, []
        return True

    def save_index(self, folder: Descriptor, temporary_folder: TemporaryFolder) -> None:
        """Write the index, and use it from now on."""
        rows = [(key_of(digest), offset) for digest, offset in self._offsets.items()]
        marks = list(self._marks)
        if self._index is not None:
            rows += self._index.rows()
            marks = [*self._index.marks(), *marks]
        following = 0 if self.following is None else self.following + 1
        summary = Summary(
            self.salt, self.end, self.first, self.last, self.frames, self.contents, self.state_at, following
        )
        # An index can be rebuilt at any time, so a failure to write it is ignored, and it is not synced.
        with suppress(OSError):
            temporary_folder.publish(
                [encode_index(summary, marks, rows)], index_name(self.sequence), folder, is_synced=False
            )
            self.load_index(folder)

    def read_on(self, size: int) -> None:
        """Read the batches from `end` up to `size` or the seal.

        Raises `BadRecord` at the first record that is not part of a whole batch. The records before it have been read.
        """
        offsets, kept = self._offsets, self.kept
        for batch, end, seed in batches(self.file, self.end, size, self.marker):
            for record in batch:
                kind, offset, taken, body = record
                # Nearly all records are of these two kinds.
                if kind == FRAME and len(body) >= 8 and _number(body)[0] == self.last + 1:
                    self.last = number = self.last + 1
                    self.frames += taken
                    if number % EACH == 0 or offset >= self._marked + APART:
                        self._mark(number, offset)
                    if kept is not None:
                        kept.append(body[8:].tobytes())
                elif kind == CONTENT and is_digest(body):
                    offsets[bytes(body[: 1 + (body[0] & ~ODD)])] = offset
                    self.contents += taken
                else:
                    self._take(record)
            self.end, self.seed = end, seed
            if self.following is not None:
                return

    def _take(self, record: Part) -> None:
        kind, offset, _, body = record
        if kind == FRAME and len(body) >= 8:
            raise BadRecord(offset, f"frame {_number(body)[0]} follows frame {self.last}")
        if kind == TOMBSTONE_RECORD and is_digest(body):
            self.add_tombstone(digest_of(body), offset)
        elif kind == STATE and decode_state(body) is not None:
            self.state_at = offset
        elif kind == SEAL and len(body) == 8:
            self.following = NUMBER.unpack(body)[0]
        else:
            raise BadRecord(offset, f"the record of kind {kind} is malformed")

    def take_kept(self, number: int) -> list[bytes] | None:
        """Return the kept frames from `number` on, and stop keeping them; `None` if some were not kept."""
        kept, self.kept = self.kept, None
        first = self.last - len(kept) + 1 if kept else number + 1
        return kept[number - first :] if kept and first <= number <= self.last else None

    def add_frame(self, number: int, offset: int, size: int) -> None:
        """Record the offset of a frame."""
        self.last = number
        self.frames += size
        if number % EACH == 0 or offset >= self._marked + APART:
            self._mark(number, offset)

    def _mark(self, number: int, offset: int) -> None:
        self._marks.append((number, offset))
        self._marked = offset

    def add_content(self, digest: bytes, offset: int, size: int) -> None:
        """Record the offset of a blob."""
        self._offsets[digest] = offset
        self.contents += size

    def add_tombstone(self, digest: bytes, offset: int) -> None:
        """Record that a blob was deleted; the caller updates `contents`."""
        self._offsets[digest] = offset | TOMBSTONE

    def find(self, digest: bytes) -> int | None:
        """Return the offset of the newest content or tombstone of a digest; `None` if there is none."""
        offset = self._offsets.get(digest)
        if offset is not None or self._index is None:
            return offset
        for offset in reversed(self._index.offsets(key_of(digest))):
            at = offset & ~TOMBSTONE
            found = head_at(self.file, at, self.end)
            if is_digest(found.body) and digest_of(found.body) == digest:
                return offset
            # Raises an error if it is damaged. Otherwise both digests begin with the same eight bytes.
            record_at(self.file, at, self.end)
        return None

    def size_at(self, offset: int) -> int:
        """Return the size of the record at an offset, in bytes. Raises `BadRecord`."""
        return head_at(self.file, offset, self.end).size

    def content(self, digest: bytes, offset: int) -> bytes:
        """Return the content at an offset. Raises `BadRecord` if it does not have this digest."""
        found = record_at(self.file, offset, self.end)
        if found.kind != CONTENT or found.body[: len(digest)] != digest:
            raise BadRecord(offset, "the contents differ from the index")
        return bytes(found.body[len(digest) :])

    def place(self, number: int) -> int:
        """Return the offset at which to start looking for a frame."""
        for at in range(len(self._marks) - 1, -1, -1):
            if self._marks[at][0] <= number:
                return self._marks[at][1]
        return (self._index.mark(number) if self._index else None) or self.header_size

    def state(self) -> State:
        """Return the newest state in the segment. Raises `BadRecord` if there is none."""
        found = record_at(self.file, self.state_at, self.end) if self.state_at else None
        state = decode_state(found.body) if found and found.kind == STATE else None
        if state is None:
            raise BadRecord(self.state_at or self.header_size, "there is no record of the state of the stream")
        return state


def open_segment(name: str, sequence: int, folder: Descriptor) -> Segment:
    """Open a segment for reading and writing, or only for reading if writing is not permitted."""
    try:
        file = open_file(name, folder, os.O_RDWR)
    except OSError as error:
        if not isinstance(error, PermissionError) and error.errno != EROFS:
            raise
        file = open_file(name, folder)
    return Segment(file, sequence)
