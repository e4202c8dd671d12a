"""Conversion of a tree to a tar archive and back; deterministic, and safe against hostile archives."""

from __future__ import annotations

import io
import math
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from errno import EBUSY
from hashlib import sha256
from typing import IO, Any, Self, cast

from weakfs.filesystem.errors import quoted
from weakfs.filesystem.limits import Limits
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import FileTree, Node, path_of, tree_of, walk
from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.sparse import PIECE
from weakfs.session.codec import expansion_limit
from weakfs.session.errors import MissingBlob
from weakfs.session.interruption import check_interrupted, checked_between
from weakfs.snapshots.archive import tar_headers as members
from weakfs.snapshots.archive.archived_blob import Archived
from weakfs.snapshots.directory.entries import pieces_of

BILLION = 1_000_000_000
BLOCK = members.BLOCK
# An archive ends with two empty blocks, and is padded to a whole number of records.
END = 2 * BLOCK
RECORD = tarfile.RECORDSIZE

# The maximum total size of unpacked sparse files.
MAX_HOLES = 64 << 20

# The bytes of memory that an implied directory takes (one that appears only in the paths of other members), and that
# each name in its path takes.
DIRECTORY, NAME = 600, 8

# The kind of a header, and the kinds that describe the next member: pax records and the long names of GNU tar.
KIND, EXTENDED = slice(156, 157), (b"x", b"g", b"X", b"L", b"K")
# The maximum size of an extended header in bytes, as in libarchive.
MAX_EXTENDED = 1 << 20
# The maximum number of digits in a row in an extended header, more than a file name can have. `tarfile` before Python
# 3.11.10 and 3.12.6 takes quadratic time for a run of digits: 40 seconds for 100,000 of them.
MAX_DIGITS = 300
IS_DIGIT = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))

# The range of 64-bit nanoseconds: the years 1677 to 2262.
FIRST_SECOND, LAST_SECOND = -9223372036, 9223372035
EXACT_TIME = re.compile(r"(-?[0-9]{1,15})(?:\.([0-9]{1,9})[0-9]*)?")


def to_tar(tree: FileTree) -> bytes:
    """Return a tree as an uncompressed POSIX tar: entries by path, times in nanoseconds, no user or group ids.

    FIFOs are kept; sockets, devices and whiteouts are left out. For large trees, see `packed`.
    """
    return b"".join(packed(tree))


