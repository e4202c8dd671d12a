"""Synchronous engines with `async` methods: `ThreadedStorage` and `ThreadedEventStore` call an engine in threads.

A call that is cancelled before a thread starts it never happens. A call that has started is waited for, so that nothing
takes effect after the task has been cancelled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import wraps
from itertools import islice
from types import CoroutineType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from weakfs.shield import ended, shielded
from weakfs.storage.event_store import EventStore, Frame
from weakfs.storage.storage import Storage

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
                    # Mark the failure as retrieved: nobody is waiting for the result any more.
                    waiting.exception()
            raise

    async def close(self, close: Callable[[], None]) -> None:
        """Call a last function in a thread, and close the pool; closing again does nothing."""
        if not self._is_closed:
            self._is_closed = True
            # Imported only when needed, as above.
            import asyncio

            try:
                # This call is never withdrawn, since closing again does nothing.
                await shielded(asyncio.wrap_future(self._pool.submit(close)))
            finally:
                self.end()

    def end(self) -> None:
        """Let the threads end once they are idle."""
        self._pool.shutdown(wait=False)


def _awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], CoroutineType[Any, Any, T]]:
    """Return a method that calls the method of the same name of an engine, and is awaited."""
    name = method.__name__

    @wraps(method)
    async def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        result: T = await self._call(getattr(self._engine, name), *args, **options)
        return result

    return call  # type: ignore[return-value]  # mypy takes it for any Coroutine


class InPlaceStorage:
    """An `AsyncStorage` over a `Storage`, whose methods block: for coroutines that are run in place."""

    def __init__(self, storage: Storage) -> None:
        self._engine = storage
        self._call: Call = call_in_place

    @property
    def url(self) -> str:
        return self._engine.url

    @property
    def atomic_batches(self) -> bool:
        return self._engine.atomic_batches

    get = _awaited(Storage.get)
    get_versioned = _awaited(Storage.get_versioned)
    set = _awaited(Storage.set)
    create = _awaited(Storage.create)
    replace = _awaited(Storage.replace)
    delete = _awaited(Storage.delete)
    exists = _awaited(Storage.exists)
    keys = _awaited(Storage.keys)
    children = _awaited(Storage.children)

    async def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        return await self._call(self._engine.get_many, list(keys))

    set_many = _awaited(Storage.set_many)

    async def items(self, prefix: str = "") -> AsyncIterator[tuple[str, bytes]]:
        values = self._engine.items(prefix)
        while page := await self._call(_take, values, PAGE):
            for item in page:
                yield item

    clear = _awaited(Storage.clear)

    async def close(self) -> None:
        await self._call(self._engine.close)


class ThreadedStorage(InPlaceStorage):
    """An `AsyncStorage` over a `Storage` that is called in threads."""

    def __init__(self, storage: Storage, *, threads: int = 4) -> None:
        super().__init__(storage)
        self._threads = Threads(threads)
        self._call = self._threads

    async def close(self) -> None:
        await self._threads.close(self._engine.close)


class ThreadedEventStore:
    """An `AsyncEventStore` over an `EventStore` that is called in threads."""

    def __init__(self, streams: EventStore, *, threads: int = 4) -> None:
        self._engine = streams
        self._call = Threads(threads)

    @property
    def url(self) -> str:
        return self._engine.url

    head = _awaited(EventStore.head)
    append = _awaited(EventStore.append)

    async def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> AsyncIterator[Frame]:
        frames = self._engine.read(stream, after=after, limit=limit)
        while page := await self._call(_take, frames, PAGE):
            for frame in page:
                yield frame

    async def wait(self, stream: str, after: int, timeout: float) -> int:
        while True:
            slice_ = min(timeout, WAIT_SLICE)
            number = await self._call(self._engine.wait, stream, after, slice_)
            timeout -= slice_
            if number > after or timeout <= 0:
                return number

    put_contents = _awaited(EventStore.put_contents)

    async def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        return await self._call(self._engine.get_contents, stream, list(digests))

    async def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        return await self._call(self._engine.has_contents, stream, list(digests))

    put_checkpoint = _awaited(EventStore.put_checkpoint)
    get_checkpoint = _awaited(EventStore.get_checkpoint)

    async def trim(
        self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None
    ) -> None:
        await self._call(self._engine.trim, stream, before, contents=list(contents), expected=expected)

    streams = _awaited(EventStore.streams)
    delete = _awaited(EventStore.delete)
    lease = _awaited(EventStore.lease)
    release = _awaited(EventStore.release)
    flush = _awaited(EventStore.flush)

    async def close(self) -> None:
        await self._call.close(self._engine.close)

    def end_threads(self) -> None:
        """Stop the threads, but leave the `EventStore` open."""
        self._call.end()


def _take(values: Iterator[T], most: int) -> list[T]:
    return list(islice(values, most))
