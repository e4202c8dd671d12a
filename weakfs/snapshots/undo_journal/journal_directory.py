"""The directories of journals: opening one for a unit of work, and what becomes of it when the work has ended."""

from __future__ import annotations

import logging
import os
import secrets
import stat
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT

from weakfs.class_decorators import frozen
from weakfs.platforms import fcntl
from weakfs.snapshots.directory.entries import DIRECTORY
from weakfs.snapshots.directory.entries import remove as remove_entry
from weakfs.snapshots.undo_journal.log import LOG

logger = logging.getLogger("weakfs.snapshots")

# The prefix of the names of directories that hold deleted entries which cannot be removed.
UNREMOVABLE = "unremovable-"
# The prefix of the names of journals that were copied here, or whose directory was replaced. Nothing undoes them.
ELSEWHERE = "elsewhere-"


@frozen
class JournalFiles:
    """An open journal, whose log is empty and locked: its path, the descriptors of its directory and log, the inode."""

    path: str
    directory: int
    log: int
    inode: int


class Journals:
    """The journals of one directory on a disk; `start` is their path prefix, in a folder that is created for them.

    A journal that its work left empty is used again, because creating and removing a directory with a log took 80 of
    the 180 µs of the system calls of a write. Like a journal that a killed process left, it is not locked, so others
    may remove it at any time. It is removed when this object is collected, or by `remove_empty`.
    """

    def __init__(self, start: str) -> None:
        self.start = start
        self._in_use: set[str] = set()
        # The paths of empty journals, and the process that uses them.
        self._empty: list[tuple[int, str]] = []
        weakref.finalize(self, _remove_all, self._empty)

    def own(self) -> set[str]:
        """Return the paths of the journals that are in use, or kept for later work."""
        return self._in_use.union([path for owner, path in self._empty if owner == os.getpid()])

    def open(self) -> JournalFiles:
        """Open an empty journal for a unit of work."""
        while True:
            files = self._again() or _created(f"{self.start}-{secrets.token_hex(8)}")
            if files is not None:
                self._in_use.add(files.path)
                return files

    def released(self, path: str) -> None:
        """Forget a journal that is no longer in use."""
        self._in_use.discard(path)

    def _again(self) -> JournalFiles | None:
        with suppress(IndexError, OSError):
            # A child process has the list of its parent.
            owner, path = self._empty.pop()
            if owner == os.getpid():
                return _locked(path)
        return None

    def keep(self, path: str) -> bool:
        """Keep an empty journal for later work, unless there is one already."""
        if self._empty:
            return False
        self._empty.append((os.getpid(), path))
        return True

    def remove_empty(self) -> None:
        """Remove the journals that are kept for later work."""
        _remove_all(self._empty)


def _remove_all(empty: list[tuple[int, str]]) -> None:
    while empty:
        owner, path = empty.pop()
        with suppress(OSError):
            files = _locked(path) if owner == os.getpid() else None
            if files is not None:
                try:
                    os.unlink(LOG, dir_fd=files.directory)
                    os.rmdir(path)
                finally:
                    os.close(files.log)
                    os.close(files.directory)


def _created(path: str) -> JournalFiles | None:
    try:
        os.mkdir(path, 0o700)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.mkdir(path, 0o700)
    try:
        return _locked(path, is_new=True)
    except BaseException:
        remove_journal(path)
        raise


def _locked(path: str, *, is_new: bool = False) -> JournalFiles | None:
    """Open a journal and lock its log; return `None` if it is not empty, or was removed in the meantime.

    A process that recovers journals may find the log before it is locked, and remove it as a leftover.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    directory, log = os.open(path, DIRECTORY), -1
    files: JournalFiles | None = None
    try:
        log = os.open(LOG, flags | (os.O_CREAT | os.O_EXCL if is_new else 0), 0o600, dir_fd=directory)
        # A process that has locked an empty journal is about to remove it.
        fcntl.flock(log, fcntl.LOCK_EX if is_new else fcntl.LOCK_EX | fcntl.LOCK_NB)
        status = os.fstat(log)
        if status.st_nlink and not status.st_size and stat.S_ISREG(status.st_mode):
            if not is_new:
                # Recovery undoes the newest journal first.
                os.utime(directory)
            files = JournalFiles(path, directory, log, status.st_ino)
    finally:
        if files is None:
            os.close(directory)
            if log >= 0:
                os.close(log)
    return files


def is_new(path: str) -> bool:
    """Return whether the directory of a journal may still get a log."""
    return time.time() - os.stat(path).st_mtime < 10


def remove_journal(path: str) -> None:
    """Remove the directory of a journal, or rename it if something in it cannot be removed.

    Such an entry may belong to another user, or be a mount point.
    """
    folder, name = os.path.split(path)
    with _opened(folder) as directory, suppress(FileNotFoundError):
        try:
            remove_entry(directory, os.fsencode(name))
        except OSError as error:
            if error.errno == ENOENT:
                raise
            # Under another name, it is not taken for a journal again.
            os.rename(name, UNREMOVABLE + name, src_dir_fd=directory, dst_dir_fd=directory)
            logger.warning(
                "cannot remove %r, which holds deleted entries: %s; remove it by hand",
                os.path.join(folder, UNREMOVABLE + name),
                error.strerror,
            )


def set_aside(path: str, root: str) -> None:
    """Rename the directory of a journal that belongs elsewhere, so that nothing in `root` is undone with it."""
    aside = os.path.join(os.path.dirname(path), ELSEWHERE + secrets.token_hex(8))
    os.rename(path, aside)
    logger.warning(
        "unfinished work in the store is not undone in %r: it was copied from another store, or was done in an earlier "
        "directory of that name; remove %r",
        root,
        aside,
    )


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
