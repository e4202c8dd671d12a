"""Storage in object stores (S3, Google Cloud Storage and Azure) through obstore; needs the extra `s3`.

Values change by conditional writes: `If-None-Match` creates an object, and `If-Match` with its entity tag replaces it.
obstore must not repeat these by itself: if the answer to the first request was lost, the second is refused because the
first took effect, and that must not be mistaken for a change by another writer.

The path of the URL is a prefix of all keys. Its options are those of obstore, such as `endpoint`, `region` and
`access_key_id`; without them, credentials are taken from the environment, as the provider's own tools do.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    InvalidPathError,
    JoinError,
    PreconditionError,
)
from obstore.store import AzureStore, GCSStore, ObjectStore, from_url

from weakfs.storage.adapters import SyncStorage, run_in_place
from weakfs.storage.derived import DerivedStorage
from weakfs.storage.engines import Engine
from weakfs.storage.engines.urls import redacted, shown_cause, take_options, without_secrets
from weakfs.storage.errors import OutcomeUnknown, StorageError
from weakfs.storage.keys import LAST, check_key
from weakfs.storage.storage import Versioned

if TYPE_CHECKING:
    from obstore import GetResult, PutMode, PutResult, UpdateVersion

T = TypeVar("T")

# The number of concurrent requests, and of objects deleted by one request.
PARALLEL, DELETED = 16, 1_000
# How many times a request is tried, for at most how many seconds, and the first pause in seconds.
ATTEMPTS, PATIENCE, PAUSE = 5, 30.0, 0.1
# A listing comes in pages of this size, whatever size is requested.
LISTED = 1_000
OPTIONS_OF_CLIENT = {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout"}


class Client(ABC):
    """The calls of obstore, synchronous or asynchronous."""

    def __init__(self, url: str) -> None:
        self.store = _open_store(url, retries=ATTEMPTS - 1)
        # For requests that this module repeats itself: conditional writes, and reads, whose answers may be cut off.
        self.store_without_retries = _open_store(url, retries=0)

    @abstractmethod
    async def get(self, key: str) -> tuple[GetResult, bytes]: ...

    @abstractmethod
    async def exists(self, key: str) -> bool: ...

    @abstractmethod
    async def put(self, key: str, value: bytes) -> PutResult: ...

    @abstractmethod
    async def put_once(self, key: str, value: bytes, mode: PutMode) -> PutResult:
        """Put an object by a single request."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None: ...

    @abstractmethod
    async def delete(self, keys: Sequence[str]) -> None: ...

    @abstractmethod
    def pages(self, directory: str, after: str, page: int) -> AsyncIterator[list[str]]: ...

    @abstractmethod
    async def each(self, function: Callable[[str], Awaitable[T]], keys: Sequence[str]) -> list[T]:
        """Call a function for each key, several at the same time."""

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

        return list(self._threads.map(lambda key: run_in_place(call(key)), keys))

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

        return await asyncio.gather(*map(call, keys))

    def close(self) -> None:
        """Do nothing: the store closes its connections when nothing refers to it any more."""


