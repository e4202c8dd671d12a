"""Handlers that run programs on the host: two scans of the files find what changed in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVar, cast

from attrs import evolve

from weakfs.filesystem import ReadBack
from weakfs.messages import a_type
from weakfs.shield import shielded
from weakfs.tools.context import ToolContext, require_checkout, require_filesystem, require_writable
from weakfs.tools.results import ToolResult, Undone
from weakfs.tools.tool import Tool

T = TypeVar("T")

# Returns a result that can be recorded, or raises an exception.
Check = Callable[[object], ToolResult[object]]


def run_handler(tool: Tool, params: object, context: ToolContext, check: Check) -> object:
    """Run a handler, and record what its programs changed; if it fails, undo that.

    A cancellation waits until the handler has ended: its programs must not run on files that have been rolled back.
    """
    with context.cancellation.stopping(_wait), _directory(tool, context) as directory:
        return _ended(tool.handler(params, context=evolve(context, directory=directory)), context, check)


async def await_handler(tool: Tool, params: object, context: ToolContext, check: Check) -> object:
    """Await a coroutine function as `run_handler` runs a function; the scans run in threads."""
    import asyncio

    handler = cast("Callable[..., Awaitable[object]]", tool.handler)
    # A transaction belongs to a context, so everything that is done here runs in this one.
    here = copy_context()

    async def handle(directory: str) -> object:
        return await handler(params, context=evolve(context, directory=directory))

    files = _directory(tool, context)
    try:
        directory = await _in_thread(here, files.__enter__)
    except asyncio.CancelledError as error:
        await _in_thread(here, partial(_leave, files, error))
        raise
    try:
        given = _ended(await asyncio.create_task(handle(directory), context=here), context, check)
    except BaseException as error:
        await _in_thread(here, partial(_leave, files, error))
        raise
    await _in_thread(here, lambda: files.__exit__(None, None, None))
    return given


@contextmanager
def _directory(tool: Tool, context: ToolContext) -> Iterator[str]:
    """Check out the files for programs, and read back what they changed unless the block raises."""
    fs = require_filesystem(context)
    require_writable(fs, f"run {tool.name}", "a program")
    files = require_checkout(fs, f"run {tool.name} on {a_type(fs)}")
    with files.checkout(read_back=ReadBack(check=context.check_deadline)) as work:
        context.check_deadline()
        yield work.directory


def _ended(given: object, context: ToolContext, check: Check) -> object:
    """Raise if the handler failed or was cancelled, so that no changes of its programs are read back."""
    context.cancellation.check()
    if isinstance(given, ToolResult) and not cast("ToolResult[object]", given).success:
        raise Undone(check(cast(object, given)))
    return given


def _wait() -> None:
    """Do nothing: a cancellation waits for the end of the block."""


def _leave(files: Any, error: BaseException) -> None:
    """Restore the files as they were before."""
    try:
        files.__exit__(type(error), error, error.__traceback__)
    except BaseException as raised:
        if raised is not error:
            raise


async def _in_thread(context: Context, work: Callable[[], T]) -> T:
    """Run a function in a thread, and wait for it even if this task is cancelled: nothing else can use the context."""
    import asyncio

    return await shielded(asyncio.get_running_loop().run_in_executor(None, context.run, work))
