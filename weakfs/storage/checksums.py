"""Checksums of the frames and checkpoints that SQLite, PostgreSQL and Redis return as they find them.

The checksum is CRC-32, as in zlib. It covers the name of the stream and the number, so that data under the wrong number
or of another stream does not match. It is stored beside the data, and earlier versions, which store none, ignore it:
data without a checksum is not checked.
"""

from __future__ import annotations

from zlib import crc32

from weakfs.storage.errors import StorageDamaged
from weakfs.storage.event_store import Checkpoint


def checksum_of(stream: bytes, number: int, data: bytes) -> int:
    """Return the checksum of a frame or checkpoint: of the name of its stream and its data, starting at its number."""
    return crc32(data, crc32(stream, number & 0xFFFFFFFF))


def checkpoint_mark(stream: str, checkpoint: Checkpoint) -> str:
    """Return what is stored beside a checkpoint: its number and checksum."""
    return f"{checkpoint.number} {checksum_of(stream.encode(), *checkpoint):08x}"


def checked_checkpoint(stream: str, number: object, data: object, mark: object, url: str) -> Checkpoint:
    """Return a checkpoint as it was stored. Raises `StorageDamaged` if it does not match `mark`.

    An earlier version replaces a checkpoint by a later one, but not its mark: then the number in the mark is lower.
    """
    if not isinstance(number, int) or not isinstance(data, bytes):
        raise _checkpoint_damaged(stream, number, "it has values of the wrong type", url)
    if mark is None:
        return Checkpoint(number, data)
    if not isinstance(mark, str):
        raise _checkpoint_damaged(stream, number, "its checksum has the wrong type", url)
    try:
        marked, checksum = int(mark.split()[0]), int(mark.split()[1], 16)
    except (IndexError, ValueError):
        raise _checkpoint_damaged(stream, number, "its checksum is malformed", url) from None
    matches = checksum_of(stream.encode(), marked, data) == checksum
    if matches and marked != number:
        raise _checkpoint_damaged(stream, number, f"it was stored after frame {marked}", url)
    if not matches and marked >= number:
        raise _checkpoint_damaged(stream, number, "its checksum does not match", url)
    return Checkpoint(number, data)


def _checkpoint_damaged(stream: str, number: object, cause: str, url: str) -> StorageDamaged:
    return StorageDamaged(
        f"cannot read the checkpoint after frame {number!r:.60} of stream {stream!r} in {url!r}: {cause}; the frames "
        f"are not affected; restore the checkpoint from a backup"
    )