class AsyncObjectStorage(DerivedStorage):
    """An `AsyncStorage` in an object store; `open_async_storage` and `ObjectStorage` open it."""

    def __init__(self, client: Client, url: str) -> None:
        self._client, self._secret_url = client, url

    @property
    def url(self) -> str:
        return redacted(self._secret_url)

    async def get_versioned(self, key: str) -> Versioned | None:
        with self._errors(is_change=False):
            async for is_last in self._attempts():
                try:
                    found, value = await self._client.get(self._key(key))
                except FileNotFoundError:
                    return None
                except GenericError as error:
                    if is_last or _is_refusal(error):
                        raise
                else:
                    return Versioned(value, _version(found.meta["e_tag"], found.meta["version"]))
        return None

    async def exists(self, key: str) -> bool:
        with self._errors(is_change=False):
            try:
                return await self._client.exists(self._key(key))
            except FileNotFoundError:
                return False

    async def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        wanted = sorted(set(map(self._key, keys)))
        found = zip(wanted, await self._client.each(self.get, wanted), strict=True)
        return {key: value for key, value in found if value is not None}

    async def set(self, key: str, value: bytes) -> None:
        with self._errors(is_change=True):
            await self._client.put(self._key(key), value)

    async def set_many(self, values: Mapping[str, bytes]) -> None:
        async def put(key: str) -> None:
            await self.set(key, values[key])

        await self._client.each(put, [self._key(key) for key in values])

    async def create(self, key: str, value: bytes) -> str | None:
        return await self._put_if(key, value, "create")

    async def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        tag, _, number = version.partition(" ")
        if not number and isinstance(self._client.store, GCSStore):
            # Every version there has a number.
            check_key(key)
            return None
        expected: UpdateVersion = {"e_tag": tag}
        if number:
            expected["version"] = number
        return await self._put_if(key, value, expected)

    async def delete(self, key: str) -> bool:
        # The answer to a request to delete an object does not say whether it existed.
        was_set = await self.exists(key)
        if was_set:
            with self._errors(is_change=True):
                try:
                    await self._client.delete([key])
                except FileNotFoundError:
                    return False
        return was_set

    async def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        found: list[str] = []
        if limit == 0:
            return found
        # obstore lists a directory: the prefix must consist of whole segments.
        directory = prefix.rpartition("/")[0]
        start = max(after, _before(prefix) if prefix != f"{directory}/" else "")
        page = LISTED if limit is None else min(LISTED, max(limit, 2))
        with self._errors(is_change=False):
            async for paths in self._client.pages(directory, start, page):
                for path in paths:
                    # Some services that are compatible with Azure list from the beginning.
                    if path <= after or path < prefix:
                        continue
                    if not path.startswith(prefix):
                        return found
                    found.append(path)
                    if len(found) == limit:
                        return found
        return found

    async def clear(self, prefix: str = "") -> int:
        keys = await self.keys(prefix)
        with self._errors(is_change=True):
            for start in range(0, len(keys), DELETED):
                await self._client.delete(keys[start : start + DELETED])
        return len(keys)

    async def close(self) -> None:
        self._client.close()

    def _key(self, key: str) -> str:
        if "\\" in check_key(key) and isinstance(self._client.store, AzureStore):
            raise ValueError(f"invalid key {key!r}: Azure turns a backslash into a slash; leave it out")
        return key

    async def _put_if(self, key: str, value: bytes, condition: PutMode) -> str | None:
        """Put an object on a condition. Return its version, or `None` if the condition is not met.

        Raise `OutcomeUnknown` if the condition may no longer be met because of an earlier attempt without an answer.
        """
        unanswered: GenericError | None = None
        with self._errors(is_change=True):
            async for is_last in self._attempts():
                try:
                    result = await self._client.put_once(self._key(key), value, condition)
                except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                    # Azure answers 409 to `create` where the others answer 412.
                    if not _has_status(error, "409") or "BlobAlreadyExists" in str(error):
                        if unanswered is not None:
                            raise unanswered from None
                        return None
                    # Another change of the key is in progress, which may leave it unchanged.
                    if is_last:
                        raise (unanswered or error) from None
                except GenericError as error:
                    if not _has_status(error, "4"):
                        unanswered = error
                    if is_last or _is_refusal(error):
                        raise (unanswered or error) from None
                else:
                    return _version(result["e_tag"], result["version"])
        return None

    async def _attempts(self) -> AsyncIterator[bool]:
        """Yield for each attempt whether it is the last one, with growing pauses between them."""
        pause, end = PAUSE, time.monotonic() + PATIENCE
        for left in reversed(range(ATTEMPTS)):
            yield left == 0 or time.monotonic() > end
            await self._client.sleep(pause * random.uniform(0.5, 1))
            pause *= 2

    @contextmanager
    def _errors(self, *, is_change: bool) -> Iterator[None]:
        """Raise the client's errors as errors of storage; no message contains a password."""
        try:
            yield
        except BaseError as error:
            why = without_secrets(_summary(str(error)), self._secret_url)
            # Every error with a specific class is an answer of the server.
            if is_change and type(error) in (GenericError, JoinError, BaseError) and not _has_status(error, "4"):
                raise OutcomeUnknown(
                    f"cannot tell whether {self.url!r} was changed: {why}; repeat the call"
                ) from shown_cause(error, self._secret_url)
            kind = "the key" if isinstance(error, InvalidPathError) else "the bucket, its address and the credentials"
            raise StorageError(f"cannot use {self.url!r}: {why}; check {kind}") from shown_cause(
                error, self._secret_url
            )


def _version(tag: str | None, number: str | None) -> str:
    return f"{tag or ''} {number or ''}".rstrip()


def _has_status(error: Exception, start: str) -> bool:
    """Return whether an error is an answer of the server with a status that starts with these digits."""
    return f"status code: {start}" in str(error)


def _is_refusal(error: Exception) -> bool:
    """Return whether an error is an answer that would be the same if the request was repeated."""
    return _has_status(error, "4") and not (_has_status(error, "408") or _has_status(error, "429"))


def _before(prefix: str) -> str:
    """Return a text that sorts before everything that starts with `prefix`, and after nearly everything before that."""
    if not prefix:
        return ""
    last = ord(prefix[-1]) - 1
    # There are no characters from D800 to DFFF.
    return prefix[:-1] + (chr(last if not 0xD800 <= last <= 0xDFFF else 0xD7FF) + LAST if last > 0 else "")


def _summary(message: str) -> str:
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
        why = without_secrets(_summary(str(error)), url)
        raise ValueError(f"cannot open {redacted(url)!r}: {why}; check the options of the URL") from error


class ObjectStorage(SyncStorage):
    """A `Storage` in an object store."""

    def __init__(self, url: str) -> None:
        super().__init__(AsyncObjectStorage(BlockingClient(url), url), run=run_in_place)


async def open_async_storage(url: str) -> AsyncObjectStorage:
    """Open an `AsyncStorage` in an object store."""
    storage = AsyncObjectStorage(AsyncClient(url), url)
    await storage.keys("heads/", limit=1)
    return storage


def _open_storage(url: str) -> ObjectStorage:
    storage = ObjectStorage(url)
    try:
        # Detects a wrong address or wrong credentials immediately.
        storage.keys("heads/", limit=1)
    except BaseException:
        storage.close()
        raise
    return storage


ENGINE = Engine(_open_storage, async_storage=open_async_storage)
