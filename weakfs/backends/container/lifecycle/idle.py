"""Stopping idle containers: one thread for all of them, which ends when none is running any more."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Condition, Thread
from time import monotonic
from typing import Protocol
from weakref import WeakSet

logger = logging.getLogger("weakfs.backends")

# If a container is busy when it is due, it is checked again after this fraction of its idle time.
AGAIN = 0.25


class Stoppable(Protocol):
    """Something that runs, and is stopped when nothing has used it for a while."""

    def idle_at(self) -> float | None:
        """Return when to stop this object, by the clock `monotonic`; `None` for never, or if it is not running."""
        ...

    def stop_if_idle(self) -> None:
        """Stop this object unless it is in use, or was used again."""
        ...


class User(Protocol):
    """A user of something stoppable."""

    def run_unless_used(self, step: Callable[[], object]) -> None:
        """Run a step while nothing else can use it; do nothing if something is using it."""
        ...


class Idleness:
    """Stops each watched container when it is due. Watching does not keep an object alive."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._watched: WeakSet[Stoppable] = WeakSet()
        self._thread: Thread | None = None

    def watch(self, one: Stoppable) -> None:
        """Watch something that was started, until it is no longer running."""
        with self._changed:
            self._watched.add(one)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="weakfs idle containers", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while (one := self._next()) is not None:
            try:
                one.stop_if_idle()
            except Exception:
                logger.exception("cannot stop %r, which is idle", one)
                with self._changed:
                    self._watched.discard(one)
            del one

    def _next(self) -> Stoppable | None:
        """Wait until something is due and return it; `None` if nothing is left."""
        with self._changed:
            while True:
                due = [(at, id(one), one) for one in self._watched if (at := one.idle_at()) is not None]
                if not due:
                    self._thread = None
                    return None
                at, _, one = min(due)
                left = at - monotonic()
                if left <= 0:
                    return one
                del due, one
                self._changed.wait(left)


IDLENESS = Idleness()
