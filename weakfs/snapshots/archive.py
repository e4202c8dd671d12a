"""A tree as one tar archive and back; deterministic, and safe against hostile archives."""

from __future__ import annotations

import io
import math
import re
import tarfile

from weakfs.filesystem.limits import Limits
from weakfs.reducers import leaf as leaves
from weakfs.reducers import names
from weakfs.reducers.leaf import Leaf
from weakfs.reducers.tree import FileTree, Node, tree_of, walk

BILLION = 1_000_000_000
BLOCK = tarfile.BLOCKSIZE

# As much as files with holes may unpack to, together.
MAX_HOLES = 64 << 20

# What 64 bits of nanoseconds can hold: the years 1677 to 2262.
FIRST_SECOND, LAST_SECOND = -9223372036, 9223372035
EXACT_TIME = re.compile(r"(-?[0-9]{1,15})(?:\.([0-9]{1,9})[0-9]*)?")


def pack(tree: FileTree) -> bytes:
    """Give a tree as an uncompressed POSIX tar: entries by path, times to the nanosecond, nobody's ids.

    FIFOs are kept; sockets, devices and whiteouts are left out.
    """
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        archive.addfile(_directory("./", tree))
        for path, node in walk(tree):
            name = names.to_bytes(path[1:]).decode("utf-8", "surrogateescape")
            if type(node) is FileTree:
                archive.addfile(_directory(name, node))
                continue
            leaf = node
            info = _info(name, leaf[leaves.MODE], leaf[leaves.MODIFIED_AT])
            if leaves.is_special(leaf):
                if leaf[leaves.CONTENT] is leaves.FIFO:
                    info.type = tarfile.FIFOTYPE
                    archive.addfile(info)
                continue
            data = leaves.content_of(leaf)
            if leaves.is_link(leaf):
                info.type = tarfile.SYMTYPE
                info.linkname = data.decode("utf-8", "surrogateescape")
                archive.addfile(info)
            else:
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _info(name: str, mode: int, modified_at: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode = mode
    seconds, rest = divmod(modified_at, BILLION)
    info.mtime = seconds
    if rest:
        info.pax_headers = {"mtime": f"{seconds}.{rest:09d}"}
    return info


def _directory(name: str, tree: FileTree) -> tarfile.TarInfo:
    info = _info(name, tree.mode, tree.modified_at)
    info.type = tarfile.DIRTYPE
    return info


def unpack(data: bytes, *, limits: Limits, at: int) -> FileTree:
    """Give the tree that a tar archive holds. Times that it does not tell are `at`.

    Raises `ValueError` for what is not a tar archive, for absolute names, `..`, devices and hard links
    that lead nowhere; `OSError` (EFBIG, EDQUOT, ENAMETOOLONG) for what goes over the limits. Nothing is
    written anywhere, and no link is followed.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8", errors="surrogateescape") as archive:
            return _Unpacking(limits, at).run(archive)
    except (tarfile.TarError, OverflowError, RecursionError) as error:
        raise ValueError(f"cannot import the archive: {error}; give an uncompressed tar file") from None


class _Unpacking:
    def __init__(self, limits: Limits, at: int) -> None:
        self.limits, self.at = limits, at
        self.files: dict[tuple[str, ...], Leaf] = {}
        self.directories: dict[tuple[str, ...], tuple[int, int]] = {(): (leaves.DIRECTORY_MODE, at)}
        self.size = 0
        # What members with holes unpack to: nothing else is larger than the archive that holds it.
        self.holes = 0

    def run(self, archive: tarfile.TarFile) -> FileTree:
        for member in archive:
            path = _member_path(member.name)
            self.limits.check_path(_shown(path), path)
            self._make_parents(path)
            if member.isdir():
                if path in self.files:
                    raise _damaged(member, "is a file and a directory")
                self.directories[path] = (member.mode & 0o7777, _time(member))
            else:
                if path in self.directories:
                    raise _damaged(member, "is a file and a directory")
                replaced = self.files.pop(path, None)
                if replaced is not None:
                    self.size -= leaves.size_of(replaced)
                self.files[path] = self._leaf(archive, member)
            self._check_quota(_shown(path))
        if archive.fileobj is not None:
            # Iterating stops at the first block of zeros, or without a word where the file was cut off.
            archive.fileobj.seek(archive.offset)
            if archive.fileobj.read(2 * BLOCK) != bytes(2 * BLOCK):
                raise ValueError("cannot import the archive: its end is missing; it was cut off, take it from a copy")
        return self._tree()

    def _make_parents(self, path: tuple[str, ...]) -> None:
        missing = path[:-1]
        while missing not in self.directories:
            if missing in self.files:
                raise ValueError(f"cannot import the archive: {_shown(path)!r} lies below a file; it is damaged")
            self.directories[missing] = (leaves.DIRECTORY_MODE, self.at)
            missing = missing[:-1]

    def _leaf(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Leaf:
        mode, at = member.mode & 0o7777, _time(member)
        if member.issym():
            if not member.linkname or "\0" in member.linkname:
                raise _damaged(member, "is a link to nothing")
            return leaves.link(names.from_bytes(member.linkname.encode("utf-8", "surrogateescape")), at=at)
        if member.islnk():
            source = self.files.get(_member_path(member.linkname))
            if source is None:
                raise ValueError(
                    f"cannot import the archive: {member.name!r} is a hard link to {member.linkname!r}, which is not "
                    f"in it"
                )
            self.size += leaves.size_of(source)
            return source
        if member.isfifo():
            return leaves.special(leaves.FIFO, mode=mode, at=at)
        if not member.isreg():
            raise ValueError(
                f"cannot import the archive: {member.name!r} is neither a file, a directory, a link nor a FIFO; "
                f"leave it out"
            )
        self.limits.check_size(_shown(_member_path(member.name)), member.size)
        self.size += member.size
        if member.issparse():
            self.holes += member.size
            if self.holes > MAX_HOLES:
                raise _damaged(member, "unpacks to many times the size of the archive")
        self._check_quota(member.name)
        stream = archive.extractfile(member)
        content = stream.read() if stream is not None else b""
        if len(content) != member.size:
            raise ValueError(f"cannot import the archive: {member.name!r} was cut off; take it from a copy")
        return leaves.file(content, mode=mode, at=at)

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


def _member_path(name: str) -> tuple[str, ...]:
    canonical = names.from_bytes(name.encode("utf-8", "surrogateescape"))
    parts = [part for part in canonical.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise ValueError(
            f"cannot import the archive: the name {name!r} is absolute or leads out of it; archive relative names"
        )
    return tuple(parts)


def _time(member: tarfile.TarInfo) -> int:
    told = member.pax_headers.get("mtime")
    exact = EXACT_TIME.fullmatch(told) if isinstance(told, str) else None
    if exact is not None:
        seconds, rest = int(exact[1]), int((exact[2] or "0").ljust(9, "0"))
    elif math.isfinite(member.mtime):
        seconds, rest = int(member.mtime), 0
    else:
        raise _damaged(member, f"has the time {member.mtime}")
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise _damaged(member, f"has a time that no calendar has, {seconds}")
    return seconds * BILLION + rest


def _damaged(member: tarfile.TarInfo, what: str) -> ValueError:
    return ValueError(f"cannot import the archive: {member.name!r} {what}; it is damaged, take it from a copy")


def _shown(path: tuple[str, ...]) -> str:
    return "/" + "/".join(path)
