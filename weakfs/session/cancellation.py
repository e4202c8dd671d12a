"""Ending a piece of work from outside: from another thread or task, while its own code may hang."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock
from typing import final

from weakfs.session.errors import TransactionCancelled


@final
class Cancellation:
    """A way to cancel one transaction, given to it as `session.transaction(cancellation=...)`.

    `cancel` rolls back at once what was done, without waiting for the code inside, whose further changes raise
    `TransactionCancelled`, and its reading of what the session holds as well. Only what cannot be left running is
    waited for, such as a process: `stopping`.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._reason: str | None = None
        self._abandon: Callable[[str], bool] | None = None
        self._stops: list[tuple[Callable[[], object], Event]] = []

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._reason is not None

    def check(self) -> None:
        """Raise `TransactionCancelled` if the work was cancelled; for code that does long things of its own."""
        if self._reason is not None:
            raise TransactionCancelled(f"cannot go on in a transaction of the session: {self._reason}")

    def cancel(self, reason: str = "it was cancelled") -> bool:
        """End the work and undo it; false if its code has ended it meanwhile, well or not.

        Raise `RollbackIncomplete` if undoing fails.
        """
        with self._lock:
            self._reason = reason
            stops, abandon = list(self._stops), self._abandon
            # In here, so that none is called after its block was left.
            for stop, _ in stops:
                stop()
        for _, stopped in stops:
            stopped.wait()
        return True if abandon is None else abandon(reason)

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """Have `stop` called by a cancellation that comes while this block runs, which then waits for its end."""
        stopped = Event()
        entry = (stop, stopped)
        with self._lock:
            self.check()
            self._stops.append(entry)
        try:
            yield
        finally:
            with self._lock, suppress(ValueError):
                self._stops.remove(entry)
            stopped.set()

    def govern(self, abandon: Callable[[str], bool]) -> None:
        """Take charge of a transaction that begins; raises if it is cancelled already. Sessions call this."""
        with self._lock:
            self.check()
            self._abandon = abandon
