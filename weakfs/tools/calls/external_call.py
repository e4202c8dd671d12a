"""Calls whose work is done elsewhere: by a runtime's own tool, a subprocess, another server.

The files are scanned when the call begins and again when it ends. The differences are the call's changes, which are
recorded and undone like those of any other call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.errors import WeakfsError
from weakfs.filesystem import Checkout
from weakfs.messages import a_type, plural
from weakfs.shield import ended
from weakfs.tools.calls.call import Call
from weakfs.tools.calls.steps import Step, Steps, arun, run
from weakfs.tools.context import require_checkout, require_filesystem
from weakfs.tools.errors import ToolValidationError
from weakfs.tools.results import Receipt, ToolResult, Undone, answer, failed, summarize
from weakfs.tools.tool import Tool

if TYPE_CHECKING:
    from asyncio import CancelledError

T = TypeVar("T")


@frozen(kw_only=True)
class ExternalReceipt(Receipt):
    """The sorted canonical paths that an external call changed; empty if it failed."""

    changed_paths: tuple[str, ...] | None = None


class ExternalCallFailed(WeakfsError, RuntimeError):
    """An external call was refused, or failed at its end and was undone. `result` is its answer."""

    def __init__(self, result: ToolResult[ExternalReceipt]) -> None:
        super().__init__(result.message)
        self.result = result


@frozen(eq=False)
class ExternalTool(Tool):
    """A tool of another program: its arguments are recorded without a check."""

    def read_arguments(self, arguments: object) -> object:
        """Return the arguments; raises `ToolValidationError` if they are not a mapping."""
        if not isinstance(arguments, Mapping):
            raise ToolValidationError(f"the arguments are {a_type(arguments)}; give a mapping")
        return cast("Mapping[str, object]", arguments)


@frozen
class AnyArguments:
    """The unchecked arguments of a tool of another program."""


def _no_handler(params: object, *, context: object) -> ToolResult[object]:
    raise AssertionError("the work of an external call is done elsewhere")


EXTERNAL = ExternalTool(
    "external_call",
    "Work that is done elsewhere.",
    AnyArguments,
    _no_handler,
    receipt=ExternalReceipt,
    operation="shell",
)


@define(eq=False)
class ExternalCall:
    """One call whose work is done elsewhere; see `Toolset.external_call`.

    Use it in a `with` or `async with` block, or call `begin` and then `end` or `abort`, not necessarily in the same
    thread, task or context. `message` is the answer to record when the block ends.
    """

    message: str | None = field(default=None, init=False)
    # The answer, once the call has ended.
    result: ToolResult[ExternalReceipt] | None = field(default=None, init=False)
    _call: Call = field(init=False)
    _steps: Steps[ToolResult[object]] | None = field(default=None, init=False)
    # A transaction belongs to a context, so all parts of the call run in this one.
    _context: Context = field(factory=copy_context, init=False)
    _files: AbstractContextManager[Checkout] | None = field(default=None, init=False)
    _checkout: Checkout | None = field(default=None, init=False)
    # The cancellation of the task that awaits the call. After it, the rest of the call can no longer be cancelled.
    _cancelled: CancelledError | None = field(default=None, init=False)

    @classmethod
    def _of(cls, call: Call) -> ExternalCall:
        made = cls()
        made._call = call
        return made

    @property
    def call_id(self) -> str:
        """The id of the call, which is the cause of its records."""
        return self._call.call_id

    @property
    def directory(self) -> str:
        """The host directory in which the work is done: a host filesystem's own, or a private copy."""
        if self._checkout is None or self.result is not None:
            raise RuntimeError(
                f"the call of {self._call.name!r} is not under way; its directory exists only between begin and end"
            )
        return self._checkout.directory

    def begin(self) -> Self:
        """Begin the call with a scan of the files. Raises `ExternalCallFailed` if it is refused."""
        run(self._beginning())
        return self._begun()

    def end(self, message: str | None = None) -> ToolResult[ExternalReceipt]:
        """Scan the files again, record what changed, and return the answer; if that fails, undo the work."""
        run(self._ending(message))
        return self._answer()

    def abort(
        self, reason: str = "the runtime aborted the call", *, code: str = "aborted"
    ) -> ToolResult[ExternalReceipt]:
        """Undo the work, record that the call failed, and return the answer."""
        run(self._aborting(reason, code))
        return self._answer()

    def run(self, work: Callable[[], T]) -> T:
        """Call a function that uses the session's own filesystem as part of the work, such as `fs.write`."""
        self._under_way()
        return self._context.run(work)

    async def arun(self, work: Callable[[], T]) -> T:
        """Call a function as `run` does, in a thread."""
        self._under_way()
        return cast(T, await self._in_thread(work))

    async def abegin(self) -> Self:
        """Begin the call as `begin` does; the scan runs in a thread."""
        await self._performed(self._beginning())
        return self._begun()

    async def aend(self, message: str | None = None) -> ToolResult[ExternalReceipt]:
        """End the call as `end` does; the scan runs in a thread."""
        await self._performed(self._ending(message))
        return self._answer()

    async def aabort(
        self, reason: str = "the runtime aborted the call", *, code: str = "aborted"
    ) -> ToolResult[ExternalReceipt]:
        """Undo the work as `abort` does, in a thread."""
        await self._performed(self._aborting(reason, code))
        return self._answer()

    def __enter__(self) -> Self:
        return self.begin()

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self.result is not None:
            return
        if error is not None:
            self.abort(_message(error), code=_code(error))
        elif not (result := self.end()).success:
            raise ExternalCallFailed(result)

    async def __aenter__(self) -> Self:
        return await self.abegin()

    async def __aexit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if self.result is not None:
            return
        if error is not None:
            await self.aabort(_message(error), code=_code(error))
        elif not (result := await self.aend()).success:
            raise ExternalCallFailed(result)

    async def _performed(self, steps: Steps[None]) -> None:
        await arun(steps)
        if self._cancelled is not None:
            raise self._cancelled

    def _begun(self) -> Self:
        if self.result is not None:
            raise ExternalCallFailed(self.result)
        return self

    def _answer(self) -> ToolResult[ExternalReceipt]:
        assert self.result is not None
        return self.result

    def _beginning(self) -> Steps[None]:
        if self._steps is not None:
            raise RuntimeError(f"the call of {self._call.name!r} has already begun; make an external call for each")
        self._steps = self._call._steps()
        yield from self._go_on(self._resumed(next, self._steps))

    def _ending(self, message: str | None) -> Steps[None]:
        steps, files = self._under_way()
        yield from self._left(steps, lambda: self._read_back(files, message))

    def _aborting(self, reason: str, code: str) -> Steps[None]:
        steps, files = self._under_way()
        error = Undone(failed(ExternalReceipt, "error", code, _encodable(f"{self._call.name} failed: {reason}")))

        def undo() -> None:
            # The end of the transaction restores the files.
            files.__exit__(type(error), error, None)
            raise error

        yield from self._left(steps, undo)

    def _left(self, steps: Steps[ToolResult[object]], leave: Callable[[], object]) -> Steps[None]:
        self._files = None
        try:
            given = yield self._in_context(leave)
        except BaseException as error:
            step = self._resumed(steps.throw, error)
        else:
            step = self._resumed(steps.send, given)
        yield from self._go_on(step)

    def _go_on(self, step: Step | None) -> Steps[None]:
        """Perform the steps of the call until its work begins or the call has ended."""
        steps = cast("Steps[ToolResult[object]]", self._steps)
        while step is not None:
            is_work = step[0] == self._call._handle
            try:
                if is_work and self._cancelled is not None:
                    raise self._cancelled
                given = yield self._in_context(self._check_out if is_work else step)
            except BaseException as error:
                if self._files is not None:
                    # The call was cancelled while the files were being checked out.
                    files, self._files = self._files, None
                    self._context.run(files.__exit__, type(error), error, error.__traceback__)
                step = self._resumed(steps.throw, error)
            else:
                if is_work:
                    return
                step = self._resumed(steps.send, given)

    def _resumed(self, resume: Callable[..., Step], *arguments: object) -> Step | None:
        try:
            return self._context.run(resume, *arguments)
        except StopIteration as end:
            self.result = end.value
            return None

    def _check_out(self) -> None:
        """Check the call, and check out the files for it."""
        self._call._prepare()
        fs = require_filesystem(self._call.context)
        files = require_checkout(fs, f"work on {a_type(fs)} from outside").checkout()
        self._checkout = files.__enter__()
        self._files = files

    def _read_back(self, files: AbstractContextManager[Checkout], message: str | None) -> ToolResult[ExternalReceipt]:
        files.__exit__(None, None, None)
        changed = cast(Checkout, self._checkout).changed
        summary = f"{self._call.name}: {plural(len(changed), 'path')} changed"
        receipt = ExternalReceipt(summary_text=summarize(summary), changed_paths=changed)
        text = self.message if message is None else message
        return answer(receipt, summary if text is None else _encodable(text))

    def _under_way(self) -> tuple[Steps[ToolResult[object]], AbstractContextManager[Checkout]]:
        if self._steps is None or self._files is None:
            raise RuntimeError(f"the call of {self._call.name!r} is not under way; begin it, and end it once")
        return self._steps, self._files

    def _in_context(self, work: Step | Callable[[], object]) -> Step:
        """Return a step that works in the context of the call; on an event loop, a function runs in a thread."""
        if isinstance(work, tuple):
            return partial(self._context.run, work[0]), partial(self._awaited, work)
        return partial(self._context.run, work), partial(self._in_thread, work)

    async def _awaited(self, step: Step) -> object:
        import asyncio

        async def perform() -> object:
            return await step[1]()

        task = asyncio.create_task(perform(), context=self._context)
        if self._cancelled is not None:
            # What is left is to undo and record the call.
            await ended(task)
            return task.result()
        try:
            return await task
        except asyncio.CancelledError as error:
            self._cancelled = error
            if task.cancelled() or task.exception() is not None:
                raise
            # The step was complete.
            return task.result()

    async def _in_thread(self, work: Callable[[], object]) -> object:
        import asyncio

        future = asyncio.get_running_loop().run_in_executor(None, self._context.run, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError as error:
            self._cancelled = error
            # The call is undone only once the work, which may be using the journals of the files, has ended.
            self._call.cancellation.request("the call was cancelled")
            await ended(future)
            # Retrieved so that asyncio does not report it as never retrieved.
            future.exception()
            raise


def _encodable(text: str) -> str:
    """Return text with a question mark for each lone surrogate, which output of other programs may contain."""
    return text.encode(errors="replace").decode()


def _message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _code(error: BaseException) -> str:
    return "aborted" if isinstance(error, Exception) else "cancelled"
