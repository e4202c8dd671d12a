"""Workplaces of replacements: directories in which the copy of a history is written, and the old one is left.

They are below a directory in the folder, or next to the SQLite file. Each is locked by its process, so one that is not
locked was left by a process that was killed: opening a session there removes it, with all that was forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from weakfs.platforms import HAS_FILE_LOCKS, O_DIRECTORY, O_NOFOLLOW, fcntl
from weakfs.session.logger import logger
from weakfs.storage.locations import local_path

NAME = ".forgetting"


@contextmanager
def workplace(path: str) -> Iterator[str]:
    """Yield a new, locked directory for a folder or a SQLite file, and remove it with everything in it at the end."""
    import shutil
    import tempfile

    parent = _parent(path)
    while True:
        os.makedirs(parent, exist_ok=True)
        with suppress(FileNotFoundError):
            work = tempfile.mkdtemp(dir=parent)
            lock = _open_locked(work, is_waiting=True)
            if os.path.isdir(work):
                break
            # Another process found it before it was locked, and removed it.
            _close(lock)
    try:
        yield work
    finally:
        shutil.rmtree(work)
        _close(lock)
        _remove_empty(parent)


def remove_left(path: str) -> None:
    """Remove what killed replacements left in a folder or next to a SQLite file."""
    import shutil

    parent = _parent(path)
    with suppress(FileNotFoundError):
        for name in os.listdir(parent) if HAS_FILE_LOCKS else ():
            work = os.path.join(parent, name)
            with suppress(FileNotFoundError, BlockingIOError):
                lock = _open_locked(work, is_waiting=False)
                try:
                    shutil.rmtree(work)
                finally:
                    _close(lock)
        _remove_empty(parent)


def remove_left_at(url: str) -> None:
    """Remove what killed replacements left at a URL, if its storage is local; log why if that is impossible."""
    path = local_path(url)
    if path is None or not os.path.lexists(_parent(path)):
        return
    try:
        remove_left(path)
    except OSError as error:
        logger().warning(
            "cannot remove %r, which holds what was to be forgotten: %s; remove it", _parent(path), error.strerror
        )


def _parent(path: str) -> str:
    return os.path.join(path if os.path.isdir(path) else os.path.dirname(path), NAME)


def _open_locked(work: str, *, is_waiting: bool) -> int | None:
    if not HAS_FILE_LOCKS:
        return None
    lock = os.open(work, os.O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if is_waiting else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _close(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _remove_empty(parent: str) -> None:
    # Other replacements may be using it.
    with suppress(OSError):
        os.rmdir(parent)
