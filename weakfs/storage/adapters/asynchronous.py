"""Synchronous engines with `async` methods: `ThreadedStorage` and `ThreadedEventStore` call an engine in threads.

A call that is cancelled before a thread starts it never happens. A call that has started is waited for, so that nothing
takes effect after the task has been cancelled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import ParamSpec, Protocol, TypeVar

from weakfs.shield import ended, shielded
from weakfs.storage.event_store import Checkpoint, EventStore, Frame, Lease
from weakfs.storage.storage import Storage, Versioned

P = ParamSpec("P")
T = TypeVar("T")

# How many values a thread reads before it passes them to the event loop.
PAGE = 100
# How long a thread waits for a frame before it checks for cancellation, in seconds: a cancelled `wait` may take this
# long to end.
WAIT_SLICE = 0.25


class Call(Protocol):
    """Calls a function, and returns its result."""

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T: ...


async def call_in_place(function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
    """Call a function in the calling thread."""
    return function(*args, **options)


class Threads:
    """A pool of threads in which functions are called from coroutines."""

    def __init__(self, count: int) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(count, thread_name_prefix="weakfs-storage")
        self._is_closed = False

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        # Imported only when needed: importing it takes longer than importing this whole package.
        import asyncio

        future = self._pool.submit(function, *args, **options)
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not future.cancel():
                await ended(waiting)
                if not waiting.cancelled():
                    # Mark its failure as retrieved: nobody is waiting for the result any more.
                    waiting.exception()
            raise

    async def close(self, close: Callable[[], None]) -> None:
        """Call a last function in a thread, and close the pool; closing again does nothing."""
        if not self._is_closed:
            self._is_closed = True
            # Imported only when needed, as above.
            import asyncio

            try:
                # Never withdrawn, since closing again does nothing.
                await shielded(asyncio.wrap_future(self._pool.submit(close)))
            finally:
                self.end()

    def end(self) -> None:
        """Let the threads end once they are idle."""
        self._pool.shutdown(wait=False)


class InPlaceStorage:
    """An `AsyncStorage` over a `Storage`, whose methods block: for coroutines that are run in place."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._call: Call = call_in_place

    @property
    def url(self) -> str:
        return self._storage.url

    @property
    def atomic_batches(self) -> bool:
        return self._storage.atomic_batches

    async def get(self, key: str) -> bytes | None:
        return await self._call(self._storage.get, key)

    async def get_versioned(self, key: str) -> Versioned | None:
        return await self._call(self._storage.get_versioned, key)

    async def set(self, key: str, value: bytes) -> None:
        await self._call(self._storage.set, key, value)

    async def create(self, key: str, value: bytes) -> str | None:
        return await self._call(self._storage.create, key, value)

    async def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        return await self._call(self._storage.replace, key, value, version=version)

    async def delete(self, key: str) -> bool:
        return await self._call(self._storage.delete, key)

    async def exists(self, key: str) -> bool:
        return await self._call(self._storage.exists, key)

    async def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return await self._call(self._storage.keys, prefix, after=after, limit=limit)

    async def children(self, directory: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return await self._call(self._storage.children, directory, after=after, limit=limit)

    async def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        return await self._call(self._storage.get_many, list(keys))

    async def set_many(self, values: Mapping[str, bytes]) -> None:
        await self._call(self._storage.set_many, values)

    async def items(self, prefix: str = "") -> AsyncIterator[tuple[str, bytes]]:
        values = self._storage.items(prefix)
        while page := await self._call(_take, values, PAGE):
            for item in page:
                yield item

    async def clear(self, prefix: str = "") -> int:
        return await self._call(self._storage.clear, prefix)

    async def close(self) -> None:
        await self._call(self._storage.close)


class ThreadedStorage(InPlaceStorage):
    """An `AsyncStorage` over a `Storage` that is called in threads."""

    def __init__(self, storage: Storage, *, threads: int = 4) -> None:
        super().__init__(storage)
        self._threads = Threads(threads)
        self._call = self._threads

    async def close(self) -> None:
        await self._threads.close(self._storage.close)


class ThreadedEventStore:
    """An `AsyncEventStore` over an `EventStore` that is called in threads."""

    def __init__(self, streams: EventStore, *, threads: int = 4) -> None:
        self._streams = streams
        self._call = Threads(threads)

    @property
    def url(self) -> str:
        return self._streams.url

    async def head(self, stream: str) -> int:
        return await self._call(self._streams.head, stream)

    async def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        return await self._call(self._streams.append, stream, expected, frames, contents=contents, fencing=fencing)

    async def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> AsyncIterator[Frame]:
        frames = self._streams.read(stream, after=after, limit=limit)
        while page := await self._call(_take, frames, PAGE):
            for frame in page:
                yield frame

    async def wait(self, stream: str, after: int, timeout: float) -> int:
        while True:
            slice_ = min(timeout, WAIT_SLICE)
            number = await self._call(self._streams.wait, stream, after, slice_)
            timeout -= slice_
            if number > after or timeout <= 0:
                return number

    async def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        await self._call(self._streams.put_contents, stream, contents)

    async def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        return await self._call(self._streams.get_contents, stream, list(digests))

    async def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        return await self._call(self._streams.has_contents, stream, list(digests))

    async def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        await self._call(self._streams.put_checkpoint, stream, checkpoint)

    async def get_checkpoint(self, stream: str) -> Checkpoint | None:
        return await self._call(self._streams.get_checkpoint, stream)

    async def trim(
        self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None
    ) -> None:
        await self._call(self._streams.trim, stream, before, contents=list(contents), expected=expected)

    async def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return await self._call(self._streams.streams, prefix, after=after, limit=limit)

    async def delete(self, stream: str) -> bool:
        return await self._call(self._streams.delete, stream)

    async def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        return await self._call(self._streams.lease, stream, owner, seconds)

    async def release(self, lease: Lease) -> None:
        await self._call(self._streams.release, lease)

    async def flush(self) -> None:
        await self._call(self._streams.flush)

    async def close(self) -> None:
        await self._call.close(self._streams.close)

    def end_threads(self) -> None:
        """Stop the threads, but leave the `EventStore` open."""
        self._call.end()


def _take(values: Iterator[T], most: int) -> list[T]:
    return list(islice(values, most))
