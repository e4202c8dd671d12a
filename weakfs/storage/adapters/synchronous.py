"""Synchronous access to asynchronous engines: `SyncStorage` and `SyncEventStore` run their coroutines to completion."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from weakfs.storage.event_store import AsyncEventStore, EventStore, Frame
from weakfs.storage.storage import AsyncStorage, Storage

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=AsyncStorage | AsyncEventStore)


class Run(Protocol):
    """Runs a coroutine to completion, and returns its result."""

    def __call__(self, call: Coroutine[object, None, T], /) -> T: ...


def run_in_place(call: Coroutine[object, None, T], /) -> T:
    """Run a coroutine that never waits: one of an engine whose client blocks, or of storage in memory.

    Raises `RuntimeError` if the coroutine waits.
    """
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise RuntimeError("the coroutine waits for an event loop; run it with a BackgroundLoop")


class BackgroundLoop:
    """An event loop in its own thread, on which coroutines are run from any other thread."""

    def __init__(self) -> None:
        # Imported only when needed: importing it takes longer than importing this whole package.
        import asyncio

        self._submit = asyncio.run_coroutine_threadsafe
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="weakfs-storage", daemon=True)
        self._thread.start()

    def __call__(self, call: Coroutine[object, None, T], /) -> T:
        future = self._submit(call, self._loop)
        try:
            return future.result()
        except BaseException:
            # If the caller is interrupted, nothing is left running.
            future.cancel()
            raise

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def close(self) -> None:
        """Stop the loop; closing again does nothing."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def _iterate(run: Run, values: AsyncIterator[T]) -> Iterator[T]:
    try:
        while (value := run(_next(values))) is not None:
            yield value
    finally:
        run(_close(values))


async def _next(values: AsyncIterator[T]) -> T | None:
    return await anext(values, None)


async def _close(values: AsyncIterator[object]) -> None:
    close = getattr(values, "aclose", None)
    if close is not None:
        await close()


class _SyncAccess(Generic[E]):
    """Access to an engine whose coroutines are run to completion."""

    def __init__(self, engine: E, *, run: Run | None = None) -> None:
        """Without `run`, coroutines run on a loop in the background that belongs to this object."""
        self._engine = engine
        self._own_loop = BackgroundLoop() if run is None else None
        self._run: Run = self._own_loop or run or run_in_place

    @classmethod
    def opened(cls, opening: Coroutine[object, None, E]) -> Self:
        """Return an engine that is opened on its own loop in the background."""
        loop = BackgroundLoop()
        try:
            made = cls(loop(opening), run=loop)
        except BaseException:
            loop.close()
            raise
        made._own_loop = loop
        return made

    @property
    def url(self) -> str:
        return self._engine.url

    def close(self) -> None:
        if self._own_loop is None or not self._own_loop.is_closed:
            self._run(self._engine.close())
        if self._own_loop is not None:
            self._own_loop.close()


def _completed(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that runs the coroutine of the same name of an engine to completion."""
    name = method.__name__

    @wraps(method)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        result: T = self._run(getattr(self._engine, name)(*args, **options))
        return result

    return call


class SyncStorage(_SyncAccess[AsyncStorage]):
    """A `Storage` over an `AsyncStorage`."""

    @property
    def atomic_batches(self) -> bool:
        return self._engine.atomic_batches

    get = _completed(Storage.get)
    get_versioned = _completed(Storage.get_versioned)
    set = _completed(Storage.set)
    create = _completed(Storage.create)
    replace = _completed(Storage.replace)
    delete = _completed(Storage.delete)
    exists = _completed(Storage.exists)
    keys = _completed(Storage.keys)
    children = _completed(Storage.children)
    get_many = _completed(Storage.get_many)
    set_many = _completed(Storage.set_many)

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        return _iterate(self._run, self._engine.items(prefix))

    clear = _completed(Storage.clear)


class SyncEventStore(_SyncAccess[AsyncEventStore]):
    """An `EventStore` over an `AsyncEventStore`."""

    head = _completed(EventStore.head)
    append = _completed(EventStore.append)

    def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> Iterator[Frame]:
        return _iterate(self._run, self._engine.read(stream, after=after, limit=limit))

    wait = _completed(EventStore.wait)
    put_contents = _completed(EventStore.put_contents)
    get_contents = _completed(EventStore.get_contents)
    has_contents = _completed(EventStore.has_contents)
    put_checkpoint = _completed(EventStore.put_checkpoint)
    get_checkpoint = _completed(EventStore.get_checkpoint)
    trim = _completed(EventStore.trim)
    streams = _completed(EventStore.streams)
    delete = _completed(EventStore.delete)
    lease = _completed(EventStore.lease)
    release = _completed(EventStore.release)
    flush = _completed(EventStore.flush)
