"""The interface between a measured filesystem and the rows.

A subject lists its operations in `operations`. Each is a callable that takes paths and text as strings. If a library
needs something else (bytes, a path object), it is made inside the call, because a user would have to make it too. An
operation that a library lacks is omitted, and its cell is empty.

    write(path, text)   read(path) -> str   read_bytes(path) -> bytes   stat(path)   list(path)
    delete(directory)   move(directory, to)
    grep(pattern) -> number of matching lines   snapshot() -> state   restore(state)   fork()
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from benchmarks.workload import Tree

OURS = "weakfs"

Calls = Sequence[tuple[Any, ...]]


class Subject(Protocol):
    """One filesystem in memory, ours or a peer's."""

    name: str
    capacity: int | None
    """The largest tree that it has to hold, None for no limit."""
    why_capacity: str

    def seed(self, tree: Tree) -> None:
        """Fill the empty filesystem in the library's fastest way."""

    def has(self, operation: str) -> bool: ...

    def perform(self, operation: str, calls: Calls) -> None:
        """Do the operation once for each tuple of arguments. This is timed."""

    def answer(self, operation: str, *arguments: Any) -> Any:
        """Do the operation once and return its result."""

    def close(self) -> None: ...


class SyncSubject:
    """A subject whose library is called directly."""

    name: str
    capacity: int | None = None
    why_capacity: str = ""
    operations: dict[str, Callable[..., Any]]

    def has(self, operation: str) -> bool:
        return operation in self.operations

    def perform(self, operation: str, calls: Calls) -> None:
        act = self.operations[operation]
        for call in calls:
            act(*call)

    def answer(self, operation: str, *arguments: Any) -> Any:
        return self.operations[operation](*arguments)

    def close(self) -> None:
        """Do nothing: the memory is freed with the object."""


class AsyncSubject:
    """A subject whose library is awaited: one trip into the event loop for a whole batch of calls."""

    name: str
    capacity: int | None = None
    why_capacity: str = ""
    operations: dict[str, Callable[..., Awaitable[Any]]]

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    def has(self, operation: str) -> bool:
        return operation in self.operations

    def perform(self, operation: str, calls: Calls) -> None:
        self.loop.run_until_complete(self._perform(self.operations[operation], calls))

    async def _perform(self, act: Callable[..., Awaitable[Any]], calls: Calls) -> None:
        for call in calls:
            await act(*call)

    def answer(self, operation: str, *arguments: Any) -> Any:
        return self.loop.run_until_complete(self._answer(self.operations[operation], arguments))

    async def _answer(self, act: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]) -> Any:
        return await act(*arguments)

    def close(self) -> None:
        self.loop.close()
