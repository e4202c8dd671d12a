"""Scratch directories: private temporary directories that the next process removes if their owner was killed.

A scratch directory lies in the directory for temporary files and is called `weakfs-scratch-` and 16 hex digits. Its
owner holds a lock (`flock`) on it for as long as it lives, so one without a lock was left behind. The files are in a
directory below it, which its users may lock as they like; see also `weakfs.processes.sandbox`, which shows a command
nothing beside it.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from weakfs.platforms import fcntl, require_linux
from weakfs.snapshots.directory.entries import DIRECTORY, remove

NAME = re.compile(r"weakfs-scratch-[0-9a-f]{16}")

# How long the making of one scratch directory may take longer because of leftovers, in seconds.
REMOVAL = 2.0


class Scratch:
    """One scratch directory. `files` is the path of the directory to work in, empty at first."""

    def __init__(self, folder: str | None = None) -> None:
        require_linux("make a scratch directory", "leave out the tools that run commands, and use a VfsSection")
        folder = os.path.realpath(tempfile.gettempdir() if folder is None else folder)
        remove_leftovers(folder)
        self._lock, self._path = _make(folder)
        self.files = os.path.join(self._path, "files")
        os.mkdir(self.files, 0o700)

    def close(self) -> None:
        """Remove the directory with all that is in it; nothing happens the second time."""
        if self._lock < 0:
            return
        folder, name = os.path.split(self._path)
        try:
            with _opened(folder) as parent, suppress(FileNotFoundError):
                remove(parent, os.fsencode(name))
        finally:
            os.close(self._lock)
            self._lock = -1


@contextmanager
def scratch() -> Iterator[str]:
    """Make a scratch directory for a block, and give the path to work in."""
    made = Scratch()
    try:
        yield made.files
    finally:
        made.close()


def remove_leftovers(folder: str, *, seconds: float = REMOVAL, clock: Callable[[], float] = monotonic) -> None:
    """Remove the scratch directories of processes that were killed.

    Removes only what has the name of a scratch directory, belongs to this user and is locked by nobody, and follows
    no links. Stops after so many seconds; the next call goes on. What cannot be removed stays.
    """
    until = clock() + seconds

    def check() -> None:
        if clock() > until:
            raise _TimeIsUp

    with suppress(_TimeIsUp, OSError), _opened(folder) as parent:
        with os.scandir(parent) as listing:
            found = [entry.name for entry in listing if NAME.fullmatch(entry.name)]
        for name in found:
            check()
            _remove_if_left(parent, name, check)


class _TimeIsUp(Exception):
    """The time for removing leftovers is over."""


def _remove_if_left(parent: int, name: str, check: Callable[[], object]) -> None:
    with suppress(OSError), _opened(name, parent) as directory:
        status = os.fstat(directory)
        if status.st_uid != os.geteuid():
            return
        # Raises if the owner lives.
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(status, os.stat(name, dir_fd=parent, follow_symlinks=False)):
            remove(parent, os.fsencode(name), check)


def _make(folder: str) -> tuple[int, str]:
    """Make a directory and lock it: `(descriptor, path)`."""
    while True:
        path = os.path.join(folder, f"weakfs-scratch-{secrets.token_hex(8)}")
        os.mkdir(path, 0o700)
        with suppress(FileNotFoundError):
            descriptor = os.open(path, DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # Another process may have taken it for a leftover in the moment before the lock.
                if os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False)):
                    return descriptor, path
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)


@contextmanager
def _opened(path: str, parent: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, DIRECTORY, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
