"""Work on an event store as steps: generators that yield operations on the store, and get each result back.

What the commit of a session does is written once, as steps. `run` performs their operations with a synchronous store,
and `arun` with an asynchronous one; the session's `PendingSteps` let an event loop await them, with the session
unlocked in the meantime. Every operation can be repeated: a store recognizes frames that it already has.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from weakfs.storage.event_store import AsyncEventStore, EventStore
    from weakfs.storage.event_store_operations import Operation

T = TypeVar("T")


# Each operation that is yielded gets its result sent back, or its error thrown.
Steps = Generator["Operation", Any, T]


def run(steps: Steps[T], store: EventStore) -> T:
    """Perform steps with a synchronous store, and return their result."""
    try:
        operation = next(steps)
        while True:
            try:
                reply = operation.run(store)
            except BaseException as error:
                operation = steps.throw(error)
            else:
                operation = steps.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


async def arun(steps: Steps[T], store: AsyncEventStore) -> T:
    """Perform steps with an asynchronous store, and return their result."""
    try:
        operation = next(steps)
        while True:
            try:
                reply = await operation.arun(store)
            except BaseException as error:
                operation = steps.throw(error)
            else:
                operation = steps.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


class ContentsNeeded(BaseException):
    """Contents that are not in memory are needed by code that cannot wait for them; see `supplied`."""

    def __init__(self, stream: str, digests: Sequence[str]) -> None:
        self.stream, self.digests = stream, digests
        super().__init__(stream, digests)


# The contents that the running step was given, with `None` for those that the stream does not have. Not set outside
# `supplied`, where contents are read from the store.
_SUPPLIED: ContextVar[dict[str, bytes | None] | None] = ContextVar("weakfs_supplied", default=None)


def supplied(step: Callable[[], T]) -> Steps[T]:
    """Return the result of `step`, with the contents that it reads from the stream fetched between the steps.

    `step` is repeated whenever it needs more contents, so it must not change anything before it ends.
    """
    contents: dict[str, bytes | None] = {}
    while True:
        token = _SUPPLIED.set(contents)
        try:
            return step()
        except ContentsNeeded as needed:
            stream, digests = needed.stream, needed.digests
        finally:
            _SUPPLIED.reset(token)
        # A session in memory has no operations.
        from weakfs.storage.event_store_operations import GetContents

        found = yield GetContents(stream, digests)
        contents.update({digest: found.get(digest) for digest in digests})


def supplied_contents(stream: str, digests: Sequence[str]) -> dict[str, bytes] | None:
    """Return the contents that the running step was given, or `None` if it may read.

    Raises `ContentsNeeded` if some are missing.
    """
    contents = _SUPPLIED.get()
    if contents is None:
        return None
    missing = [digest for digest in digests if digest not in contents]
    if missing:
        raise ContentsNeeded(stream, missing)
    return {digest: found for digest in digests if (found := contents[digest]) is not None}
