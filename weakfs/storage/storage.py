"""`Storage`, the protocol of key-value engines, and `AsyncStorage`, the same with `async` methods.

Keys are text of the form `a/b/c`, compared and listed in the order of their UTF-8 bytes. Values are bytes. An engine
knows only keys and values, nothing about sessions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, runtime_checkable


class Versioned(NamedTuple):
    """A value and its version: an opaque string, never empty, that no other value of the key has had or will have.

    An engine may keep the version if a key is set to the value that it already has.
    """

    value: bytes
    version: str


@runtime_checkable
class Storage(Protocol):
    """A key-value engine.

    Every method may be called from any thread. An engine that cannot be reached raises `StorageError`; a change that
    raises `OutcomeUnknown` may or may not have taken effect.
    """

    @property
    def url(self) -> str:
        """The URL of the engine's location, without passwords; `weakfs.storage.open` accepts it."""
        ...

    @property
    def atomic_batches(self) -> bool:
        """Whether `set_many` and `clear` take effect as a whole or not at all."""
        ...

    def get(self, key: str) -> bytes | None:
        """Return the value of a key, or `None` if the key is not set."""
        ...

    def get_versioned(self, key: str) -> Versioned | None:
        """Return the value of a key with its version, or `None` if the key is not set."""
        ...

    def set(self, key: str, value: bytes) -> None:
        """Set a key, whether it was set before or not."""
        ...

    def create(self, key: str, value: bytes) -> str | None:
        """Set a key that is not set yet, and return its version. Return `None`, with nothing changed, if it is set."""
        ...

    def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        """Set a key whose value still has `version`, and return its new version.

        Return `None`, with nothing changed, if it has another version or is not set.
        """
        ...

    def delete(self, key: str) -> bool:
        """Delete a key. Return whether it was set."""
        ...

    def exists(self, key: str) -> bool:
        """Return whether a key is set."""
        ...

    def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the keys that start with `prefix` and follow `after`, in order, at most `limit` of them."""
        ...

    def children(self, directory: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the names directly below a directory, in order: `name` for a key, `name/` for a directory."""
        ...

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the values of these keys, except those that are not set."""
        ...

    def set_many(self, values: Mapping[str, bytes]) -> None:
        """Set several keys; see `atomic_batches`."""
        ...

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        """Yield all keys that start with `prefix`, in order, with their values, a page at a time."""
        ...

    def clear(self, prefix: str = "") -> int:
        """Delete all keys that start with `prefix`. Return how many there were."""
        ...

    def close(self) -> None:
        """Release connections and descriptors; closing again does nothing."""
        ...


@runtime_checkable
class AsyncStorage(Protocol):
    """`Storage` with `async` methods. A cancelled call has taken effect as a whole or not at all."""

    @property
    def url(self) -> str: ...
    @property
    def atomic_batches(self) -> bool: ...
    async def get(self, key: str) -> bytes | None: ...
    async def get_versioned(self, key: str) -> Versioned | None: ...
    async def set(self, key: str, value: bytes) -> None: ...
    async def create(self, key: str, value: bytes) -> str | None: ...
    async def replace(self, key: str, value: bytes, *, version: str) -> str | None: ...
    async def delete(self, key: str) -> bool: ...
    async def exists(self, key: str) -> bool: ...
    async def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]: ...
    async def children(self, directory: str = "", *, after: str = "", limit: int | None = None) -> list[str]: ...
    async def get_many(self, keys: Iterable[str]) -> dict[str, bytes]: ...
    async def set_many(self, values: Mapping[str, bytes]) -> None: ...
    def items(self, prefix: str = "") -> AsyncIterator[tuple[str, bytes]]: ...
    async def clear(self, prefix: str = "") -> int: ...
    async def close(self) -> None: ...
