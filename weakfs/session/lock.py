"""The lock of a session: re-entrant, with one thing to do when it is let go for good."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock


class SessionLock:
    """A context manager; calls `on_release` each time its holder lets go of it wholly.

    Handlers are told then: one that waits for another thread must not keep that thread from the session, and
    whoever dispatches may hold the lock further out.
    """

    __slots__ = ("_acquire", "_depth", "_release", "on_release")

    def __init__(self, on_release: Callable[[], object] | None) -> None:
        lock = RLock()
        self._acquire, self._release = lock.acquire, lock.release
        self._depth = 0
        self.on_release = on_release

    def __enter__(self) -> None:
        self._acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth = depth = self._depth - 1
        self._release()
        if not depth and self.on_release is not None:
            self.on_release()
