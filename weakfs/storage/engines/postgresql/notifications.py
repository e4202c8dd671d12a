"""Notifications of appends: a connection that listens for them, and the readers that wait for those of their stream.

A lost notification does no harm, because readers also check their streams from time to time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable

import psycopg

from weakfs.storage.errors import StorageError

# How long a listener that lost its connection pauses, in seconds.
PAUSE = 1.0
# After this many seconds the stream is checked anyway, in case a notification was lost with its connection.
LONGEST_WAIT = 5.0


class Notifications(ABC):
    """The notifications that a process has received, by the name of the stream."""

    def __init__(self) -> None:
        # The number of notifications received for each stream.
        self.seen = Counter[str]()

    @abstractmethod
    async def listen(self) -> None:
        """Start to receive notifications, unless that was done before."""

    @abstractmethod
    async def wait(self, stream: str, seen: int, timeout: float) -> None:
        """Wait until the number of notifications for a stream is no longer `seen`, or for `LONGEST_WAIT`."""

    @abstractmethod
    async def close(self) -> None:
        """Stop listening."""


class SyncNotifications(Notifications):
    """Notifications that a thread receives. Waiting blocks."""

    def __init__(self, connect: Callable[[], psycopg.Connection]) -> None:
        super().__init__()
        self._connect = connect
        self._woken = threading.Condition()
        self._listener: threading.Thread | None = None
        self._connection: psycopg.Connection | None = None
        self._is_closed = False

    async def listen(self) -> None:
        with self._woken:
            if self._listener is None:
                self._connection = self._connect()
                self._listener = threading.Thread(target=self._receive, name="weakfs-listen", daemon=True)
                self._listener.start()

    def _receive(self) -> None:
        while not self._is_closed:
            try:
                connection = self._connection or self._connect()
                self._connection = connection
                for notification in connection.notifies():
                    with self._woken:
                        self.seen[notification.payload] += 1
                        self._woken.notify_all()
            except (psycopg.Error, StorageError):
                self._connection = None
                if not self._is_closed:
                    time.sleep(PAUSE)

    async def wait(self, stream: str, seen: int, timeout: float) -> None:
        with self._woken:
            self._woken.wait_for(lambda: self.seen[stream] != seen, min(timeout, LONGEST_WAIT))

    async def close(self) -> None:
        self._is_closed = True
        if self._connection is not None:
            self._connection.close()


class AsyncNotifications(Notifications):
    """Notifications that a task of the event loop receives."""

    def __init__(self, connect: Callable[[], Awaitable[psycopg.AsyncConnection]]) -> None:
        super().__init__()
        self._connect = connect
        self._woken: dict[str, asyncio.Event] = {}
        self._listener: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        if self._listener is None:
            listening = asyncio.Event()
            self._listener = asyncio.create_task(self._receive(listening))
            waiting = asyncio.ensure_future(listening.wait())
            try:
                await asyncio.wait([self._listener, waiting], return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()

    async def _receive(self, listening: asyncio.Event) -> None:
        while True:
            try:
                connection = await self._connect()
                try:
                    listening.set()
                    async for notification in connection.notifies():
                        self.seen[notification.payload] += 1
                        if woken := self._woken.pop(notification.payload, None):
                            woken.set()
                finally:
                    await connection.close()
            except psycopg.Error:
                listening.set()
                await asyncio.sleep(PAUSE)

    async def wait(self, stream: str, seen: int, timeout: float) -> None:
        if self.seen[stream] == seen:
            woken = self._woken.setdefault(stream, asyncio.Event())
            try:
                await asyncio.wait_for(woken.wait(), min(timeout, LONGEST_WAIT))
            except TimeoutError:
                return

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])
