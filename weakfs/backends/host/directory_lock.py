"""One lock over a host directory, for the threads of this process and for every other process."""

from __future__ import annotations

import time
from errno import EBUSY
from threading import RLock

from weakfs.filesystem.errors import fault
from weakfs.platforms import fcntl
from weakfs.session.interruption import check_interrupted
from weakfs.snapshots.directory.directory import HostDirectory

# How long somebody else's step is waited for, in seconds: a scan of a large directory at most.
PATIENCE = 60.0
PAUSE = 0.002


class RootLock:
    """Held while one looks and changes as one step; may be entered again by its holder.

    The lock of the system lies on the root's own descriptor, whatever store anybody uses. `OSError` (EBUSY) if
    somebody holds it for a minute: nobody waits for ever.
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
                        f"cannot use {self._directory.root!r}: another process has been at work in it for a minute; "
                        f"try again when it has ended",
                    ) from None
            check_interrupted()
            time.sleep(PAUSE)
            patience -= PAUSE
