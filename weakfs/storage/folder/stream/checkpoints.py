"""Checkpoints: one file each, named by the number of the frame that it follows."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from struct import Struct
from zlib import crc32

from weakfs.storage.event_store import Checkpoint
from weakfs.storage.folder.errors import JournalDamaged
from weakfs.storage.folder.files import Descriptor, TemporaryFolder, read_all, remove

MAGIC = b"weakfs\0C"
VERSION = 1
_HEADER = Struct("<8sHHIQQ")
_CHECKSUM = Struct("<I")
_NAME = re.compile(r"([0-9]{20})\.checkpoint")


def checkpoint_name(number: int) -> str:
    return f"{number:020d}.checkpoint"


def write_checkpoint(checkpoint: Checkpoint, folder: Descriptor, temporary_folder: TemporaryFolder) -> None:
    """Write a checkpoint, synced, and remove older ones. If a newer one exists, nothing changes."""
    numbers = checkpoint_numbers(folder)
    if numbers and numbers[-1] > checkpoint.number:
        return
    header = _HEADER.pack(MAGIC, VERSION, 0, 0, checkpoint.number, len(checkpoint.data))
    checksum = _CHECKSUM.pack(crc32(checkpoint.data, crc32(header)))
    pieces = [header, checkpoint.data, checksum]
    temporary_folder.publish(pieces, checkpoint_name(checkpoint.number), folder, is_synced=True)
    for number in numbers:
        if number < checkpoint.number:
            # Anything left is removed along with the next checkpoint.
            with suppress(OSError):
                remove(checkpoint_name(number), folder)


def read_checkpoint(folder: Descriptor, path: str) -> Checkpoint | None:
    """Return the newest checkpoint. Raises `JournalDamaged`."""
    while numbers := checkpoint_numbers(folder):
        try:
            data = read_all(checkpoint_name(numbers[-1]), folder)
        except FileNotFoundError:
            continue  # replaced in the meantime
        return _decoded(data, numbers[-1], os.path.join(path, checkpoint_name(numbers[-1])))
    return None


def _decoded(data: bytes, number: int, path: str) -> Checkpoint:
    if len(data) < _HEADER.size + _CHECKSUM.size:
        raise JournalDamaged(path, len(data), None, "the checkpoint is cut off")
    magic, version, _, _, own, size = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise JournalDamaged(path, 0, None, "it is not a checkpoint of weakfs: it begins with other bytes")
    if version != VERSION:
        cause = f"it has version {version} of the format, but this weakfs reads version {VERSION}; upgrade weakfs"
        raise JournalDamaged(path, 8, None, cause)
    if len(data) != _HEADER.size + size + _CHECKSUM.size or own != number:
        raise JournalDamaged(path, 16, None, "the sizes or numbers in the checkpoint contradict each other")
    body = memoryview(data)[: -_CHECKSUM.size]
    if crc32(body) != _CHECKSUM.unpack_from(data, len(body))[0]:
        raise JournalDamaged(path, _HEADER.size, None, "the checkpoint does not match its checksum")
    return Checkpoint(number, bytes(body[_HEADER.size :]))


def checkpoint_numbers(folder: Descriptor) -> list[int]:
    """Return the numbers of the existing checkpoints, in order."""
    return sorted(int(found[1]) for name in os.listdir(folder.number) if (found := _NAME.fullmatch(name)))
