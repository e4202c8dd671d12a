"""The values that event streams store under the keys of a `Storage`; docs/formats/storage-keys.md describes them.

A value consists of a line with the kind, the version of the format and a checksum, a line of JSON, and bytes whose
lengths the JSON states.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any
from zlib import crc32

import orjson
from attrs import asdict, evolve

from weakfs.class_decorators import frozen
from weakfs.storage.errors import StorageDamaged, StorageError
from weakfs.storage.event_store import Frame

VERSION = 1
HEAD, SEGMENT = b"weakfs stream", b"weakfs frames"


@frozen
class Head:
    """The end of a stream, with its newest frames. Replacing this value changes the stream."""

    # Part of all other keys of the stream: a stream that is deleted and created again shares none of them.
    id: str
    # The newest frame, and the oldest one not trimmed.
    number: int = 0
    first: int = 1
    # The frames up to `number` that are not in a segment yet.
    tail: tuple[bytes, ...] = ()
    # The last frame of each segment that is not yet merged into a larger one, and the size of its frames.
    segments: tuple[tuple[int, int], ...] = ()
    # The last frame in merged segments.
    merged: int = 0
    # How many times contents were deleted. If it changes, contents that a writer knew of may be gone.
    trims: int = 0
    fencing: int = 0
    owner: str = ""
    # When the lease expires, in seconds since 1970, and for how many seconds it was granted, which earlier versions did
    # not store.
    expires: float = 0.0
    seconds: float | None = None

    @property
    def tail_first(self) -> int:
        """The number of the first frame of the tail."""
        return self.number - len(self.tail) + 1

    def appended(self, frames: Sequence[bytes]) -> Head:
        return evolve(self, number=self.number + len(frames), tail=(*self.tail, *frames))


def encode_head(head: Head) -> bytes:
    fields: dict[str, object] = {**asdict(head, recurse=False), "tail": [len(frame) for frame in head.tail]}
    return _encode(HEAD, fields, head.tail)


def decode_head(value: bytes, where: str) -> Head:
    """Read a head. Raises `StorageDamaged` if `value`, the value of the key `where`, is not one."""
    fields, rest = _decode(HEAD, value, where)
    try:
        return Head(
            id=str(fields["id"]),
            number=int(fields["number"]),
            first=int(fields["first"]),
            tail=_split(fields["tail"], rest, where),
            segments=tuple((int(last), int(size)) for last, size in fields["segments"]),
            merged=int(fields["merged"]),
            trims=int(fields["trims"]),
            fencing=int(fields["fencing"]),
            owner=str(fields["owner"]),
            expires=float(fields["expires"]),
            seconds=None if fields.get("seconds") is None else float(fields["seconds"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(where, f"its fields are wrong ({error!r})") from error


def encode_segment(frames: Sequence[Frame]) -> bytes:
    """Return the value for consecutive frames."""
    fields: dict[str, object] = {"first": frames[0].number, "lengths": [len(frame.data) for frame in frames]}
    return _encode(SEGMENT, fields, [frame.data for frame in frames])


def decode_segment(value: bytes, where: str) -> list[Frame]:
    """Read a segment. Raises `StorageDamaged` if `value`, the value of the key `where`, is not one."""
    fields, rest = _decode(SEGMENT, value, where)
    try:
        first = int(fields["first"])
        return [Frame(first + at, data) for at, data in enumerate(_split(fields["lengths"], rest, where))]
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(where, f"its fields are wrong ({error!r})") from error


def _encode(kind: bytes, fields: dict[str, object], parts: Sequence[bytes]) -> bytes:
    body = b"".join((orjson.dumps(fields), b"\n", *parts))
    return b"%s %d %08x\n%s" % (kind, VERSION, crc32(body), body)


def _decode(kind: bytes, value: bytes, where: str) -> tuple[dict[str, Any], bytes]:
    line, _, body = value.partition(b"\n")
    tokens = line[len(kind) :].split()
    if not line.startswith(kind) or len(tokens) != 2 or not (tokens[0].isdigit() and len(tokens[0]) < 10):
        raise _damaged(where, "it does not begin like a value of an event stream")
    if int(tokens[0]) > VERSION:
        raise StorageError(
            f"cannot read {where!r}: it has version {int(tokens[0])} of the format, but this weakfs reads only up to "
            f"version {VERSION}; upgrade weakfs"
        )
    if tokens[1] != b"%08x" % crc32(body):
        raise _damaged(where, "its checksum does not match")
    fields, _, rest = body.partition(b"\n")
    try:
        return orjson.loads(fields), rest
    except orjson.JSONDecodeError as error:
        raise _damaged(where, f"it holds no JSON ({error})") from error


def _split(lengths: object, data: bytes, where: str) -> tuple[bytes, ...]:
    given: list[Any] = lengths if isinstance(lengths, list) else [None]
    # Lengths below zero would make overlapping parts, which together are larger than the data.
    if not all(type(length) is int and length >= 0 for length in given) or sum(given) != len(data):
        raise _damaged(where, "its length differs from the length that it states")
    return tuple(data[start:end] for start, end in pairwise(accumulate(given, initial=0)))


def _damaged(where: str, why: str) -> StorageDamaged:
    return StorageDamaged(f"cannot read {where!r}: {why}; the value is damaged; restore it from a backup")
