"""Reading the records of a segment file, each checked before it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from weakfs.storage.folder.files import Descriptor, read_at
from weakfs.storage.folder.journal.records import (
    CHECKSUM,
    COMMIT,
    COMMIT_BODY,
    CONTENT,
    KINDS,
    LONGEST_DIGEST,
    LONGEST_NAME,
    MASK,
    OVERHEAD,
    PREFIX,
    Header,
    HeaderProblem,
    decode_header,
    is_sound,
)

# How many bytes are read at once.
WINDOW = 1 << 18
# How many bytes are read for a single record at first.
PAGE = 1 << 12


class Record(NamedTuple):
    """A record: its kind, its offset, its size in bytes, and its body."""

    kind: int
    offset: int
    size: int
    # Only the digest, for a blob that was not verified.
    body: memoryview
    # The record's checksum, from which that of the next record continues.
    seed: int


# The first four fields of a record: a cheaper form, since opening a journal reads two or three records per frame.
Part = tuple[int, int, int, memoryview]


class BadRecord(Exception):
    """There is no whole record at `offset`; `cause` says why."""

    def __init__(self, offset: int, cause: str) -> None:
        self.offset, self.cause = offset, cause
        super().__init__(offset, cause)


def read_header(file: Descriptor) -> tuple[Header, int]:
    """Return the header of a segment file and its size. Raises `HeaderProblem`."""
    data = read_at(file, 0, 4096)
    try:
        return decode_header(data)
    except HeaderProblem:
        if len(data) < 4096:
            raise
        return decode_header(read_at(file, 0, LONGEST_NAME + 4096))


def seed_at(file: Descriptor, offset: int) -> int:
    """Return the checksum before a record, from which its own continues."""
    data = read_at(file, offset - 4, 4)
    if len(data) < 4:
        raise BadRecord(offset, "the file ends before it")
    seed: int = CHECKSUM.unpack(data)[0]
    return seed


def records(file: Descriptor, start: int, end: int, *, verify_contents: bool = True) -> Iterator[Record]:
    """Yield the records between two offsets. Raises `BadRecord` at the first that is not whole.

    Without `verify_contents`, only the digests of contents are read.
    """
    seed = seed_at(file, start)
    window, base, offset, stop = memoryview(b""), start, start, 0
    unpack_prefix, unpack_checksum, head_size = PREFIX.unpack_from, CHECKSUM.unpack_from, PREFIX.size
    # Creates a named tuple as fast as a plain one.
    new = tuple.__new__
    while offset < end:
        at = offset - base
        if at + head_size > len(window):
            window, base, at = memoryview(read_at(file, offset, min(WINDOW, end - offset))), offset, 0
            if len(window) < head_size:
                raise BadRecord(offset, "the record is cut off")
        length, kind = unpack_prefix(window, at)
        size = length + OVERHEAD
        if kind not in KINDS:
            raise BadRecord(offset, f"there is no record of kind {kind}")
        # Checked before reading anything of that length.
        if offset + size > end:
            raise BadRecord(offset, "the record is cut off")
        is_skipped = kind == CONTENT and not verify_contents
        needed = min(size, head_size + 1 + LONGEST_DIGEST) if is_skipped else size
        if at + needed > len(window):
            window, base, at = memoryview(read_at(file, offset, min(max(WINDOW, needed), end - offset))), offset, 0
            if len(window) < needed:
                raise BadRecord(offset, "the record is cut off")
        stop = at + size - 4
        if is_skipped:
            seed = unpack_checksum(window, stop)[0] if stop + 4 <= len(window) else seed_at(file, offset + size)
            yield new(Record, (kind, offset, size, window[at + head_size : at + needed], seed))
        else:
            checksum = unpack_checksum(window, stop)[0]
            # `is_sound`, inlined.
            if crc32(window[at:stop], seed ^ offset & MASK) != checksum:
                raise BadRecord(offset, "the record does not match its checksum")
            seed = checksum
            yield new(Record, (kind, offset, size, window[at + head_size : stop], seed))
        offset += size


def batches(file: Descriptor, start: int, end: int, marker: bytes) -> Iterator[tuple[list[Part], int, int]]:
    """Yield the whole batches between two offsets: the records before each commit, its end, and its checksum.

    Raises `BadRecord` at the first record that is not part of a whole batch.
    """
    unpack_prefix, unpack_checksum, head_size = PREFIX.unpack_from, CHECKSUM.unpack_from, PREFIX.size
    seed = seed_at(file, start)
    waiting: list[Part] = []
    data, window, base, at, needed = b"", memoryview(b""), start, 0, head_size
    while base + at < end:
        if at + needed > len(data):
            base += at
            data, at = read_at(file, base, min(max(WINDOW, needed), end - base)), 0
            window = memoryview(data)
            if len(data) < needed:
                raise BadRecord(base, "the record is cut off")
        length, kind = unpack_prefix(data, at)
        offset, size = base + at, length + OVERHEAD
        following = at + size
        if following > len(data) or kind not in KINDS:
            if kind not in KINDS:
                raise BadRecord(offset, f"there is no record of kind {kind}")
            # Checked before reading anything of that length.
            if offset + size > end:
                raise BadRecord(offset, "the record is cut off")
            needed = size
            continue
        stop, needed = following - 4, head_size
        # `is_sound`, inlined.
        checksum: int = unpack_checksum(data, stop)[0]
        if crc32(window[at:stop], seed ^ offset & MASK) != checksum:
            raise BadRecord(offset, "the record does not match its checksum")
        seed, body, at = checksum, at + head_size, following
        if kind != COMMIT:
            waiting.append((kind, offset, size, window[body:stop]))
            continue
        if length != COMMIT_BODY.size or data[body : body + 4] != marker:
            raise BadRecord(offset, "the commit is malformed")
        start = base + at
        yield waiting, start, seed
        waiting = []
    if waiting:
        raise BadRecord(start, "the commit is missing")


def record_at(file: Descriptor, offset: int, end: int) -> Record:
    """Return the record at an offset. Raises `BadRecord`."""
    # Includes the preceding checksum. Most records fit.
    data = read_at(file, offset - CHECKSUM.size, PAGE)
    start = CHECKSUM.size + PREFIX.size
    if len(data) < start or offset >= end:
        raise BadRecord(offset, "the file ends before it")
    length, kind = PREFIX.unpack_from(data, CHECKSUM.size)
    size = length + OVERHEAD
    if kind not in KINDS:
        raise BadRecord(offset, f"there is no record of kind {kind}")
    if offset + size > end:
        raise BadRecord(offset, "the record is cut off")
    stop = size
    if stop + CHECKSUM.size > len(data):
        data += read_at(file, offset - CHECKSUM.size + len(data), stop + CHECKSUM.size - len(data))
        if len(data) < stop + CHECKSUM.size:
            raise BadRecord(offset, "the record is cut off")
    view = memoryview(data)
    checksum = CHECKSUM.unpack_from(data, stop)[0]
    if not is_sound(view[CHECKSUM.size : stop], checksum, CHECKSUM.unpack_from(data)[0], offset):
        raise BadRecord(offset, "the record does not match its checksum")
    return Record(kind, offset, size, view[start:stop], checksum)


def head_at(file: Descriptor, offset: int, end: int) -> Record:
    """Return the record at an offset, unverified and without the data of a blob. Raises `BadRecord`."""
    data = memoryview(read_at(file, offset, PREFIX.size + 1 + LONGEST_DIGEST))
    if len(data) < PREFIX.size:
        raise BadRecord(offset, "the record is cut off")
    length, kind = PREFIX.unpack_from(data)
    if kind not in KINDS or offset + length + OVERHEAD > end:
        raise BadRecord(offset, "there is no such record")
    return Record(kind, offset, length + OVERHEAD, data[PREFIX.size : PREFIX.size + length], 0)
