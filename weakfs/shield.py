"""Work that a task waits for even if it is cancelled, so that nothing takes effect after the task has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from asyncio import CancelledError, Future

T = TypeVar("T")


async def ended(work: Future[T]) -> CancelledError | None:
    """Wait for some work to end, even if this task is cancelled meanwhile, however often.

    Return the exception of the first cancellation, which the caller must raise.
    """
    # Imported only when needed: importing it takes longer than importing this whole package.
    import asyncio

    cancelled = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    return cancelled


async def shielded(work: Future[T]) -> T:
    """Return the result of some work. If this task is cancelled, raises `CancelledError` once the work has ended.

    `asyncio.shield` would raise it immediately, and the work could still take effect later.
    """
    cancelled = await ended(work)
    if cancelled is None:
        return work.result()
    if not work.cancelled():
        # Retrieved, so that asyncio does not report it as never retrieved.
        work.exception()
    raise cancelled


def run_in_thread(work: Callable[[], T]) -> Future[T]:
    """Run a function in a thread as `asyncio.to_thread` does, and return its future."""
    import asyncio

    return asyncio.get_running_loop().run_in_executor(None, copy_context().run, work)


async def cancelled_once(work: Coroutine[object, None, T], undo: Callable[[T], Awaitable[object]]) -> T:
    """Await work that can be cancelled, but whose cleanup cannot: cancelling this task again changes nothing.

    `undo` is awaited if the work was complete before it noticed the cancellation.
    """
    import asyncio

    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        await ended(task)
        if not task.cancelled() and task.exception() is None:
            await ended(asyncio.ensure_future(undo(task.result())))
        raise
