"""Scratch directories: private temporary directories that the next process removes if their owner was killed.

A scratch directory is in the directory for temporary files; its name is `weakfs-scratch-` and 16 hex digits. Its owner
holds a lock (`flock`) on the directory while the owner is alive, so an unlocked directory was left behind. The files
are in a directory inside it, which its users may lock themselves. `weakfs.processes.sandbox` hides all other temporary
files from a command.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from weakfs.platforms import Opened, fcntl, lock_unless_replaced, require_linux
from weakfs.snapshots.directory.entries import DIRECTORY, remove

NAME = re.compile(r"weakfs-scratch-[0-9a-f]{16}")

# The maximum time, in seconds, for removing leftovers when a scratch directory is created.
REMOVAL = 2.0


class Scratch:
    """One scratch directory. `files` is the path of the directory to work in, initially empty."""

    def __init__(self) -> None:
        require_linux("make a scratch directory", "leave out the tools that run commands, and use a VfsSection")
        folder = os.path.realpath(tempfile.gettempdir())
        remove_leftovers(folder)
        self._lock, self._path = _make(folder)
        self.files = os.path.join(self._path, "files")
        os.mkdir(self.files, 0o700)

    def close(self) -> None:
        """Remove the directory with everything in it; further calls do nothing."""
        if self._lock < 0:
            return
        folder, name = os.path.split(self._path)
        try:
            with Opened(os.open(folder, DIRECTORY)) as parent, suppress(FileNotFoundError):
                remove(parent, os.fsencode(name))
        finally:
            os.close(self._lock)
            self._lock = -1


@contextmanager
def scratch() -> Iterator[str]:
    """Create a scratch directory for a block, and yield the path to work in."""
    made = Scratch()
    try:
        yield made.files
    finally:
        made.close()


def remove_leftovers(folder: str, *, seconds: float = REMOVAL, clock: Callable[[], float] = monotonic) -> None:
    """Remove the scratch directories of processes that were killed.

    Removes only directories that have the name of a scratch directory, belong to this user and are not locked; follows
    no links. Stops after `seconds`; the next call continues. Directories that cannot be removed stay.
    """
    until = clock() + seconds

    def check() -> None:
        if clock() > until:
            raise _TimeIsUp

    with suppress(_TimeIsUp, OSError), Opened(os.open(folder, DIRECTORY)) as parent:
        with os.scandir(parent) as listing:
            found = [entry.name for entry in listing if NAME.fullmatch(entry.name)]
        for name in found:
            check()
            _remove_if_left(parent, name, check)


class _TimeIsUp(Exception):
    """Raised when the time for removing leftovers is up."""


def _remove_if_left(parent: int, name: str, check: Callable[[], object]) -> None:
    with suppress(OSError), Opened(os.open(name, DIRECTORY, dir_fd=parent)) as directory:
        status = os.fstat(directory)
        if status.st_uid != os.geteuid():
            return
        # Raises if the owner is alive.
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(status, os.stat(name, dir_fd=parent, follow_symlinks=False)):
            remove(parent, os.fsencode(name), check)


def _make(folder: str) -> tuple[int, str]:
    """Create a directory and lock it; return `(descriptor, path)`."""
    while True:
        path = os.path.join(folder, f"weakfs-scratch-{secrets.token_hex(8)}")
        os.mkdir(path, 0o700)
        with suppress(FileNotFoundError):
            descriptor = os.open(path, DIRECTORY)
            # Another process may have removed the directory as a leftover before it was locked.
            if lock_unless_replaced(descriptor, path):
                return descriptor, path
