"""Synchronous access to asynchronous engines: `SyncStorage` and `SyncEventStore` run their coroutines to completion."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Generic, Protocol, Self, TypeVar

from weakfs.storage.event_store import AsyncEventStore, Checkpoint, Frame, Lease
from weakfs.storage.storage import AsyncStorage, Versioned

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


class SyncStorage(_SyncAccess[AsyncStorage]):
    """A `Storage` over an `AsyncStorage`."""

    @property
    def atomic_batches(self) -> bool:
        return self._engine.atomic_batches

    def get(self, key: str) -> bytes | None:
        return self._run(self._engine.get(key))

    def get_versioned(self, key: str) -> Versioned | None:
        return self._run(self._engine.get_versioned(key))

    def set(self, key: str, value: bytes) -> None:
        self._run(self._engine.set(key, value))

    def create(self, key: str, value: bytes) -> str | None:
        return self._run(self._engine.create(key, value))

    def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        return self._run(self._engine.replace(key, value, version=version))

    def delete(self, key: str) -> bool:
        return self._run(self._engine.delete(key))

    def exists(self, key: str) -> bool:
        return self._run(self._engine.exists(key))

    def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return self._run(self._engine.keys(prefix, after=after, limit=limit))

    def children(self, directory: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return self._run(self._engine.children(directory, after=after, limit=limit))

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        return self._run(self._engine.get_many(keys))

    def set_many(self, values: Mapping[str, bytes]) -> None:
        self._run(self._engine.set_many(values))

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        return _iterate(self._run, self._engine.items(prefix))

    def clear(self, prefix: str = "") -> int:
        return self._run(self._engine.clear(prefix))


class SyncEventStore(_SyncAccess[AsyncEventStore]):
    """An `EventStore` over an `AsyncEventStore`."""

    def head(self, stream: str) -> int:
        return self._run(self._engine.head(stream))

    def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        return self._run(self._engine.append(stream, expected, frames, contents=contents, fencing=fencing))

    def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> Iterator[Frame]:
        return _iterate(self._run, self._engine.read(stream, after=after, limit=limit))

    def wait(self, stream: str, after: int, timeout: float) -> int:
        return self._run(self._engine.wait(stream, after, timeout))

    def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        self._run(self._engine.put_contents(stream, contents))

    def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        return self._run(self._engine.get_contents(stream, digests))

    def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        return self._run(self._engine.has_contents(stream, digests))

    def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        self._run(self._engine.put_checkpoint(stream, checkpoint))

    def get_checkpoint(self, stream: str) -> Checkpoint | None:
        return self._run(self._engine.get_checkpoint(stream))

    def trim(self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None) -> None:
        self._run(self._engine.trim(stream, before, contents=contents, expected=expected))

    def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return self._run(self._engine.streams(prefix, after=after, limit=limit))

    def delete(self, stream: str) -> bool:
        return self._run(self._engine.delete(stream))

    def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        return self._run(self._engine.lease(stream, owner, seconds))

    def release(self, lease: Lease) -> None:
        self._run(self._engine.release(lease))

    def flush(self) -> None:
        self._run(self._engine.flush())