def packed(tree: FileTree, on_content: Callable[[Leaf, int], object] = lambda leaf, offset: None) -> Iterator[bytes]:
    """Yield the archive piece by piece; large contents are read in pieces too. `packed_size` returns its total length.

    `on_content(leaf, offset)` is called with the offset in the archive where each file's content begins.
    """
    offset = 0
    for name, node in _members(tree):
        check_interrupted()
        header = members.head(name, *_described(node))
        offset += len(header)
        yield header
        if type(node) is not FileTree and leaves.is_file(node):
            size = leaves.size_of(node)
            on_content(node, offset)
            left = size
            for piece in checked_between(pieces_of(node[leaves.CONTENT])):
                left -= len(piece)
                if left < 0:
                    break
                yield piece
            if left:
                raise OSError(EBUSY, f"cannot archive {os.fsdecode(name)!r}: its size is changing; try again")
            yield members.padding(size)
            offset += members.padded(size)
    yield bytes(-(-(offset + END) // RECORD) * RECORD - offset)


def packed_size(tree: FileTree) -> int:
    """Return the size in bytes of a tree's archive, without reading any content."""
    size = END
    for name, node in _members(tree):
        kind, _, length, modified_at, target = _described(node)
        size += members.head_size(name, length, modified_at, target)
        size += members.padded(length) if kind == members.FILE else 0
    return -(-size // RECORD) * RECORD


def _members(tree: FileTree) -> Iterator[tuple[bytes, Node]]:
    yield b"./", tree
    for path, node in walk(tree):
        if type(node) is FileTree:
            yield names.to_bytes(path[1:]) + b"/", node
        elif not leaves.is_special(node) or node[leaves.CONTENT] is leaves.FIFO:
            yield names.to_bytes(path[1:]), node


def _described(node: Node) -> tuple[bytes, int, int, int, bytes]:
    """Return the kind, mode, size, time and target of a member."""
    if type(node) is FileTree:
        return members.DIRECTORY, node.mode, 0, node.modified_at, b""
    _, mode, modified_at, _, _ = leaf = node
    if leaves.is_link(leaf):
        return members.LINK, mode, 0, modified_at, leaves.content_of(leaf)
    if leaves.is_special(leaf):
        return members.FIFO, mode, 0, modified_at, b""
    return members.FILE, mode, leaves.size_of(leaf), modified_at, b""


def from_tar(data: bytes, *, limits: Limits, at: int) -> FileTree:
    """Return the tree that a tar archive holds. Entries without a time get the time `at`.

    Raises `ValueError` for data that is not a tar archive, for absolute names, `..`, devices, hard links without an
    earlier target, and extended headers of more than 1 MiB or with more than 300 digits in a row; `OSError`
    (EFBIG, EDQUOT, ENAMETOOLONG) for anything over the limits. Nothing is written to disk, and no link is followed.
    """
    return _unpacked(io.BytesIO(data), _Unpacking(limits, at, len(data)))


def unpack_in_place(archive: Archived, *, limits: Limits, at: int) -> FileTree:
    """Return the tree that an archive holds; contents stay in the archive.

    Reads the archive twice: for its own digest, and for those of its contents. Raises what `from_tar` raises, and
    `MissingBlob` if the archive was damaged.
    """
    archive.check()
    return _unpacked(archive.stream(), _InPlace(limits, at, archive.size, archive))


def _unpacked(stream: IO[bytes], work: _Unpacking) -> FileTree:
    try:
        with _opened(stream) as archive:
            return work.run(archive)
    except (tarfile.TarError, OverflowError, RecursionError) as error:
        raise ValueError(f"cannot import the archive: {_short(str(error))}; use an uncompressed tar file") from None


def _opened(stream: IO[bytes]) -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=stream, mode="r:", encoding="utf-8", errors="surrogateescape", tarinfo=_Member)
    except ValueError as error:
        raise _malformed(error) from None


class _Member(tarfile.TarInfo):
    """A member whose extended headers are checked before `tarfile` reads them."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """Read the next header; raise `ValueError` if it is an extended one that would take too much time or memory."""
        stream = cast("IO[bytes]", tarfile.fileobj)
        start = stream.tell()
        block = stream.read(BLOCK)
        if block[KIND] in EXTENDED:
            size = cls.frombuf(block, "utf-8", "surrogateescape").size
            if size > MAX_EXTENDED:
                raise ValueError(f"an extended header of {size} bytes, where {MAX_EXTENDED} are allowed")
            if b"0" * (MAX_DIGITS + 1) in stream.read(max(size, 0)).translate(IS_DIGIT):
                raise ValueError(f"more than {MAX_DIGITS} digits in a row")
        stream.seek(start)
        return super().fromtarfile(tarfile)


def _next_member(archive: tarfile.TarFile) -> tarfile.TarInfo | None:
    try:
        member = archive.next()
    except ValueError as error:
        raise _malformed(error) from None
    # tarfile keeps every member, at half a kilobyte each, but they are not needed again.
    cast("Any", archive).members.clear()
    return member


def _malformed(error: ValueError) -> ValueError:
    """Return the error for a header that is too large, or that `tarfile` converts without a check.

    An archive that is no longer in its store is not a damaged one: its error is returned unchanged.
    """
    if isinstance(error, MissingBlob):
        return error
    return ValueError(
        f"cannot import the archive: a header is malformed ({_short(str(error))}), so it is damaged; use another copy"
    )


class _Unpacking:
    def __init__(self, limits: Limits, at: int, archive_size: int) -> None:
        self.limits, self.at = limits, at
        # The remaining memory for implied directories, in bytes: one long name can create hundreds of them.
        self.room = max(int(expansion_limit.FACTOR * archive_size), expansion_limit.LEAST)
        self.files: dict[tuple[str, ...], Leaf] = {}
        self.directories: dict[tuple[str, ...], tuple[int, int]] = {(): (leaves.DIRECTORY_MODE, at)}
        self.size = 0
        # The total size of unpacked sparse members; no other member can be larger than the archive that holds it.
        self.holes = 0

    def run(self, archive: tarfile.TarFile) -> FileTree:
        while (member := _next_member(archive)) is not None:
            check_interrupted()
            path = _member_path(member.name)
            self.limits.check_path(path_of(path), path)
            self._make_parents(path)
            if member.isdir():
                if path in self.files:
                    raise _damaged(member, "is a file and a directory")
                self.directories[path] = (member.mode & 0o7777, _time(member))
            else:
                if path in self.directories:
                    raise _damaged(member, "is a file and a directory")
                replaced = self.files.get(path)
                if replaced is not None:
                    self.size -= leaves.size_of(replaced)
                self.files[path] = self._leaf(archive, member)
            self._check_quota(path_of(path))
        if archive.fileobj is not None:
            # Iterating stops at the first block of zeros, or silently where the file was cut off.
            archive.fileobj.seek(archive.offset)
            if archive.fileobj.read(2 * BLOCK) != bytes(2 * BLOCK):
                raise ValueError("cannot import the archive: its end is missing, so it was truncated; use another copy")
        return self._tree()

    def _make_parents(self, path: tuple[str, ...]) -> None:
        missing = path[:-1]
        while missing not in self.directories:
            if missing in self.files:
                below = quoted(path_of(path))
                raise ValueError(f"cannot import the archive: {below} is below a file; use another copy")
            self.room -= DIRECTORY + NAME * len(missing)
            if self.room < 0:
                raise ValueError(
                    f"cannot import the archive: the missing parent directories of {_short(path_of(path))!r} and "
                    f"others would take more than {expansion_limit.FACTOR:g} times its size; include directories in "
                    f"the archive, as tar does"
                )
            self.directories[missing] = (leaves.DIRECTORY_MODE, self.at)
            missing = missing[:-1]

    def _leaf(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Leaf:
        mode, at = member.mode & 0o7777, _time(member)
        if member.issym():
            if not member.linkname or "\0" in member.linkname:
                raise _damaged(member, "is a link without a target")
            return leaves.link(names.from_bytes(member.linkname.encode("utf-8", "surrogateescape")), at=at)
        if member.islnk():
            source = self.files.get(_member_path(member.linkname))
            if source is None:
                raise ValueError(
                    f"cannot import the archive: {quoted(member.name)} is a hard link to {quoted(member.linkname)}, "
                    f"and no file of that name comes before it; use another copy, or write the archive without hard "
                    f"links"
                )
            self.size += leaves.size_of(source)
            return source
        if member.isfifo():
            return leaves.special(leaves.FIFO, mode=mode, at=at)
        if not member.isreg():
            raise ValueError(
                f"cannot import the archive: {quoted(member.name)} is neither a file, a directory, a link nor a FIFO; "
                f"leave it out"
            )
        self.limits.check_size(path_of(_member_path(member.name)), member.size)
        self.size += member.size
        if member.issparse():
            self.holes += member.size
            if self.holes > MAX_HOLES:
                raise _damaged(member, "unpacks to many times the size of the archive")
        self._check_quota(member.name)
        content = self._content(archive, member)
        if len(content) != member.size:
            raise ValueError(f"cannot import the archive: {quoted(member.name)} is truncated; use another copy")
        return leaves.file(content, mode=mode, at=at)

    def _content(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | Stored:
        stream = archive.extractfile(member)
        return stream.read() if stream is not None else b""

    def _check_quota(self, path: str) -> None:
        nodes = len(self.files) + len(self.directories) - 1
        self.limits.check_quota(path, size=0, more_size=self.size, nodes=0, more_nodes=nodes)

    def _tree(self) -> FileTree:
        inside: dict[tuple[str, ...], dict[str, Node]] = {path: {} for path in self.directories}
        for path, leaf in self.files.items():
            inside[path[:-1]][path[-1]] = leaf
        for path in sorted(self.directories, key=len, reverse=True):
            mode, at = self.directories[path]
            tree = tree_of(inside[path], mode=mode, modified_at=at, created_at=at)
            if not path:
                return tree
            inside[path[:-1]][path[-1]] = tree
        raise AssertionError("the root is among the directories")


class _InPlace(_Unpacking):
    """Unpacks without copying contents; those of sparse files, which are not contiguous in the archive, are copied."""

    def __init__(self, limits: Limits, at: int, archive_size: int, archived: Archived) -> None:
        super().__init__(limits, at, archive_size)
        self.archived = archived

    def _content(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | Stored:
        if member.issparse() or archive.fileobj is None:
            return super()._content(archive, member)
        archive.fileobj.seek(member.offset_data)
        left = member.size
        found = sha256(b"blob %d\0" % left)
        while left and (piece := archive.fileobj.read(min(PIECE, left))):
            check_interrupted()
            found.update(piece)
            left -= len(piece)
        return b"" if left else self.archived.hold(found.digest(), member.offset_data, member.size)


def _member_path(name: str) -> tuple[str, ...]:
    canonical = names.from_bytes(name.encode("utf-8", "surrogateescape"))
    parts = [part for part in canonical.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise ValueError(
            f"cannot import the archive: the name {quoted(name)} is absolute or leads out of it; use relative names"
        )
    return tuple(parts)


def _time(member: tarfile.TarInfo) -> int:
    recorded = member.pax_headers.get("mtime")
    exact = EXACT_TIME.fullmatch(recorded) if isinstance(recorded, str) else None
    if exact is not None:
        seconds, rest = int(exact[1]), int((exact[2] or "0").ljust(9, "0"))
        if exact[1].startswith("-") and rest:
            seconds, rest = seconds - 1, BILLION - rest
    elif math.isfinite(member.mtime):
        seconds, rest = int(member.mtime), 0
    else:
        raise _damaged(member, f"has the time {member.mtime}")
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise _damaged(member, f"has a time out of range, {seconds}")
    return seconds * BILLION + rest


def _damaged(member: tarfile.TarInfo, what: str) -> ValueError:
    return ValueError(f"cannot import the archive: {quoted(member.name)} {what}, so it is damaged; use another copy")


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:60]}...{text[-40:]}"
