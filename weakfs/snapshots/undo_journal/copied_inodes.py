"""Inode numbers of files that a journal saved or restored by copying: which copy replaced which file.

Steps refer to a file by its inode number. A file that was restored from a copy, or from a snapshot of the whole tree,
has another number, and the earlier steps still have to find it. Each line of the file `inodes` describes one copy, so
that this survives a killed process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from attrs import field

from weakfs.class_decorators import define
from weakfs.reducers.tree.node import Segments
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.undo_journal.checked_lines import checked_line, read_lines
from weakfs.snapshots.undo_journal.log import damaged

INODES = b"inodes"

# The place of a file: on the disk being changed, or in the journal, which may be on another device.
Side = Literal["disk", "journal"]

_InodeOnSide = tuple[str, int]


class CopiedInodes:
    """The file `inodes` of a journal, given by the descriptor and path of its directory. Reads each line of it once."""

    def __init__(self, journal: int, path: str) -> None:
        self._journal = journal
        self._path = path
        self._read = self._lines = 0
        # The copies of each inode number, each with the number of the line that describes it.
        self._copies: dict[_InodeOnSide, list[tuple[int, _InodeOnSide]]] = {}

    def remember(self, source: Side, target: Side, pairs: Iterable[tuple[int, int]]) -> None:
        """Append the inode numbers of files and their copies."""
        self.read()
        offset = self._read
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(INODES, flags, 0o600, dir_fd=self._journal), "r+b") as stream:
            # A process that was killed may have left part of a line.
            stream.truncate(offset)
            stream.seek(offset)
            for old, new in pairs:
                offset += stream.write(checked_line(f"{source} {old} {target} {new}".encode(), offset))

    def remember_restored(self, disk: HostDirectory, frames: Iterable[dict[str, Any]]) -> None:
        """Remember which of the entries that steps refer to were created again by a later restore of the whole tree."""
        statuses = ((disk.status(path), was) for path, was in _inodes_after(frames))
        pairs = [(was, status.st_ino) for status, was in statuses if status is not None and status.st_ino != was]
        self.remember("disk", "disk", pairs)

    def current(self, was: int) -> set[int]:
        """Return the inode numbers that the file `was` may have on the disk now: its own, and those of its copies."""
        self.read()
        # A copy of a copy was made later, so its line comes later. The numbers of removed files are used again.
        found: dict[_InodeOnSide, int] = {("disk", was): 0}
        waiting: list[_InodeOnSide] = [("disk", was)]
        while waiting:
            inode = waiting.pop()
            for line, copy in self._copies.get(inode, ()):
                if line > found[inode] and line < found.get(copy, line + 1):
                    found[copy] = line
                    waiting.append(copy)
        return {number for side, number in found if side == "disk"}

    def read(self) -> None:
        """Read the lines that are new. Raises `OSError` (EBADMSG) for one that was damaged."""
        try:
            descriptor = os.open(INODES, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._journal)
        except FileNotFoundError:
            return
        with open(descriptor, "rb") as stream:
            stream.seek(self._read)
            try:
                for text, length in read_lines(stream, self._read):
                    self._read += length
                    self._lines += 1
                    source, old, target, new = text.decode().split()
                    self._copies.setdefault((source, int(old)), []).append((self._lines, (target, int(new))))
            except ValueError as error:
                raise damaged(self._path, f"a line of its file {INODES.decode()!r} was changed: {error}") from None


def _inodes_after(frames: Iterable[dict[str, Any]]) -> Iterator[tuple[Segments, int]]:
    """Yield the entries that the steps of a log refer to: their paths after these steps, and their inode numbers."""
    root = _Place()
    for frame in frames:
        segments: Segments = tuple(frame["path"])
        match frame["op"]:
            case "kept":
                root.take(segments)
            case "moved":
                moved = root.take(segments)
                moved.inode = frame["was"]
                root.put(tuple(frame["to"]), moved)
            case "contents":
                for name in (segments, *map(tuple, frame["names"])):
                    root.at(name).inode = frame["was"]
    yield from root.inodes(())


@define
class _Place:
    """What is known of one path: the inode number of its entry, and the names below it."""

    inode: int | None = None
    below: dict[str, _Place] = field(factory=dict[str, "_Place"])

    def at(self, segments: Segments) -> _Place:
        place = self
        for name in segments:
            place = place.below.setdefault(name, _Place())
        return place

    def take(self, segments: Segments) -> _Place:
        return self.at(segments[:-1]).below.pop(segments[-1], _Place())

    def put(self, segments: Segments, place: _Place) -> None:
        self.at(segments[:-1]).below[segments[-1]] = place

    def inodes(self, path: Segments) -> Iterator[tuple[Segments, int]]:
        stack = [(path, self)]
        while stack:
            path, place = stack.pop()
            if place.inode is not None:
                yield path, place.inode
            stack += [((*path, name), below) for name, below in place.below.items()]
