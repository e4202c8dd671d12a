"""Manifests: a directory's entries as one object of a store, named by its digest.

    mark | mode, modified_at, number of rows, length of the names | rows | names | targets of links

A row holds the result of `lstat`, for the next scan to compare with, and the digest of a file's content, a link's
target or a directory's manifest. Rows are sorted by canonical name; names and targets are separated by NUL. A
directory that did not change is the same object in every snapshot.
"""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterator
from hashlib import sha256

from weakfs.class_decorators import define
from weakfs.reducers.timestamps import LARGEST, SMALLEST, clamped

MARK = b"wfm1"
HEAD = struct.Struct("<4sHqII")
ROW = struct.Struct("<HqqQQ32s")
ROW_STATUS = struct.Struct("<HqqQQ32x")
ROW_DIGEST = struct.Struct("<34x32s")
NO_DIGEST = bytes(32)

# (st_mode, st_size, st_mtime_ns, st_ctime_ns, st_ino), which a scan compares to tell whether an entry has changed. A
# change time of 0 marks a status that is never trusted.
Status = tuple[int, int, int, int, int]

# The status of a directory about which nothing is known.
NO_STATUS: Status = (stat.S_IFDIR | 0o755, 0, 0, 0, 0)


def manifest_digest(manifest: bytes) -> bytes:
    """Return the digest that names a manifest; it never equals the digest of a file's content."""
    return sha256(b"manifest %d\0" % len(manifest) + manifest).digest()


def encode(mode: int, modified_at: int, rows: list[tuple[str, Status, bytes, str | None]]) -> bytes:
    """Return the manifest of a directory: rows of `(name, status, digest, target)` in any order."""
    rows.sort()
    names = "\0".join([row[0] for row in rows]).encode()
    targets = "\0".join([row[3] for row in rows if row[3] is not None]).encode()
    packed = [
        ROW.pack(mode, mtime, ctime, inode, size, digest)
        for _, (mode, size, mtime, ctime, inode), digest, _ in map(_within_bounds, rows)
    ]
    return b"".join((HEAD.pack(MARK, mode, modified_at, len(rows), len(names)), *packed, names, b"\0", targets))


def _within_bounds(row: tuple[str, Status, bytes, str | None]) -> tuple[str, Status, bytes, str | None]:
    name, (mode, size, mtime, ctime, inode), digest, target = row
    if SMALLEST <= mtime <= LARGEST and SMALLEST <= ctime <= LARGEST:
        return row
    # Times after the year 2262 are not stored exactly, and so are never trusted.
    return name, (mode, size, clamped(mtime), 0, inode), digest, target


def head(manifest: bytes) -> tuple[int, int]:
    """Return the directory's own `(mode, modified_at)`; raise `ValueError` for data that is not a manifest."""
    mark, mode, modified_at, _, _ = HEAD.unpack_from(manifest)
    if mark != MARK:
        raise ValueError("it is not a manifest")
    return mode, modified_at


@define(eq=False)
class Columns:
    """The rows of a manifest by column, sorted by name."""

    names: list[str]
    statuses: list[Status]
    modes: tuple[int, ...]
    sizes: tuple[int, ...]
    mtimes: tuple[int, ...]
    ctimes: tuple[int, ...]
    # The kinds of all entries, as `stat.S_IFMT` returns them.
    kinds: set[int]


def columns(manifest: bytes) -> Columns:
    """Return the names and statuses in a manifest; raise `ValueError` for data that is not a manifest.

    `digests`, `targets` and `rows` then read the same data without errors.
    """
    count, end, names_size = _measured(manifest)
    if not count:
        return Columns([], [], (), (), (), (), set())
    names = manifest[end : end + names_size].decode().split("\0")
    if len(names) != count:
        raise ValueError(f"it is not a manifest (it has {count} rows, but {len(names)} names)")
    # Columns, since `zip` does more of the work than a loop in Python.
    unpacked = ROW_STATUS.iter_unpack(memoryview(manifest)[HEAD.size : end])
    modes, mtimes, ctimes, inodes, sizes = zip(*unpacked, strict=True)
    statuses = list(zip(modes, sizes, mtimes, ctimes, inodes, strict=True))
    kinds = {stat.S_IFMT(mode) for mode in set(modes)}
    links = sum(map(stat.S_ISLNK, modes)) if stat.S_IFLNK in kinds else 0
    if (links or len(manifest) > end + names_size + 1) and len(targets(manifest)) < links:
        raise ValueError("it is not a manifest (it has more links than targets)")
    return Columns(names, statuses, modes, sizes, mtimes, ctimes, kinds)


def digests(manifest: bytes) -> list[bytes]:
    """Return the digests in a manifest, in the order of its rows."""
    _, end, _ = _measured(manifest)
    return [digest for (digest,) in ROW_DIGEST.iter_unpack(memoryview(manifest)[HEAD.size : end])]


def targets(manifest: bytes) -> list[str]:
    """Return the targets of the links in a manifest, in the order of its rows."""
    _, end, names_size = _measured(manifest)
    return manifest[end + names_size + 1 :].decode().split("\0")


def rows(manifest: bytes) -> Iterator[tuple[str, Status, bytes, str | None]]:
    """Yield `(name, status, digest, target)` by name; raise `ValueError` for data that is not a manifest."""
    found = columns(manifest)
    remaining = iter(targets(manifest))
    for name, status, digest in zip(found.names, found.statuses, digests(manifest), strict=True):
        yield name, status, digest, next(remaining) if stat.S_ISLNK(status[0]) else None


def _measured(manifest: bytes) -> tuple[int, int, int]:
    """Return the number of rows, where they end, and the length of the names."""
    try:
        mark, _, _, count, names_size = HEAD.unpack_from(manifest)
    except struct.error as error:
        raise ValueError(f"it is not a manifest ({error})") from None
    end = HEAD.size + count * ROW.size
    if mark != MARK or end + names_size + 1 > len(manifest):
        raise ValueError("it is not a manifest")
    return count, end, names_size


def children(manifest: bytes) -> Iterator[tuple[bool, bytes]]:
    """Yield the references in a manifest: `(is_directory, digest)` for its directories and files."""
    for _, status, digest, _ in rows(manifest):
        if stat.S_ISDIR(status[0]):
            yield True, digest
        elif stat.S_ISREG(status[0]):
            yield False, digest
