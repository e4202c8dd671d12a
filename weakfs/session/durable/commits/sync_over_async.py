"""The synchronous side of an event store whose client is asynchronous.

A session that was opened on an event loop awaits its commits there. Synchronous methods, other threads, and reads of
contents on demand use a second client, which is opened when it is first used: waiting for the loop would cause a
deadlock if the loop waits for the session's lock. An engine that was passed as an object has no second client: it
can be used from other threads, and on the loop only by code that need not wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

from weakfs.storage.adapters import run_in_place
from weakfs.storage.errors import StorageError
from weakfs.storage.event_store import EventStore
from weakfs.storage.steps import supplied_contents

P = ParamSpec("P")
T = TypeVar("T")


def _of_client(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[LoopStore, P], T]:
    """Return a method that calls the method of the same name of the client."""
    name = method.__name__

    @wraps(method)
    def call(self: LoopStore, /, *args: P.args, **options: P.kwargs) -> T:
        result: T = getattr(self._client, name)(*args, **options)
        return result

    return call


class LoopStore:
    """An `EventStore` over the one that `open_client` returns when it is first needed."""

    def __init__(self, url: str, open_client: Callable[[], EventStore]) -> None:
        self.url = url
        self._open = open_client
        self._opened: EventStore | None = None
        self._lock = Lock()

    @property
    def _client(self) -> EventStore:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    head = _of_client(EventStore.head)
    append = _of_client(EventStore.append)
    read = _of_client(EventStore.read)
    wait = _of_client(EventStore.wait)
    put_contents = _of_client(EventStore.put_contents)

    def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        wanted = list(digests)
        given = supplied_contents(stream, wanted)
        return self._client.get_contents(stream, wanted) if given is None else given

    def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        wanted = list(digests)
        given = supplied_contents(stream, wanted)
        return self._client.has_contents(stream, wanted) if given is None else {*given}

    put_checkpoint = _of_client(EventStore.put_checkpoint)
    get_checkpoint = _of_client(EventStore.get_checkpoint)
    trim = _of_client(EventStore.trim)
    streams = _of_client(EventStore.streams)
    delete = _of_client(EventStore.delete)
    lease = _of_client(EventStore.lease)
    release = _of_client(EventStore.release)
    flush = _of_client(EventStore.flush)

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()


class OnLoop:
    """Runs coroutines of clients that belong to an event loop; see `SyncEventStore`."""

    def __init__(self, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self._url, self._loop = url, loop
        # The lock for which the loop may wait, so that a thread that holds it cannot wait for the loop.
        self.lock: Any = None

    def __call__(self, call: Coroutine[object, None, T], /) -> T:
        is_elsewhere = asyncio._get_running_loop() is not self._loop and self._loop.is_running()
        if is_elsewhere and not (self.lock is not None and self.lock._is_owned()):
            return asyncio.run_coroutine_threadsafe(call, self._loop).result()
        # A loop that has stopped would never run it.
        try:
            return run_in_place(call)
        except RuntimeError as error:
            raise StorageError(
                f"cannot wait for {self._url!r} in a synchronous method: its client belongs to an event loop; use the "
                f"method that is awaited, such as acall or 'async with session.transaction()', or open the session by "
                f"its URL"
            ) from error
