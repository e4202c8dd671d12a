"""Commands and scripts on a Redis server, synchronous or asynchronous."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,
    NoScriptError,
    RedisError,
    TimeoutError,
)
from redis.retry import Retry

from weakfs.storage.engines.urls import redacted, shown_cause, take_options, without_secrets
from weakfs.storage.errors import DurabilityWarning, OutcomeUnknown, StorageDamaged, StorageError, check_size

# The settings that determine whether the server keeps acknowledged changes.
SETTINGS = ("appendonly", "appendfsync", "maxmemory", "maxmemory-policy")

Word = str | bytes | int | float

# How long to wait for a connection and for an answer, in seconds. A blocking read ends earlier.
CONNECT, ANSWER, BLOCK = 10.0, 60.0, 5.0
# Connection errors that are answers of the server, which has done nothing.
REFUSALS = (AuthenticationError, BusyLoadingError)
# The maximum size of one value in bytes, unless the server is configured otherwise (`proto-max-bulk-len`).
LARGEST = 512 << 20


class Client(ABC):
    """A pool of connections. Failed commands are repeated by the caller, which knows whether that is safe."""

    def __init__(self, url: str) -> None:
        self.address, options = take_options(url, {"namespace"})
        self.namespace = options.get("namespace", "weakfs")
        if not re.fullmatch(r"[\w.-]{1,50}", self.namespace):
            raise ValueError(f"invalid namespace {self.namespace!r}: use letters, digits, '_', '.' and '-' only")
        self.url, self._secret_url = redacted(url), url
        self._digests: dict[str, str] = {}

    @abstractmethod
    async def execute(self, *command: Word) -> object:
        """Execute a command. Raises the client's errors."""

    @abstractmethod
    async def close(self) -> None: ...

    async def read(self, *command: Word) -> object:
        """Execute a command that changes nothing, on a second connection if the first one was lost."""
        with self._errors(is_change=False):
            try:
                return await self.execute(*command)
            except (ConnectionError, TimeoutError):
                return await self.execute(*command)

    async def change(self, *command: Word) -> object:
        check_size(max(len(word) for word in command if isinstance(word, str | bytes)), LARGEST, self.url)
        with self._errors(is_change=True):
            return await self.execute(*command)

    async def run(self, script: str, keys: Sequence[str], *arguments: Word, is_change: bool = True) -> object:
        """Run a script, which is sent to the server only once.

        A script that changes nothing is run on a second connection if the first one was lost.
        """
        is_repeated = is_change
        check_size(max((len(word) for word in arguments if type(word) is bytes), default=0), LARGEST, self.url)
        with self._errors(is_change=is_change):
            while True:
                try:
                    digest = self._digests.get(script)
                    if digest is None:
                        digest = self._digests[script] = _text(await self.execute("SCRIPT LOAD", script))
                    return await self.execute("EVALSHA", digest, len(keys), *keys, *arguments)
                except NoScriptError:
                    # The server was restarted.
                    del self._digests[script]
                except (ConnectionError, TimeoutError):
                    if is_repeated:
                        raise
                    is_repeated = True

    async def check(self) -> None:
        """Connect, and warn if the server may lose acknowledged changes."""
        with self._errors(is_change=False):
            try:
                found = {name: _setting(await self.execute("CONFIG GET", name)) for name in SETTINGS}
            except AuthenticationError:
                raise
            except redis.ResponseError:
                await self.execute("PING")
                found = {}
        synced = {name: found[name] for name in ("appendonly", "appendfsync") if name in found}
        if synced != {"appendonly": "yes", "appendfsync": "always"}:
            why = ", ".join(f"{name} is {value!r}" for name, value in synced.items())
            warnings.warn(
                f"{self.url!r} may lose acknowledged changes when its machine fails: "
                f"{why or 'it does not reveal its settings'}; set appendonly to yes and appendfsync to always",
                DurabilityWarning,
                stacklevel=6,
            )
        # The other policies evict only keys that expire, which these do not.
        if found.get("maxmemory", "0") != "0" and found["maxmemory-policy"].startswith("allkeys"):
            warnings.warn(
                f"{self.url!r} may lose acknowledged changes when its memory is full: maxmemory-policy is "
                f"{found['maxmemory-policy']!r}; set it to noeviction",
                DurabilityWarning,
                stacklevel=6,
            )

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Raise the client's errors about the URL as `ValueError`."""
        try:
            if not re.fullmatch(r"/?\d*", urlsplit(self.address).path):
                raise ValueError("the path is not the number of a database")
            yield
        except (ValueError, TypeError, RedisError) as error:
            why = without_secrets(str(error), self._secret_url)
            raise ValueError(
                f"cannot open {self.url!r}: {why}; write redis://USER:PASSWORD@HOST:PORT/NUMBER"
            ) from shown_cause(error, self._secret_url)

    @contextmanager
    def _errors(self, *, is_change: bool) -> Iterator[None]:
        """Raise the client's errors as errors of storage; no message contains a password."""
        try:
            yield
        except RedisError as error:
            why = without_secrets(" ".join(str(error).split()), self._secret_url)
            is_lost = isinstance(error, ConnectionError | TimeoutError) and not isinstance(error, REFUSALS)
            cause = shown_cause(error, self._secret_url)
            if is_change and is_lost:
                raise OutcomeUnknown(f"cannot tell whether {self.url!r} was changed: {why}; repeat the call") from cause
            raise StorageError(f"cannot use {self.url!r}: {why}; check the server and its address") from cause


class SyncClient(Client):
    """A client whose coroutines never wait: they block."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        with self._opening():
            self._redis = redis.Redis.from_url(
                self.address, socket_connect_timeout=CONNECT, socket_timeout=ANSWER, retry=Retry(NoBackoff(), 0)
            )
            self._redis.connection_pool.make_connection()

    async def execute(self, *command: Word) -> object:
        answer: object = self._redis.execute_command(*command)  # type: ignore[no-untyped-call]  # of redis-py
        return answer

    async def close(self) -> None:
        self._redis.close()
        self._redis.connection_pool.disconnect()


class AsyncClient(Client):
    """A client on an event loop."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        with self._opening():
            self._redis = redis.asyncio.Redis.from_url(
                self.address, socket_connect_timeout=CONNECT, socket_timeout=ANSWER, retry=AsyncRetry(NoBackoff(), 0)
            )
            self._redis.connection_pool.make_connection()  # type: ignore[no-untyped-call]  # of redis-py

    async def execute(self, *command: Word) -> object:
        answer: object = await self._redis.execute_command(*command)  # type: ignore[no-untyped-call]  # of redis-py
        return answer

    async def close(self) -> None:
        try:
            await self._redis.aclose()
        finally:
            await self._redis.connection_pool.disconnect()


def _text(value: object) -> str:
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError:
        raise StorageDamaged(
            f"cannot read what Redis holds: {value!r:.60} is not UTF-8; restore the database from a backup"
        ) from None


def _setting(answer: object) -> str:
    """Return the value in an answer of CONFIG GET."""
    if isinstance(answer, dict):
        return "".join(map(_text, answer.values()))
    return _text(answer[-1]) if isinstance(answer, list) and answer else ""


def words(answer: object) -> list[object]:
    """Return an answer that is a list."""
    assert isinstance(answer, list)
    return answer


def texts(answer: object) -> list[str]:
    """Return an answer that is a list of strings."""
    return list(map(_text, words(answer)))
