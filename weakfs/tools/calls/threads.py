"""Running handlers in threads, for calls that an event loop awaits and may cancel."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

from weakfs.session.transactions.cancellation import in_own_thread

if TYPE_CHECKING:
    from asyncio import Future

T = TypeVar("T")


async def in_thread(work: Callable[[], T], on_cancelled: Callable[[], object]) -> T:
    """Run a function in a thread of the event loop's executor, in a copy of this context.

    If the task is cancelled, `on_cancelled` runs to its end in another thread, and the function keeps running.
    """
    import asyncio

    future = asyncio.get_running_loop().run_in_executor(None, copy_context().run, work)
    future.add_done_callback(_heard)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await in_own_thread(on_cancelled)
        raise


def _heard(work: Future[T]) -> None:
    """Retrieve an error that nothing awaits any more, so that asyncio does not report it as never retrieved."""
    if not work.cancelled():
        work.exception()
