"""`FaultyStorage`: an engine that fails on purpose, in the same ways as engines behind a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, ParamSpec, TypeVar, get_args

from weakfs.storage import OutcomeUnknown, Storage, StorageError, Versioned

P = ParamSpec("P")
T = TypeVar("T")

# The change is refused; the request is lost; the change is made but the answer is lost; it is made twice, by a client
# that repeats requests.
Fault = Literal["before", "lost", "after", "twice"]
FAULTS: tuple[Fault, ...] = get_args(Fault)


class FaultyStorage:
    """A `Storage` whose n-th change fails.

    `fault` says how: "before" raises `StorageError` without a change, "lost" raises `OutcomeUnknown` without a change,
    "after" raises it after the change, and "twice" makes the change twice and returns the second answer.
    """

    def __init__(self, storage: Storage, fault: Fault, *, at: int) -> None:
        """`at` counts changes from 1; `fired` is true once that change was reached."""
        self._storage, self._fault, self._left = storage, fault, at
        self.fired = False

    def _change(self, change: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        self._left -= 1
        if self._left:
            return change(*args, **options)
        self.fired = True
        if self._fault == "before":
            raise StorageError("cannot reach the storage: refused by the test")
        if self._fault == "lost":
            raise OutcomeUnknown("cannot tell whether the storage changed: the test lost the request")
        change(*args, **options)
        if self._fault == "twice":
            return change(*args, **options)
        raise OutcomeUnknown("cannot tell whether the storage changed: the test lost the answer")

    @property
    def url(self) -> str:
        return self._storage.url

    @property
    def atomic_batches(self) -> bool:
        return self._storage.atomic_batches

    def get(self, key: str) -> bytes | None:
        return self._storage.get(key)

    def get_versioned(self, key: str) -> Versioned | None:
        return self._storage.get_versioned(key)

    def set(self, key: str, value: bytes) -> None:
        self._change(self._storage.set, key, value)

    def create(self, key: str, value: bytes) -> str | None:
        return self._change(self._storage.create, key, value)

    def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        return self._change(self._storage.replace, key, value, version=version)

    def delete(self, key: str) -> bool:
        return self._change(self._storage.delete, key)

    def exists(self, key: str) -> bool:
        return self._storage.exists(key)

    def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return self._storage.keys(prefix, after=after, limit=limit)

    def children(self, directory: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return self._storage.children(directory, after=after, limit=limit)

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        return self._storage.get_many(keys)

    def set_many(self, values: Mapping[str, bytes]) -> None:
        self._change(self._storage.set_many, values)

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        return self._storage.items(prefix)

    def clear(self, prefix: str = "") -> int:
        return self._change(self._storage.clear, prefix)

    def close(self) -> None:
        self._storage.close()
