"""A lock on a host directory, for the threads of this process and for other processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EBUSY
from threading import RLock

from weakfs.filesystem.errors import fault
from weakfs.platforms import fcntl
from weakfs.session.interruption import check_interrupted
from weakfs.snapshots.directory.directory import HostDirectory

# How long to wait for another process's step, in seconds; the longest step is a scan of a large directory.
PATIENCE = 60.0
PAUSE = 0.002


class RootLock:
    """Reentrant lock that makes a read and the change that follows one atomic step.

    The system's lock is on the root's own descriptor, so it works whatever store each process uses. Raises `OSError`
    (EBUSY) if another process holds it for a minute, so that no process waits forever.
    """

    def __init__(self, directory: HostDirectory) -> None:
        self._directory = directory
        self._threads = RLock()
        self._depth = 0

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            if not self._depth:
                self._lock()
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        try:
            if not self._depth:
                fcntl.flock(self._directory.descriptor, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    @contextmanager
    def attempt(self) -> Iterator[bool]:
        """Hold the lock if no other thread does; the value tells whether it is held."""
        if not self._threads.acquire(blocking=False):
            yield False
            return
        try:
            with self:
                yield True
        finally:
            self._threads.release()

    def _lock(self) -> None:
        patience = PATIENCE
        while True:
            try:
                fcntl.flock(self._directory.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if patience <= 0:
                    raise fault(
                        OSError,
                        EBUSY,
                        f"cannot use {self._directory.root!r}: another process has been using it for a minute; "
                        f"try again when it is done",
                    ) from None
            check_interrupted()
            time.sleep(PAUSE)
            patience -= PAUSE
