"""The forks and transactions that began in a session, as long as anything else refers to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import ref

# Dead references are first removed when there are more references than this.
LEAST = 64


class Branches:
    """Weak references, without a callback for each: a `WeakSet` makes a fork a third slower."""

    __slots__ = ("_limit", "_references")

    def __init__(self) -> None:
        self._references: list[ref[Any]] = []
        self._limit = LEAST

    def add(self, branch: object) -> None:
        """Remember a fork or a transaction. O(1), amortized."""
        self._references.append(ref(branch))
        if len(self._references) > self._limit:
            self._references = [one for one in self._references if one() is not None]
            self._limit = max(LEAST, 2 * len(self._references))

    def __iter__(self) -> Iterator[Any]:
        return (branch for one in self._references if (branch := one()) is not None)
