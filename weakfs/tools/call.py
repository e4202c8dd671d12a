"""One call, step by step: checked, run in a transaction, undone if it fails, and recorded once.

The caller of `steps` runs the handler: directly, or awaited.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import suppress
from typing import cast

from attrs import define, evolve, field

from weakfs.filesystem import Filesystem, normalize
from weakfs.filesystem.errors import absence_in
from weakfs.filesystem.missing_path import with_proposal
from weakfs.messages import one_line
from weakfs.session import (
    Cancellation,
    MergeConflict,
    Merged,
    Session,
    SessionClosed,
    SessionError,
    TransactionCancelled,
)
from weakfs.session.external import INEXACT
from weakfs.session.interruption import interruptible
from weakfs.tools.call_json import recorded
from weakfs.tools.context import ToolContext
from weakfs.tools.errors import ANSWERED, PolicyDenied, ToolValidationError, classify
from weakfs.tools.permissions import CallToJudge, check_call, check_result, may_show
from weakfs.tools.results import Receipt, ToolResult, failed, with_notes
from weakfs.tools.slices import ToolCall
from weakfs.tools.stale_writes import Readings, Version
from weakfs.tools.tool import Tool

# Yields what the handler is called with, once, takes what it gave, and returns the answer.
Steps = Generator[tuple[object, ToolContext], object, ToolResult[object]]


# An answer names so many things that could not be put back as they were.
MAX_NOTES = 20


class _Undone(Exception):
    """Takes a failed result out of its transaction, so that the transaction is rolled back."""

    def __init__(self, result: ToolResult[object]) -> None:
        self.result = result


def _check(tool: Tool, result: ToolResult[object]) -> None:
    """Raise `TypeError` for a result that cannot be recorded, while its work can still be undone."""
    fits = (
        isinstance(result.message, str)
        and isinstance(result.status, str)
        and isinstance(result.summary_text, str)
        and (result.error_code is None or isinstance(result.error_code, str))
        and isinstance(result.success, bool)
    )
    if not fits:
        raise TypeError(
            f"the handler of {tool.name!r} returned a ToolResult with values of wrong types; message, "
            f"status and summary_text must be str, error_code str or None, and success bool"
        )


def _with_inexact(result: ToolResult[object], error: BaseException) -> ToolResult[object]:
    """Return the answer of a call that was undone, with notes on what could not be restored exactly."""
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith(INEXACT)]
    if not notes:
        return result
    return evolve(result, message=with_notes(result.message, notes[:MAX_NOTES]))


def _cancelling() -> tuple[type[BaseException], ...]:
    """Return the exceptions of a cancelled call, without importing asyncio."""
    asyncio = sys.modules.get("asyncio")
    return (TransactionCancelled,) if asyncio is None else (TransactionCancelled, asyncio.CancelledError)


@define(eq=False)
class Call:
    """One call. `tool` is the tool called `name`, or the error that says why there is none."""

    session: Session
    tool: Tool | ValueError
    name: str
    # As plain values, or the error that says why there are none.
    arguments: object
    call_id: str
    caller: str | None
    context: ToolContext
    # What the calls of the toolset have seen and changed, of the files as they are without a guard.
    readings: Readings | None
    require_read: bool
    files: Filesystem
    started_at: int
    # As they were when the call began.
    recorded_arguments: str | bytes
    # How many records it made, after record `base` of the line that it saw.
    _base: int = 0
    _made: int = 0
    # What its caller saw: the versions of files, after record `_seen_after`.
    _seen: dict[str, Version] = field(factory=dict[str, "Version"])
    _seen_after: int = 0
    _written_down: bool = False
    # What the policy was shown of it.
    _params: object = None
    _is_judged: bool = False

    @property
    def cancellation(self) -> Cancellation:
        """What ends the call from outside."""
        return self.context.cancellation

    def steps(self) -> Steps:
        """Make the call; only bugs are raised, after the call was undone and recorded."""
        try:
            with interruptible(self.context.check_deadline):
                result = yield from self._answered()
            if not result.success:
                result = self._shown_to_policy(result)
        except BaseException as error:
            code = "cancelled" if isinstance(error, _cancelling()) else "internal_error"
            # A session that is closed, or waits to be repaired, takes no record; the error itself matters more.
            with suppress(SessionError):
                self.write_down(failed(Receipt, "error", code, f"{type(error).__name__}: {error}"))
            raise
        self.write_down(result)
        if self.readings is not None and result.success:
            for path, version in self._seen.items():
                self.readings.saw(self.caller, path, version, seq=self._seen_after, call_id=self.call_id)
        return result

    def _answered(self) -> Steps:
        tool = self.tool
        try:
            # What could not be written down is not done.
            self.session._check_writable()
            if isinstance(tool, ValueError):
                raise tool
            if isinstance(self.arguments, ToolValidationError):
                raise self.arguments
            params = self._params = tool.read_arguments(self.arguments)
            self._seen_after = self.session.seq
            if tool.read_only:
                # Before the file is read: what another changes meanwhile may not have been seen.
                path, readings = getattr(params, "path", None), self.readings
                version: Version = None
                if readings is not None and tool.operation == "read" and isinstance(path, str):
                    version = readings.version(self.caller, path)
                self._allow(tool, params)
                result = self._checked(tool, (yield params, self.context))
                self._look(tool, result, version)
                return result
            return (yield from self._undoable(tool, params))
        except TransactionCancelled:
            raise
        except ANSWERED as error:
            status, code = classify(error)
            kind = tool.receipt if isinstance(tool, Tool) else Receipt
            message = f"cannot call {self.name}: {error}" if code == "invalid_arguments" else self._told(error)
            reason = error.reason if isinstance(error, PolicyDenied) else None
            return _with_inexact(failed(kind, status, code, message or type(error).__name__, reason=reason), error)

    def _told(self, error: Exception) -> str:
        """Return the message of an error, with the path that may be meant if there is nothing at the given one.

        A conflict shows no contents that the policy withholds.
        """
        fs, absence = self.context.filesystem, absence_in(error)
        if isinstance(error, MergeConflict):
            return error.described(ours="now", theirs="this call", may_show=lambda path: may_show(fs, path))
        return str(error) if fs is None or absence is None else with_proposal(fs, absence)

    def _undoable(self, tool: Tool, params: object) -> Steps:
        try:
            with self.session.transaction(cause=self.call_id, cancellation=self.cancellation, shared=True):
                self._base = self.session.seq
                try:
                    self._check_stale(tool, params)
                    self._allow(tool, params)
                    result = self._checked(tool, (yield params, self.context))
                finally:
                    with suppress(TransactionCancelled):
                        self._made = self.session.seq - self._base
                if not result.success:
                    raise _Undone(result)
                self._tell_changes()
        except BaseException as error:
            # What was done stays in the records, and the rollback that undid it follows.
            self._made += self._made > 0
            if isinstance(error, _Undone):
                return _with_inexact(error.result, error)
            raise
        return result

    def _allow(self, tool: Tool, params: object) -> None:
        """Raise if the policy refuses the call, or it has timed out."""
        if self.context.policy is not None:
            check_call(self.context.policy, self._to_judge(tool, params), self.context)
        self.context.check_deadline()

    def _checked(self, tool: Tool, result: object) -> ToolResult[object]:
        """Return the handler's result if it can be recorded, the call has not timed out and the policy allows it."""
        if not isinstance(result, ToolResult):
            raise TypeError(f"the handler of {tool.name!r} returned a {type(result).__name__}; return a ToolResult")
        done = cast("ToolResult[object]", result)
        _check(tool, done)
        if done.success:
            self.context.check_deadline()
            if self.context.policy is not None:
                check_result(self.context.policy, self._to_judge(tool, self._params), done, self.context)
                self._is_judged = True
        return done

    def _to_judge(self, tool: Tool, params: object) -> CallToJudge:
        return CallToJudge(self.name, params, tool.operation, self.call_id, self.caller, self.recorded_arguments)

    def _shown_to_policy(self, result: ToolResult[object]) -> ToolResult[object]:
        """Show the policy a call that failed; it stays failed whatever the policy says."""
        policy, tool = self.context.policy, self.tool
        if policy is None or self._is_judged or not isinstance(tool, Tool):
            return result
        try:
            check_result(policy, self._to_judge(tool, self._params), result, self.context)
        except PolicyDenied as error:
            message = f"{result.message}\n{error}"
            return failed(tool.receipt, result.status, result.error_code or "error", message, reason=error.reason)
        return result

    def _look(self, tool: Tool, result: ToolResult[object], version: Version) -> None:
        """Remember what the caller has read."""
        path = getattr(result.value, "path", None)
        if tool.operation == "read" and isinstance(path, str) and path:
            self._seen[path] = version

    def _check_stale(self, tool: Tool, params: object) -> None:
        readings, files = self.readings, self.files
        if readings is None or tool.targets is None or not readings.matter_to(self.caller):
            return
        for target in tool.targets(params, self.context):
            try:
                # By the path to which links lead.
                path = files.read_bytes(target, limit=0).path
            except (OSError, ValueError):
                with suppress(OSError, ValueError):
                    # It does not exist any more, or is not a file.
                    readings.check(self.caller, normalize(target), may_show=False)
            else:
                if self.require_read:
                    readings.check_was_read(self.caller, path)
                readings.check(self.caller, path, may_show=may_show(self.context.filesystem, path))

    def _tell_changes(self) -> None:
        """Remember what the call left in the files that it changed, without the changes of others."""
        if self.readings is not None and self._made:
            self._seen = self.readings.changed(self.caller, self.session._rows_since(self._base))

    def write_down(self, result: ToolResult[object]) -> None:
        """Record the call and its answer, unless that was done; a closed session takes no record."""
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
            self.session._dispatch(event, self.call_id)
        except TransactionCancelled:
            raise
        except SessionClosed:
            # The caller gets the answer all the same.
            return

    def _numbers(self) -> tuple[int | None, int | None]:
        """Find the numbers of the call's records: where it began, or after the merge with the changes of others."""
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
