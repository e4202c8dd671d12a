"""The synchronous side of an event store whose client is asynchronous.

A session that was opened on an event loop awaits its commits there. Synchronous methods, other threads, and reads of
contents on demand use a second client, which is opened when it is first used: waiting for the loop would cause a
deadlock if the loop waits for the session's lock. An engine that was passed as an object has no second client: it
can be used from other threads, and on the loop only by code that need not wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, TypeVar

from weakfs.session.transactions.commit_steps import supplied_contents
from weakfs.storage.adapters import run_in_place
from weakfs.storage.errors import StorageError
from weakfs.storage.event_store import Checkpoint, EventStore, Frame, Lease

T = TypeVar("T")


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

    def head(self, stream: str) -> int:
        return self._client.head(stream)

    def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        return self._client.append(stream, expected, frames, contents=contents, fencing=fencing)

    def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> Iterator[Frame]:
        return self._client.read(stream, after=after, limit=limit)

    def wait(self, stream: str, after: int, timeout: float) -> int:
        return self._client.wait(stream, after, timeout)

    def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        self._client.put_contents(stream, contents)

    def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        wanted = list(digests)
        given = supplied_contents(stream, wanted)
        return self._client.get_contents(stream, wanted) if given is None else given

    def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        wanted = list(digests)
        given = supplied_contents(stream, wanted)
        return self._client.has_contents(stream, wanted) if given is None else {*given}

    def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        self._client.put_checkpoint(stream, checkpoint)

    def get_checkpoint(self, stream: str) -> Checkpoint | None:
        return self._client.get_checkpoint(stream)

    def trim(self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None) -> None:
        self._client.trim(stream, before, contents=contents, expected=expected)

    def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return self._client.streams(prefix, after=after, limit=limit)

    def delete(self, stream: str) -> bool:
        return self._client.delete(stream)

    def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        return self._client.lease(stream, owner, seconds)

    def release(self, lease: Lease) -> None:
        self._client.release(lease)

    def flush(self) -> None:
        self._client.flush()

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
