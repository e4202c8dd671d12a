"""Cancellation: stopping work from another thread or task, even while its own code hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import final

from weakfs.session.errors import TransactionCancelled
from weakfs.shield import ended


@final
class Cancellation:
    """A handle to cancel one transaction, passed to it as `session.transaction(cancellation=...)`.

    `cancel` rolls back immediately, without waiting for the code inside. Any further change by that code raises
    `TransactionCancelled`, and so does reading the session. `cancel` only waits for work that must not be left running,
    such as a process: see `stopping`.
    """

    __slots__ = ("_abandon", "_lock", "_reason", "_stops")

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
        """Raise `TransactionCancelled` if the work was cancelled; for long-running code."""
        if self._reason is not None:
            raise TransactionCancelled(f"cannot continue in a transaction of the session: {self._reason}")

    def cancel(self, reason: str = "it was cancelled") -> bool:
        """Cancel and undo the work. Return false if its code has already ended, successfully or not.

        Raises `RollbackIncomplete` if an external filesystem cannot be restored.
        """
        for stopped in self._request(reason):
            stopped.wait()
        abandon = self._abandon
        return True if abandon is None else abandon(reason)

    def request(self, reason: str = "it was cancelled") -> None:
        """Stop work that calls `check` or is in a `stopping` block, without undoing anything yet; do not wait."""
        self._request(reason)

    def _request(self, reason: str) -> list[Event]:
        """Return the events that are set when the `stopping` blocks have ended."""
        with self._lock:
            self._reason = reason
            # Under the lock, so that no function is called after its block was left.
            for stop, _ in self._stops:
                stop()
            return [stopped for _, stopped in self._stops]

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """Call `stop` if the work is cancelled while this block runs; `cancel` then waits for the block to end."""
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
        """Take control of a transaction that begins.

        Raises `TransactionCancelled` if the work was already cancelled. Sessions call this.
        """
        with self._lock:
            self.check()
            self._abandon = abandon


async def in_own_thread(work: Callable[[], object]) -> None:
    """Run a function to completion in its own thread, even if this task is cancelled meanwhile.

    Raises what the function raises, or else `CancelledError` if the task was cancelled.
    """
    import asyncio
    from concurrent.futures import Future

    ending = Future[None]()

    def run() -> None:
        try:
            work()
        except BaseException as error:
            ending.set_exception(error)
        else:
            ending.set_result(None)

    Thread(target=run, name="weakfs-cancel", daemon=True).start()
    done = asyncio.wrap_future(ending)
    cancelled = await ended(done)
    done.result()
    if cancelled is not None:
        raise cancelled
