"""The bytes of a journal: the header of a segment, and the records that follow it. Does no input or output.

`docs/formats/journal.md` describes the format. A record is a length and a kind, a body, and a checksum. The checksum
covers the record, the checksum before it, and the record's position in the file: a record that was moved, or bytes that
the file contained earlier, do not match it.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple
from zlib import crc32

MAGIC = b"weakfs\0J"
VERSION = 1

CONTENT, FRAME, COMMIT, STATE, TOMBSTONE, SEAL = 1, 2, 3, 4, 5, 6
KINDS = frozenset((CONTENT, FRAME, COMMIT, STATE, TOMBSTONE, SEAL))

PREFIX = Struct("<IB")
CHECKSUM = Struct("<I")
# The size of a record in addition to its body.
OVERHEAD = PREFIX.size + CHECKSUM.size
MASK = 0xFFFFFFFF

# The number of bytes of a digest, with `ODD` added if its first hexadecimal digit is padding.
ODD = 0x80
LONGEST_DIGEST = 64
FRAME_HEAD = Struct("<IBQ")
NUMBER = Struct("<Q")
# The size of a frame in addition to its data.
FRAME_SIZE = FRAME_HEAD.size + CHECKSUM.size
# The marker of the segment, the number of bytes that might not be synced, and the position of the commit in the file.
COMMIT_BODY = Struct("<4sIQ")
COMMIT_SIZE = COMMIT_BODY.size
COMMIT_RECORD = Struct("<IB4sIQ")
# What follows the data of a frame: its checksum, a commit, and the checksum of that.
_FRAME_END = Struct(f"<I{COMMIT_RECORD.size}sI")
_HEADER = Struct("<8sHHIQQ16s16sI")
_STATE = Struct("<QQQI")
_ENTRY = Struct("<QQQQQQ")
# Longer than any name that a filesystem allows.
LONGEST_NAME = 1 << 16


class Header(NamedTuple):
    """The header of a segment: the number of the file, and values that distinguish the file from others."""

    sequence: int
    # The number of the first frame that may be in this segment.
    first: int
    stream_id: bytes
    salt: bytes
    stream: str

    @property
    def marker(self) -> bytes:
        """The bytes with which each commit of this segment begins."""
        return self.salt[:4]


class Entry(NamedTuple):
    """A sealed segment, as a state record lists it. The sizes are in bytes, including the overhead of each record."""

    sequence: int
    first: int
    # The number of the last frame; `first` - 1 if there is none.
    last: int
    size: int
    frames: int
    # The size of the contents that have not been deleted since.
    contents: int


class State(NamedTuple):
    """The contents of a state record: a summary of the records before it."""

    # Frames with lower numbers are trimmed.
    before: int
    head: int
    fencing: int
    sealed: tuple[Entry, ...]


class HeaderProblem(Exception):
    """The first bytes of a file are not a header; the message says why."""


def encode_header(header: Header) -> bytes:
    name = header.stream.encode()
    fields = _HEADER.pack(
        MAGIC, VERSION, 0, _HEADER.size + len(name) + 4, header.sequence, header.first, header.stream_id, header.salt,
        len(name),
    ) + name  # fmt: skip
    return fields + CHECKSUM.pack(crc32(fields))


def decode_header(data: bytes) -> tuple[Header, int]:
    """Return a header and its size. Raises `HeaderProblem`."""
    if len(data) < _HEADER.size:
        raise HeaderProblem(f"its header is cut off after {len(data)} bytes")
    magic, version, _, size, sequence, first, stream_id, salt, name_size = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise HeaderProblem("it is not a journal of weakfs: it begins with other bytes")
    if version != VERSION:
        raise HeaderProblem(
            f"it has version {version} of the format, but this weakfs reads version {VERSION}; upgrade weakfs"
        )
    if name_size > LONGEST_NAME or size != _HEADER.size + name_size + 4:
        raise HeaderProblem("the sizes in its header contradict each other")
    if len(data) < size:
        raise HeaderProblem(f"its header is cut off after {len(data)} bytes")
    if crc32(data[: size - 4]) != CHECKSUM.unpack_from(data, size - 4)[0]:
        raise HeaderProblem("its header does not match its checksum")
    try:
        stream = data[_HEADER.size : size - 4].decode()
    except UnicodeDecodeError:
        raise HeaderProblem("the name in its header is not UTF-8") from None
    return Header(sequence, first, stream_id, salt, stream), size


def decode_state(body: memoryview) -> State | None:
    """Return the state in the body of a record; `None` if it is malformed."""
    if len(body) < _STATE.size:
        return None
    before, head, fencing, count = _STATE.unpack_from(body)
    if len(body) != _STATE.size + count * _ENTRY.size:
        return None
    return State(before, head, fencing, tuple(map(Entry._make, _ENTRY.iter_unpack(body[_STATE.size :]))))


def encode_digest(digest: str) -> bytes:
    """Return a hexadecimal digest in the form used in records: one byte with the length, then its bytes."""
    size = len(digest)
    if size % 2:
        return bytes([size // 2 + 1 | ODD]) + bytes.fromhex("0" + digest)
    return bytes([size // 2]) + bytes.fromhex(digest)


def decode_digest(digest: bytes) -> str:
    return digest[1:].hex()[1 if digest[0] & ODD else 0 :]


def is_digest(data: bytes | memoryview) -> bool:
    """Return whether a body begins with a digest."""
    return len(data) > 0 and 0 < data[0] & ~ODD <= min(LONGEST_DIGEST, len(data) - 1)


def digest_of(data: bytes | memoryview) -> bytes:
    """Return the digest that a body begins with, with its length."""
    return bytes(data[: 1 + (data[0] & ~ODD)])


class Batch:
    """Records being built, which are written together and end with a commit."""

    __slots__ = ("offset", "pieces", "seed")

    def __init__(self, offset: int, seed: int) -> None:
        # The offset of the next record, and the checksum before it.
        self.offset = offset
        self.seed = seed
        self.pieces: list[bytes] = []

    def content(self, digest: bytes, data: bytes) -> None:
        size, offset = len(digest) + len(data), self.offset
        head = PREFIX.pack(size, CONTENT) + digest
        self.seed = seed = crc32(data, crc32(head, self.seed ^ offset & MASK))
        self.pieces += (head, data, CHECKSUM.pack(seed))
        self.offset = offset + size + OVERHEAD

    def frame(self, number: int, data: bytes) -> None:
        size, offset = 8 + len(data), self.offset
        head = FRAME_HEAD.pack(size, FRAME, number)
        self.seed = seed = crc32(data, crc32(head, self.seed ^ offset & MASK))
        self.pieces += (head, data, CHECKSUM.pack(seed))
        self.offset = offset + size + OVERHEAD

    def _add_whole(self, record: bytes) -> None:
        self.seed = seed = crc32(record, self.seed ^ self.offset & MASK)
        self.pieces += (record, CHECKSUM.pack(seed))
        self.offset += len(record) + 4

    def commit(self, marker: bytes, unsynced: int) -> None:
        """End the batch. A power failure may lose the `unsynced` bytes before the commit."""
        self._add_whole(COMMIT_RECORD.pack(COMMIT_SIZE, COMMIT, marker, min(unsynced, MASK), self.offset))

    def tombstone(self, digest: bytes) -> None:
        self._add_whole(PREFIX.pack(len(digest), TOMBSTONE) + digest)

    def seal(self, following: int) -> None:
        """End the segment. `following` is the number of the next one; 0 means that the stream is deleted."""
        self._add_whole(PREFIX.pack(8, SEAL) + NUMBER.pack(following))

    def state(self, state: State) -> None:
        body = _STATE.pack(*state[:3], len(state.sealed)) + b"".join(_ENTRY.pack(*entry) for entry in state.sealed)
        self._add_whole(PREFIX.pack(len(body), STATE) + body)


def encode_frame(number: int, data: bytes, marker: bytes, offset: int, seed: int) -> tuple[bytes, bytes, int]:
    """Return the bytes of a frame and of the commit that follows it, in two pieces, and the last checksum.

    `offset` and `seed` are the position of the frame and the checksum before it. A `Batch` does the same, but takes
    longer.
    """
    size = len(data)
    record = FRAME_HEAD.pack(8 + size, FRAME, number) + data
    checksum = crc32(record, seed ^ offset & MASK)
    end = offset + FRAME_SIZE + size
    commit = COMMIT_RECORD.pack(COMMIT_SIZE, COMMIT, marker, 0, end)
    last = crc32(commit, checksum ^ end & MASK)
    return record, _FRAME_END.pack(checksum, commit, last), last


def encode_segment(header: Header, state: State) -> list[bytes]:
    """Return the bytes of a segment that contains only a state."""
    encoded = encode_header(header)
    batch = Batch(len(encoded), int.from_bytes(encoded[-4:], "little"))
    batch.state(state)
    batch.commit(header.marker, 0)
    return [encoded, *batch.pieces]


def commit_pattern(marker: bytes) -> bytes:
    """Return the bytes that each commit of a segment begins with."""
    return PREFIX.pack(COMMIT_BODY.size, COMMIT) + marker


def is_sound(record: bytes | memoryview, checksum: int, seed: int, offset: int) -> bool:
    """Return whether a record, given without its checksum, matches the checksum."""
    return crc32(record, seed ^ offset & MASK) == checksum
