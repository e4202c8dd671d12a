"""The calls of obstore, synchronous and asynchronous."""

from __future__ import annotations

import asyncio
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore, from_url

from weakfs.shield import ended
from weakfs.storage.adapters import run_in_place
from weakfs.storage.engines.urls import redacted, take_options, without_secrets
from weakfs.storage.errors import StorageError

if TYPE_CHECKING:
    from obstore import GetResult, PutMode, PutResult

T = TypeVar("T")

# The number of concurrent requests.
PARALLEL = 16
# How many times a request is tried, and for at most how many seconds.
ATTEMPTS, PATIENCE = 5, 30.0
OPTIONS_OF_CLIENT = {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout"}


# The process whose first request started the threads of obstore, which a process forked from it does not have.
_process: int | None = None


def check_threads(url: str) -> None:
    """Raise `StorageError` in a process that was forked after the first request: it would wait forever."""
    global _process
    if _process is None:
        _process = os.getpid()
    if _process != os.getpid():
        raise StorageError(
            f"cannot use {url!r} in a process that was forked after object storage had been used: its client would "
            "wait forever; start the process with the method 'spawn' or 'forkserver', or before the first use"
        )


class Client(ABC):
    """The calls of obstore, synchronous or asynchronous."""

    def __init__(self, url: str) -> None:
        self.store = _open_store(url, retries=ATTEMPTS - 1)
        # For requests that `items` repeats itself: conditional writes, and reads, whose answers may be cut off.
        self.store_without_retries = _open_store(url, retries=0)

    @abstractmethod
    async def get(self, key: str) -> tuple[GetResult, bytes]: ...

    @abstractmethod
    async def exists(self, key: str) -> bool: ...

    @abstractmethod
    async def put(self, key: str, value: bytes) -> PutResult: ...

    @abstractmethod
    async def put_once(self, key: str, value: bytes, mode: PutMode) -> PutResult:
        """Put an object in a single request."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None: ...

    @abstractmethod
    async def delete(self, keys: Sequence[str]) -> None: ...

    @abstractmethod
    def pages(self, directory: str, after: str, page: int) -> AsyncIterator[list[str]]: ...

    @abstractmethod
    async def each(self, function: Callable[[str], Awaitable[T]], keys: Sequence[str]) -> list[T]:
        """Call a function for each key, several at the same time. No call outlives the first error."""

    @abstractmethod
    def close(self) -> None: ...


class BlockingClient(Client):
    """Calls whose coroutines never wait: they block."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._threads = ThreadPoolExecutor(PARALLEL, thread_name_prefix="weakfs-objects")

    async def get(self, key: str) -> tuple[GetResult, bytes]:
        found = obstore.get(self.store_without_retries, key)
        return found, bytes(found.bytes())

    async def exists(self, key: str) -> bool:
        obstore.head(self.store, key)
        return True

    async def put(self, key: str, value: bytes) -> PutResult:
        return obstore.put(self.store, key, value)

    async def put_once(self, key: str, value: bytes, mode: PutMode) -> PutResult:
        return obstore.put(self.store_without_retries, key, value, mode=mode, use_multipart=False)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def delete(self, keys: Sequence[str]) -> None:
        obstore.delete(self.store, list(keys))

    async def pages(self, directory: str, after: str, page: int) -> AsyncIterator[list[str]]:
        for found in obstore.list(self.store, directory or None, offset=after or None, chunk_size=page):
            yield [one["path"] for one in found]

    async def each(self, function: Callable[[str], Awaitable[T]], keys: Sequence[str]) -> list[T]:
        async def call(key: str) -> T:
            return await function(key)

        def perform(key: str) -> T:
            return run_in_place(call(key))

        requests = [self._threads.submit(perform, key) for key in keys]
        try:
            return [request.result() for request in requests]
        except BaseException:
            for request in requests:
                request.cancel()
            # Nothing takes effect after the error was raised.
            wait(requests)
            raise

    def close(self) -> None:
        self._threads.shutdown()


class AsyncClient(Client):
    """Calls that an event loop waits for."""

    async def get(self, key: str) -> tuple[GetResult, bytes]:
        found = await obstore.get_async(self.store_without_retries, key)
        return found, bytes(await found.bytes_async())

    async def exists(self, key: str) -> bool:
        await obstore.head_async(self.store, key)
        return True

    async def put(self, key: str, value: bytes) -> PutResult:
        return await obstore.put_async(self.store, key, value)

    async def put_once(self, key: str, value: bytes, mode: PutMode) -> PutResult:
        return await obstore.put_async(self.store_without_retries, key, value, mode=mode, use_multipart=False)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def delete(self, keys: Sequence[str]) -> None:
        await obstore.delete_async(self.store, list(keys))

    async def pages(self, directory: str, after: str, page: int) -> AsyncIterator[list[str]]:
        async for found in obstore.list(self.store, directory or None, offset=after or None, chunk_size=page):
            yield [one["path"] for one in found]

    async def each(self, function: Callable[[str], Awaitable[T]], keys: Sequence[str]) -> list[T]:
        limit = asyncio.Semaphore(PARALLEL)

        async def call(key: str) -> T:
            async with limit:
                return await function(key)

        requests = [asyncio.ensure_future(call(key)) for key in keys]
        try:
            return await asyncio.gather(*requests)
        except BaseException:
            for request in requests:
                request.cancel()
            # Nothing takes effect after the error was raised.
            await ended(asyncio.gather(*requests, return_exceptions=True))
            raise

    def close(self) -> None:
        """Do nothing: the store closes its connections when nothing refers to it any more."""


def summary(message: str) -> str:
    """Return obstore's message without the debugging text that follows it."""
    return " ".join(re.split(r"\n\nDebug source:", message)[0].split())


def _open_store(url: str, *, retries: int) -> ObjectStore:
    address, options = take_options(url)
    if re.match("[^/]*//[^/]*@", address):
        raise ValueError(
            f"cannot open {redacted(url)!r}: there is an '@' before the path; pass credentials as options, such as "
            f"access_key_id and secret_access_key"
        )
    # obstore would omit these, and so open a different location.
    address = re.sub("[\x00-\x20#]", lambda found: f"%{ord(found[0]):02X}", address)
    client = {name: options.pop(name) for name in OPTIONS_OF_CLIENT & options.keys()}
    if any(value.startswith("http://") for value in options.values()):
        client.setdefault("allow_http", "true")
    # The options of each provider have a type of their own; the URL shows which one applies.
    opening: Callable[..., ObjectStore] = from_url
    retrying = {"max_retries": retries, "retry_timeout": timedelta(seconds=PATIENCE)}
    try:
        return opening(address, config=options, client_options=client, retry_config=retrying)
    except (BaseError, ValueError) as error:
        why = without_secrets(summary(str(error)), url)
        raise ValueError(f"cannot open {redacted(url)!r}: {why}; check the options of the URL") from error
