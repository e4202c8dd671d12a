"""What one piece of work changes on a disk, written down before it happens, so that it can be undone exactly.

What a path held is kept as the very file or directory, linked or moved into the journal's own directory (copied
where that lies on another device). The log is a line of JSON a step; undoing takes the last step back and cuts its
line off. A process that is killed leaves its journal, and the next one that opens the disk undoes it. Removing the
log is the moment from which the work stays.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EDQUOT, EMLINK, ENOENT, ENOSPC, ENOTSUP, EOPNOTSUPP, EPERM, EXDEV
from typing import Any

import orjson

from weakfs.reducers.tree.node import FileTree, Segments
from weakfs.session.interruption import uninterrupted
from weakfs.snapshots.directory.directory import HostDirectory, Parent
from weakfs.snapshots.directory.entries import DIRECTORY, rename, temporary_name
from weakfs.snapshots.directory.entries import remove as remove_entry

logger = logging.getLogger("weakfs.snapshots")

# Why a file or directory cannot be linked or moved into the journal, so that it has to be copied.
COPIED = (EXDEV, EPERM, EACCES, EMLINK, ENOTSUP, EOPNOTSUPP)

LOG = b"log"

Frame = dict[str, Any]


class Journal:
    """The steps of one piece of work on a disk. Costs nothing before the first step.

    `start` is how the paths of journals of this disk begin, in a folder that is made for them; `go_back(ref)` restores
    the whole tree that a step names.
    """

    def __init__(self, disk: HostDirectory, start: str, go_back: Callable[[str], None]) -> None:
        self.disk = disk
        self._start = start
        self._go_back = go_back
        self._path: str | None = None
        self._directory = self._log = -1
        # Each step with where its line begins in the log.
        self._frames: list[tuple[int, Frame]] = []
        self._end = 0
        self._kept = 0

    @property
    def mark(self) -> int:
        """Where the journal stands: what `undo` takes to undo no more than what came after."""
        return len(self._frames)

    # Steps, each written down before the change that it is about

    def absent(self, segments: Segments) -> None:
        """Say that nothing is at a path, where something is about to be made."""
        self._write({"op": "absent", "path": segments, "parents": self._times(segments)})

    def keep(self, segments: Segments) -> None:
        """Keep what is at a path, which is about to be replaced; a directory is moved away."""
        status = self.disk.status(segments)
        if status is None:
            self.absent(segments)
            return
        if stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_IWUSR and status.st_uid == os.geteuid():
            # A directory that its owner may not write cannot be moved to another one.
            self.status(segments)
            self.disk.set_status(segments, mode=stat.S_IMODE(status.st_mode) | stat.S_IRWXU)
            status = self.disk.status(segments) or status
        self._kept += 1
        name = b"%d" % self._kept
        frame = {"op": "kept", "path": segments, "as": self._kept, "parents": self._times(segments)}
        aside = (*segments[:-1], temporary_name().decode()) if stat.S_ISDIR(status.st_mode) else None
        self._write({**frame, "was": _identity(status), "aside": aside})
        with Parent(self.disk, segments) as (directory, own):
            try:
                if stat.S_ISDIR(status.st_mode):
                    os.rename(own, name, src_dir_fd=directory, dst_dir_fd=self._directory)
                else:
                    os.link(own, name, src_dir_fd=directory, dst_dir_fd=self._directory, follow_symlinks=False)
                return
            except OSError as error:
                if error.errno not in COPIED:
                    raise
        self._copy(segments, name, aside)

    def moved(self, source: Segments, destination: Segments) -> None:
        """Say that an entry is about to be moved to a path where nothing is."""
        times = [*self._times(source), *self._times(destination)]
        status = self.disk.status(source)
        was = None if status is None else status.st_ino
        self._write({"op": "moved", "path": source, "to": destination, "was": was, "parents": times})

    def status(self, segments: Segments) -> None:
        """Keep the permission bits and the time of an entry, which are about to be set."""
        status = self.disk.status(segments)
        if status is not None:
            mode, at = stat.S_IMODE(status.st_mode), status.st_mtime_ns
            self._write({"op": "status", "path": segments, "mode": mode, "at": at})

    def tree(self, ref: str) -> None:
        """Say that anything may be changed; `ref` names the whole tree as it is now."""
        self._write({"op": "tree", "path": (), "ref": ref})

    # Endings

    def undo(self, mark: int = 0) -> None:
        """Take back all steps after `mark`, the last first. May be called again after it failed."""
        while len(self._frames) > mark:
            offset, frame = self._frames[-1]
            with uninterrupted():
                self._take_back(frame)
            os.ftruncate(self._log, offset)
            self._end = offset
            self._frames.pop()
        if not self._frames:
            self.close()

    def close(self) -> None:
        """Let the work stay, and forget what was there before."""
        if self._path is None:
            return
        try:
            try:
                self._end_log()
            except BaseException:
                # An interrupt must not leave a log by which the next process would undo what is to stay.
                self._end_log()
                raise
            _clear(self._path)
        finally:
            self._path, self._frames, self._end = None, [], 0
            self._let_go()

    def _let_go(self) -> None:
        for descriptor in (self._log, self._directory):
            if descriptor >= 0:
                os.close(descriptor)
        self._directory = self._log = -1

    def _end_log(self) -> None:
        os.ftruncate(self._log, 0)
        with suppress(FileNotFoundError):
            os.unlink(LOG, dir_fd=self._directory)

    def begin(self) -> Nested:
        """Start a piece of the same work, which can be undone by itself."""
        return Nested(self)

    def _write(self, frame: Frame) -> None:
        if self._path is None:
            self._open()
        line = orjson.dumps(frame) + b"\n"
        written = os.pwrite(self._log, line, self._end)
        if written < len(line):
            # The next attempt says why: the disk is full.
            os.pwrite(self._log, line[written:], self._end + written)
        self._frames.append((self._end, frame))
        self._end += len(line)

    def _open(self) -> None:
        path = f"{self._start}-{secrets.token_hex(8)}"
        try:
            os.mkdir(path, 0o700)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            os.mkdir(path, 0o700)
        try:
            self._directory = os.open(path, DIRECTORY)
            self._log = os.open(LOG, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._directory)
            fcntl.flock(self._log, fcntl.LOCK_EX)
        except BaseException:
            self._let_go()
            _clear(path)
            raise
        if not os.fstat(self._log).st_nlink:
            # Somebody who looks for leftovers came before the lock, and took it for one.
            self._let_go()
            self._open()
            return
        self._path = path

    def _times(self, segments: Segments) -> list[int]:
        """Give when the directory that a path lies in was modified; undoing sets it back."""
        status = self.disk.status(segments[:-1])
        return [] if status is None else [status.st_mtime_ns]

    def _copy(self, segments: Segments, name: bytes, aside: Segments | None) -> None:
        node = self.disk.subtree(segments)
        if node is None:
            return
        own = HostDirectory(str(self._path))
        whole = (name.decode() + ".copy",)
        own.put(whole, node)
        own.rename(whole, (name.decode(),))
        if aside is not None:
            self._remove_copied(segments, aside)

    def _remove_copied(self, segments: Segments, aside: Segments) -> None:
        """Remove a directory of which there is a copy: renamed first, so that it goes at once or not at all."""
        try:
            self.disk.rename(segments, aside)
        except OSError as error:
            if error.errno != EXDEV:
                raise
            # An overlay mount renames no directory of a lower layer. With another time it is not taken for untouched
            # when its removal is interrupted.
            status = self.disk.status(segments)
            if status is not None:
                self.disk.set_status(segments, modified_at=status.st_mtime_ns ^ 1)
            self.disk.remove(segments)
            return
        self.disk.remove(aside)

    def _take_back(self, frame: Frame) -> None:
        segments: Segments = tuple(frame["path"])
        match frame["op"]:
            case "absent":
                self.disk.remove(segments)
                self._set_times(frame, segments)
            case "kept":
                if frame["aside"]:
                    self.disk.remove(tuple(frame["aside"]))
                self._put_back(segments, b"%d" % frame["as"], frame["was"])
                self._set_times(frame, segments)
            case "moved":
                destination = tuple(frame["to"])
                if self.disk.status(segments) is None:
                    self._move_back(destination, segments, frame["was"])
                self._set_times(frame, segments, destination)
            case "status":
                self._set_back(segments, frame["mode"], frame["at"])
            case "tree":
                self._go_back(frame["ref"])

    def _move_back(self, there: Segments, segments: Segments, was: int | None) -> None:
        status = self.disk.status(there)
        if status is None or status.st_ino != was:
            # It was never moved, or somebody took it away from there: we have nothing to put back.
            logger.warning("%s cannot be moved back from %s: it is not there", segments, there)
            return
        self._make_way(segments)
        self.disk.rename(there, segments)

    def _make_way(self, segments: Segments) -> None:
        """Make the directories that somebody else took away, so that what was in them has a place."""
        for depth in range(1, len(segments)):
            if self.disk.status(segments[:depth]) is None:
                self.disk.make_directory(segments[:depth], mode=0o755)

    def _put_back(self, segments: Segments, name: bytes, was: list[int]) -> None:
        try:
            kept = os.stat(name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            # It was never taken: what was about to happen did not.
            return
        self._make_way(segments)
        there = self.disk.status(segments)
        if there is not None and (os.path.samestat(there, kept) or _identity(there) == was):
            # It was kept, by a copy where that had to be, and then not replaced.
            remove_entry(self._directory, name)
            return
        if there is not None and (stat.S_ISDIR(there.st_mode) or stat.S_ISDIR(kept.st_mode)):
            self.disk.remove(segments)
        try:
            with Parent(self.disk, segments) as (directory, own):
                rename(self._directory, name, directory, own)
            return
        except OSError as error:
            if error.errno not in COPIED:
                raise
        node = HostDirectory(str(self._path)).subtree((name.decode(),))
        if type(node) is FileTree:
            self.disk.put(segments, node)
        elif node is not None:
            try:
                self.disk.put_leaf(segments, node)
            except OSError as error:
                if error.errno not in (ENOSPC, EDQUOT):
                    raise
                # What is there takes the room, and the journal has what is to be there.
                self.disk.remove(segments)
                self.disk.put_leaf(segments, node)

    def _set_back(self, segments: Segments, mode: int, at: int) -> None:
        status = self.disk.status(segments)
        # What was never set may be nothing that we could set.
        if status is not None and (stat.S_IMODE(status.st_mode), status.st_mtime_ns) != (mode, at):
            self.disk.set_status(segments, mode=mode, modified_at=at)

    def _set_times(self, frame: Frame, *paths: Segments) -> None:
        for segments, at in zip(paths, frame["parents"], strict=False):
            with suppress(FileNotFoundError, NotADirectoryError):
                self.disk.stamp(segments[:-1], at)

    @property
    def path(self) -> str | None:
        """The directory of the journal; `None` before its first step."""
        return self._path

    @classmethod
    def taken_over(cls, disk: HostDirectory, path: str, go_back: Callable[[str], None]) -> Journal | None:
        """Take over the journal of a process that is gone; `None` if it was not begun, or had ended.

        Raises `BlockingIOError` if its process is alive, `FileNotFoundError` if the journal is gone.
        """
        journal = cls(disk, path, go_back)
        directory = os.open(path, DIRECTORY)
        log = -1
        try:
            log = os.open(LOG, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(directory)
            if log >= 0:
                os.close(log)
            if error.errno != ENOENT:
                raise
            # One that begins right now is seen by its age.
            if not _is_new(path):
                _clear(path)
            return None
        journal._path, journal._directory, journal._log = path, directory, log
        with open(os.dup(log), "rb") as stream:
            for line, frame in read_frames(stream):
                journal._frames.append((journal._end, frame))
                journal._end += len(line)
        return journal


def read_frames(lines: Iterable[bytes]) -> Iterator[tuple[bytes, Frame]]:
    """Read the steps of a log. A last line without its end was cut off: what it is about did not happen."""
    for line in lines:
        if not line.endswith(b"\n"):
            return
        yield line, orjson.loads(line)


class Nested:
    """A part of a journal: undone by itself, or left in it when it ends well."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._mark = journal.mark

    def undo(self) -> None:
        """Take back what was done since this part began."""
        self.journal.undo(self._mark)

    def close(self) -> None:
        """Leave what was done to the journal that this is a part of."""

    def begin(self) -> Nested:
        """Start a part of this part."""
        return Nested(self.journal)


def _identity(status: os.stat_result) -> list[int]:
    """Give what no two files have in common, of which one came after the other."""
    return [status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size]


def _is_new(path: str) -> bool:
    return time.time() - os.stat(path).st_mtime < 10


def _clear(path: str) -> None:
    folder, name = os.path.split(path)
    with _opened(folder) as directory, suppress(FileNotFoundError):
        remove_entry(directory, os.fsencode(name))


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
