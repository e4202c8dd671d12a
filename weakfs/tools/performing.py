"""One call, step by step: checked, run in a transaction, undone if it fails, and written down once.

What runs the handler is left to the caller of `steps`: directly, or awaited.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress

from attrs import define

from weakfs.filesystem import Filesystem, normalize
from weakfs.filesystem.absence import with_proposal
from weakfs.filesystem.errors import absence_in
from weakfs.session import Cancellation, Merged, Session, SessionClosed, SessionError, TransactionCancelled
from weakfs.tools.context import ToolContext
from weakfs.tools.errors import ANSWERED, PolicyDenied, classify
from weakfs.tools.guarding import may_show
from weakfs.tools.recording import recorded
from weakfs.tools.results import Receipt, ToolResult, failed, one_line
from weakfs.tools.slice import ToolCall
from weakfs.tools.staleness import Readings
from weakfs.tools.tool import Tool

# Yields what the handler is called with, once, takes what it gave, and returns the answer.
Steps = Generator[tuple[object, ToolContext], object, ToolResult[object]]


class _Undone(Exception):
    """Takes a failed result out of its transaction, so that the transaction is rolled back."""

    def __init__(self, result: ToolResult[object]) -> None:
        self.result = result


def _check(tool: Tool, result: ToolResult[object]) -> None:
    """Raise `TypeError` for a result that could not be written down, while its work can still be undone."""
    texts = (result.message, result.status, result.summary_text)
    fits = all(isinstance(text, str) for text in texts) and isinstance(result.error_code, str | None)
    if not fits or not isinstance(result.success, bool):
        raise TypeError(
            f"the handler of {tool.name!r} gave a ToolResult of wrong types; let message, status and summary_text be "
            f"text, error_code text or None, and success true or false"
        )


def _cancelling() -> tuple[type[BaseException], ...]:
    """Give what is raised in a call that is cancelled, without importing asyncio for it."""
    asyncio = sys.modules.get("asyncio")
    return (TransactionCancelled,) if asyncio is None else (TransactionCancelled, asyncio.CancelledError)


@define(eq=False)
class Call:
    """One call. `tool` is what answers to `name`, or the error that says why nothing does."""

    session: Session
    tool: Tool | ValueError
    name: str
    arguments: Mapping[str, object]
    call_id: str
    caller: str | None
    context: ToolContext
    # What the calls of the toolset have seen and changed, of the files as they are without a guard.
    readings: Readings | None
    files: Filesystem
    started_at: int
    # As they were when the call began.
    recorded_arguments: str | bytes
    # How many records it made, after record `base` of the line that it saw.
    _base: int = 0
    _made: int = 0
    # How many changes others had made when it began, and what takes back that it made some.
    _version: int = 0
    _take_back: Callable[[], None] | None = None
    _written_down: bool = False

    @property
    def cancellation(self) -> Cancellation:
        """What ends the call from outside."""
        return self.context.cancellation

    def steps(self) -> Steps:
        """Make the call; only what is a fault of a program is raised, after it was undone and written down."""
        try:
            result = yield from self._answered()
        except BaseException as error:
            code = "cancelled" if isinstance(error, _cancelling()) else "internal_error"
            # A session that is closed, or waits to be repaired, takes no record; the error itself matters more.
            with suppress(SessionError):
                self.write_down(failed(Receipt, "error", code, f"{type(error).__name__}: {error}"))
            raise
        self.write_down(result)
        return result

    def _answered(self) -> Steps:
        tool = self.tool
        try:
            # What could not be written down is not done.
            self.session.check_writable()
            if isinstance(tool, ValueError):
                raise tool
            params = tool.read_arguments(self.arguments)
            if self.readings is not None:
                self._version = self.readings.version
            if tool.read_only:
                result = yield from self._invoked(tool, params)
                self._look(tool, result)
                return result
            return (yield from self._undoable(tool, params))
        except TransactionCancelled:
            raise
        except ANSWERED as error:
            status, code = classify(error)
            kind = tool.receipt if isinstance(tool, Tool) else Receipt
            message = f"cannot call {self.name}: {error}" if code == "invalid_arguments" else self._told(error)
            reason = error.reason if isinstance(error, PolicyDenied) else None
            return failed(kind, status, code, message or type(error).__name__, reason=reason)

    def _told(self, error: Exception) -> str:
        """Give the message of an error, with the path that may be meant where there is nothing at the one given."""
        fs, absence = self.context.filesystem, absence_in(error)
        return str(error) if fs is None or absence is None else with_proposal(fs, absence)

    def _undoable(self, tool: Tool, params: object) -> Steps:
        try:
            with self.session.transaction(cause=self.call_id, cancellation=self.cancellation, shared=True):
                self._base = self.session.seq
                try:
                    self._check_stale(tool, params)
                    result = yield from self._invoked(tool, params)
                finally:
                    with suppress(TransactionCancelled):
                        self._made = self.session.seq - self._base
                if not result.success:
                    raise _Undone(result)
                self._tell_changes()
        except BaseException as error:
            if self._take_back is not None:
                self._take_back()
            # What was done stays in the records, and the rollback that undid it follows.
            self._made += self._made > 0
            if isinstance(error, _Undone):
                return error.result
            raise
        return result

    def _invoked(self, tool: Tool, params: object) -> Steps:
        context = self.context
        context.check_deadline()
        result = yield params, context
        if not isinstance(result, ToolResult):
            raise TypeError(f"the handler of {tool.name!r} gave a {type(result).__name__}; let it return a ToolResult")
        _check(tool, result)
        if result.success:
            context.check_deadline()
        return result

    def _look(self, tool: Tool, result: ToolResult[object]) -> None:
        """Remember what the caller has read."""
        path = getattr(result.value, "path", None)
        if self.readings is not None and tool.operation == "read" and result.success and path:
            self.readings.saw(self.caller, path, self.files, version=self._version)

    def _check_stale(self, tool: Tool, params: object) -> None:
        readings, files = self.readings, self.files
        if readings is None or tool.targets is None or not readings.has_others(self.caller):
            return
        for target in tool.targets(params, self.context):
            try:
                # By the path to which links lead.
                path = files.read_bytes(target, limit=0).path
            except (OSError, ValueError):
                with suppress(OSError, ValueError):
                    # There is none any more, or it is no file.
                    readings.check(self.caller, normalize(target), files, may_show=False)
            else:
                readings.check(self.caller, path, files, may_show=may_show(self.context.filesystem, path))

    def _tell_changes(self) -> None:
        """Remember what the call has changed, before anybody can see it."""
        if self.readings is not None and self._made:
            records = self.session.records.since(self._base)
            self._take_back = self.readings.changed(
                self.caller, self.call_id, records, self.files, version=self._version
            )

    def write_down(self, result: ToolResult[object]) -> None:
        """Record the call and its answer, unless that was done; a session that is closed takes no record."""
        with self.session.lock:
            if self._written_down:
                return
            self._written_down = True
        first, last = self._numbers()
        event = ToolCall(
            self.call_id,
            self.name,
            self.recorded_arguments,
            recorded(result.value),
            one_line(result.status),
            result.error_code,
            one_line(result.summary_text),
            None if self.caller is None else one_line(self.caller),
            self.started_at,
            self.session.now(),
            first,
            last,
        )
        try:
            self.session.dispatch(event, cause=self.call_id)
        except TransactionCancelled:
            raise
        except SessionClosed:
            # The caller gets the answer all the same.
            return

    def _numbers(self) -> tuple[int | None, int | None]:
        """Find the numbers of the call's records: where it left off, or behind the merge with what others did."""
        if not self._made:
            return None, None
        first = self._base + 1
        if self.session.seq > self._base + self._made:
            for record in self.session.records.since(self._base):
                event = record.event
                mine = isinstance(event, Merged) and record.cause == self.call_id and event.base == self._base
                if mine and event.count == self._made:
                    first = record.seq + 1
                    break
        return first, first + self._made - 1
