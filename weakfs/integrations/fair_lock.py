"""Turns: a fair lock for threads and tasks, so that calls are made one at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from threading import Lock


class Turns:
    """A fair lock for threads and tasks. A waiting task occupies no thread.

    An agent may make several calls at once, but a command needs exclusive use of the files.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_taken = False
        self._waiting: deque[Future[None]] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn in this thread."""
        turn = self._asked()
        try:
            turn.result()
        except BaseException:
            self._withdraw(turn)
            raise
        try:
            yield
        finally:
            self._give_back()

    @asynccontextmanager
    async def aturn(self) -> AsyncIterator[None]:
        """Wait for a turn in this task."""
        turn = self._asked()
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            self._withdraw(turn)
            raise
        try:
            yield
        finally:
            self._give_back()

    def _asked(self) -> Future[None]:
        turn: Future[None] = Future()
        with self._lock:
            if self._is_taken:
                self._waiting.append(turn)
                return turn
            self._is_taken = True
        _grant(turn)
        return turn

    def _withdraw(self, turn: Future[None]) -> None:
        if not turn.cancel():
            # The turn was granted at the same moment.
            self._give_back()

    def _give_back(self) -> None:
        with self._lock:
            while self._waiting:
                if _grant(self._waiting.popleft()):
                    return
            self._is_taken = False


def _grant(turn: Future[None]) -> bool:
    """Grant a turn to a waiting thread or task; return false if it has stopped waiting."""
    if not turn.set_running_or_notify_cancel():
        return False
    turn.set_result(None)
    return True
