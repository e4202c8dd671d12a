"""Keys and values in an object store."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    InvalidPathError,
    JoinError,
    PreconditionError,
)
from obstore.store import AzureStore, GCSStore

from weakfs.storage.engine_base import DerivedStorage
from weakfs.storage.engines.objects.client import ATTEMPTS, PATIENCE, Client, check_threads, summary
from weakfs.storage.engines.urls import redacted, shown_cause, without_secrets
from weakfs.storage.errors import OutcomeUnknown, StorageError
from weakfs.storage.keys import LAST, check_item, check_key
from weakfs.storage.storage import Versioned

if TYPE_CHECKING:
    from obstore import PutMode, UpdateVersion

# The number of objects deleted in one request.
DELETED = 1_000
# The first pause between two attempts, in seconds.
PAUSE = 0.1
# A listing comes in pages of this size, whatever size is requested.
LISTED = 1_000


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
        check_threads(self.url)
        wanted = sorted(set(map(self._key, keys)))
        found = zip(wanted, await self._client.each(self.get, wanted), strict=True)
        return {key: value for key, value in found if value is not None}

    async def set(self, key: str, value: bytes) -> None:
        check_item(key, value)
        with self._errors(is_change=True):
            await self._client.put(self._key(key), value)

    async def set_many(self, values: Mapping[str, bytes]) -> None:
        async def put(key: str) -> None:
            await self.set(key, values[key])

        check_threads(self.url)
        for key, value in values.items():
            check_item(key, value)
        await self._client.each(put, [self._key(key) for key in values])

    async def create(self, key: str, value: bytes) -> str | None:
        check_item(key, value)
        return await self._put_if(key, value, "create")

    async def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        check_item(key, value)
        tag, _, number = version.partition(" ")
        if not number and isinstance(self._client.store, GCSStore):
            # In Google Cloud Storage, every version has a number.
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
        """Put an object conditionally. Return its version, or `None` if the condition is not met.

        Raises `OutcomeUnknown` if the condition may no longer be met because of an earlier attempt without an answer.
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
        check_threads(self.url)
        try:
            yield
        except BaseError as error:
            why = without_secrets(summary(str(error)), self._secret_url)
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
    """Return whether an error is an answer that would be the same if the request were repeated."""
    return _has_status(error, "4") and not (_has_status(error, "408") or _has_status(error, "429"))


def _before(prefix: str) -> str:
    """Return a text that sorts before all keys that start with `prefix`, and after nearly all keys before those."""
    if not prefix:
        return ""
    last = ord(prefix[-1]) - 1
    # There are no characters from D800 to DFFF.
    return prefix[:-1] + (chr(last if not 0xD800 <= last <= 0xDFFF else 0xD7FF) + LAST if last > 0 else "")
