"""Indexes of segments: the offsets of frames and contents, in a small file next to each sealed segment.

An index can be rebuilt from its segment, which is done if it is missing, damaged or belongs to another segment. Only
the offset of every 64th frame and a filter of 32 bits per blob are held in memory. The filter answers most lookups of
missing blobs.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cache, partial
from math import isqrt
from struct import Struct, error
from typing import NamedTuple
from zlib import crc32

from weakfs.storage.folder.files import Descriptor, read_at, size_of

MAGIC = b"weakfs\0I"
VERSION = 1
# The offset of a frame is kept every `EACH` frames or `APART` bytes.
EACH = 64
APART = 1 << 16
BITS_PER_CONTENT = 32
# The positions in a key of the three numbers that select its bits in the filter. With 3 of 32 bits set, at most one
# lookup in 1,300 is a false positive.
SHIFTS = (0, 20, 40)
TOMBSTONE = 1 << 63

_HEADER = Struct("<8sHHI16sQQQQQQQII")
_MARK = Struct("<QQ")
# Big-endian, so that keys compare as numbers do.
_ROW = Struct(">QQ")
_CHECKSUM = Struct("<I")


class Summary(NamedTuple):
    """A summary of a segment up to an offset."""

    salt: bytes
    # The offset in the segment up to which the summary applies.
    covered: int
    first: int
    last: int
    # The sizes in bytes of all frames and of all contents.
    frames: int
    contents: int
    # The offset of the newest state record.
    state_at: int
    # One more than the number of the segment that follows; 0 while the segment is not sealed.
    following: int


def key_of(digest: bytes) -> int:
    """Return the number by which a digest is looked up: its first eight bytes."""
    return int.from_bytes(digest[1:9].ljust(8, b"\0"), "big")


def encode_index(summary: Summary, marks: Iterable[tuple[int, int]], rows: Iterable[tuple[int, int]]) -> bytes:
    """Return the bytes of an index; rows are keys and offsets, with `TOMBSTONE` added to those of tombstones."""
    marks, rows = list(marks), sorted(rows)
    bits = 64
    while bits < len(rows) * BITS_PER_CONTENT:
        bits *= 2
    chosen = bytearray(bits // 8)
    for key, _ in rows:
        for shift in SHIFTS:
            chosen[(key >> shift & bits - 1) >> 3] |= 1 << (key >> shift & 7)
    data = b"".join(
        (
            _HEADER.pack(MAGIC, VERSION, 0, bits, *summary, len(marks), len(rows)),
            *(_MARK.pack(*mark) for mark in marks),
            chosen,
            *(_ROW.pack(*row) for row in rows),
        )
    )
    return data + _CHECKSUM.pack(crc32(data))


class Filter(NamedTuple):
    """A Bloom filter of the keys in an index."""

    bits: bytes
    mask: int

    def may_have(self, key: int) -> bool:
        """Return false if there is certainly no blob with a key, and true if there probably is one."""
        bits, mask = self
        return all(bits[(key >> shift & mask) >> 3] >> (key >> shift & 7) & 1 for shift in SHIFTS)


class Filters:
    """The filters of many segments.

    The filters of one size are side by side, bit by bit, so that a lookup of a missing blob takes as long for a hundred
    segments as for one.
    """

    def __init__(self) -> None:
        self.sequences: set[int] = set()
        # By mask: for each position in the filters, bytes with the bits that the segments have at that position.
        self._rows: dict[int, tuple[bytearray, list[int]]] = {}

    def add(self, sequence: int, found: Filter) -> None:
        """Add the filter of a segment.

        The filter is kept when the segment is folded or removed, and then has false positives.
        """
        rows, members = self._rows.get(found.mask, (bytearray(), []))
        lane, bit = divmod(len(members), 8)
        if not bit:
            wider = bytearray((found.mask + 1) * (lane + 1))
            for other in range(lane):
                wider[other :: lane + 1] = rows[other::lane]
            rows = wider
        spread = b"".join(map(_spread(bit).__getitem__, found.bits))
        both = int.from_bytes(rows[lane :: lane + 1], "little") | int.from_bytes(spread, "little")
        rows[lane :: lane + 1] = both.to_bytes(len(spread), "little")
        self._rows[found.mask] = rows, [*members, sequence]
        self.sequences.add(sequence)

    def may_have(self, key: int) -> list[int]:
        """Return the segments that may have a blob with a key, the newest first."""
        found: list[int] = []
        for mask, (rows, members) in self._rows.items():
            width, bits = len(rows) // (mask + 1), -1
            for shift in SHIFTS:
                at = (key >> shift & mask) * width
                bits &= int.from_bytes(rows[at : at + width], "little")
                if not bits:
                    break
            else:
                found += (sequence for place, sequence in enumerate(members) if bits >> place & 1)
        return sorted(found, reverse=True)


@cache
def _spread(place: int) -> list[bytes]:
    """Return for each byte value its eight bits, the lowest first, each as bit `place` of a separate byte."""
    return [bytes((byte >> bit & 1) << place for bit in range(8)) for byte in range(256)]


class Index:
    """An open index. Its file does not change: indexes are replaced, never overwritten."""

    __slots__ = ("_file", "_numbers", "_offsets", "_rows", "_rows_at", "filter", "summary")

    def __init__(self, file: Descriptor, data: bytes) -> None:
        self._file = file
        fields = _HEADER.unpack_from(data)
        bits, marks, self._rows = fields[3], fields[12], fields[13]
        self.summary = Summary(*fields[4:12])
        start = _HEADER.size + marks * _MARK.size
        pairs = list(_MARK.iter_unpack(data[_HEADER.size : start]))
        self._numbers = array("Q", [number for number, _ in pairs])
        self._offsets = array("Q", [offset for _, offset in pairs])
        self._rows_at = start + bits // 8
        self.filter = Filter(data[start : self._rows_at], bits - 1)

    def offsets(self, key: int) -> list[int]:
        """Return the offsets of contents and tombstones with a key, the newest last."""
        if not self.filter.may_have(key):
            return []
        # Keys are digests and so evenly distributed: a row is nearly always within four standard deviations of the
        # expected position.
        near = 2 * isqrt(self._rows) + 8
        first = max((key * self._rows >> 64) - near, 0)
        count = min(2 * near, self._rows - first)
        data = self._read_rows(first, count)
        if (first and _key_at(data, 0) >= key) or (first + count < self._rows and _key_at(data, count - 1) <= key):
            count = self._rows
            data = self._read_rows(0, count)
        found: list[int] = []
        for at in range(bisect_left(range(count), key, key=partial(_key_at, data)), count):
            own, offset = _ROW.unpack_from(data, at * _ROW.size)
            if own != key:
                break
            found.append(offset)
        return sorted(found, key=lambda offset: offset & ~TOMBSTONE)

    def _read_rows(self, first: int, count: int) -> bytes:
        return read_at(self._file, self._rows_at + first * _ROW.size, count * _ROW.size)

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yield all keys and their offsets."""
        yield from _ROW.iter_unpack(self._read_rows(0, self._rows))

    def marks(self) -> Iterator[tuple[int, int]]:
        """Yield the numbers of some frames and their offsets."""
        return zip(self._numbers, self._offsets, strict=True)

    def mark(self, number: int) -> int | None:
        """Return the offset at which to start looking for a frame; `None` for the beginning of the segment."""
        at = bisect_right(self._numbers, number)
        return self._offsets[at - 1] if at else None


def _key_at(rows: bytes, at: int) -> int:
    return int.from_bytes(rows[at * _ROW.size : at * _ROW.size + 8], "big")


def read_index(file: Descriptor, salt: bytes, size: int) -> Index | None:
    """Open an index; return `None` if it is incomplete, or does not belong to the segment with this salt and size."""
    data = read_at(file, 0, size_of(file))
    try:
        magic, version, _, bits, own, covered, *_, marks, rows = _HEADER.unpack_from(data)
        checksum = _CHECKSUM.unpack_from(data, len(data) - 4)[0]
    except error:
        return None
    expected = _HEADER.size + marks * _MARK.size + bits // 8 + rows * _ROW.size + 4
    is_whole = len(data) == expected and crc32(memoryview(data)[:-4]) == checksum
    is_right = (magic, version, own) == (MAGIC, VERSION, salt) and covered <= size
    return Index(file, data) if is_whole and is_right and bits and not bits & bits - 1 else None
