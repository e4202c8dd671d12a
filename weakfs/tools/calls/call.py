"""One call: checked, run in a transaction, undone if it fails, and recorded once."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, cast

from weakfs.class_decorators import define
from weakfs.messages import one_line
from weakfs.session import (
    Cancellation,
    MergeConflict,
    Merged,
    MissingBlob,
    RolledBack,
    Session,
    SessionClosed,
    SessionConflict,
    SessionError,
    TransactionBlock,
    TransactionCancelled,
)
from weakfs.session.current_timeline import Transaction
from weakfs.session.errors import RecordsDropped
from weakfs.session.history.reduction import event_of
from weakfs.session.history.timeline import Timeline
from weakfs.session.interruption import interruptible
from weakfs.tools.calls.answers import answer_to_error, valid_result, with_inexact, with_lost
from weakfs.tools.calls.call_json import recorded
from weakfs.tools.calls.call_versions import CallVersions
from weakfs.tools.calls.finished_calls import FinishedCalls, recorded_answer
from weakfs.tools.calls.steps import Step, Steps, arun, run
from weakfs.tools.calls.threads import in_thread
from weakfs.tools.context import ToolContext
from weakfs.tools.errors import ANSWERED, PolicyDenied, ToolValidationError
from weakfs.tools.results import Receipt, ToolResult, Undone, failed
from weakfs.tools.slices import ToolCall
from weakfs.tools.tool import Tool

if TYPE_CHECKING:
    from weakfs.tools.policy import CallToJudge, Policy


class _Repeated(Exception):
    """The call was made before, perhaps by a process that died before it learned the outcome."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call


def _cancelling() -> tuple[type[BaseException], ...]:
    """Return the exceptions of a cancelled call, without importing asyncio."""
    asyncio = sys.modules.get("asyncio")
    return (TransactionCancelled,) if asyncio is None else (TransactionCancelled, asyncio.CancelledError)


@define(eq=False)
class Call:
    """One call. `tool` is the tool called `name`, or the error if there is no such tool."""

    session: Session
    tool: Tool | ValueError
    # The class of the receipt if the call fails.
    receipt: type[Receipt]
    name: str
    # As plain values, or the error if they cannot be converted.
    arguments: object
    call_id: str
    caller: str | None
    context: ToolContext
    # The versions of files that it sees, if the toolset refuses stale writes.
    versions: CallVersions | None
    started_at: int
    # Recorded as they were when the call began: a handler may change mutable arguments.
    recorded_arguments: str | bytes
    # The calls that were made before; `None` if this one cannot be a repetition.
    finished: FinishedCalls | None = None
    # The transaction in which the call runs, if it needs one.
    _block: TransactionBlock[Session] | None = None
    _own: Transaction | None = None
    _calls_before: int = 0
    # Whether the handler has succeeded, so that the commit is next.
    _is_ending: bool = False
    _in_thread: bool = False
    # The call made `_records_made` records after record `_base` of the timeline that it saw.
    _base: int = 0
    _records_made: int = 0
    _is_counted: bool = True
    # How many times the session had read the changes of other processes when the call began.
    _times_caught_up: int = 0
    _written_down: bool = False
    # Whether the record of the call is committed together with its changes.
    _is_concluded: bool = False
    # The parameters that the policy sees, and whether it has judged the call.
    _params: object = None
    _is_judged: bool = False

    @property
    def cancellation(self) -> Cancellation:
        """The object that cancels the call from another thread or task."""
        return self.context.cancellation

    def perform(self) -> ToolResult[object]:
        """Make the call. Raises only exceptions that are bugs, after the call has been undone and recorded."""
        return run(self._steps())

    async def aperform(self, *, in_thread: bool = False) -> ToolResult[object]:
        """Make the call as `perform` does, but await a handler that is a coroutine function, and the commit if need be.

        Any other handler runs in this task, or `in_thread`.
        """
        self._in_thread = in_thread
        return await arun(self._steps())

    def _steps(self) -> Steps[ToolResult[object]]:
        try:
            with interruptible(self.context.check_deadline):
                try:
                    self._begin()
                    if self.finished is not None:
                        yield self._check_repeated, self._acheck_repeated
                    result = self._ended((yield self._handle, self._ahandle))
                    if self._block is not None:
                        yield self._end_of(self._block, None)
                except GeneratorExit as error:
                    # The handler raised it, or its coroutine was closed: nothing can be awaited any more.
                    if self.session._awaits_commits:
                        raise
                    result = run(self._undo(error))
                except BaseException as error:
                    result = yield from self._undo(error)
            if not result.success:
                result = self._shown_to_policy(result)
        except GeneratorExit as error:
            if not self.session._awaits_commits:
                run(self._write_down_fault(error))
            raise
        except BaseException as error:
            yield from self._write_down_fault(error)
            raise
        yield from self._write_down(result)
        if self.versions is not None and result.success:
            self.versions.remember()
        return result

    def _begin(self) -> None:
        """Check the call and begin its transaction, if it needs one."""
        tool, session = self.tool, self.session
        # A call that could not be recorded is not made.
        session._check_writable()
        if isinstance(tool, ValueError):
            raise tool
        if isinstance(self.arguments, ToolValidationError):
            raise self.arguments
        self._params = tool.read_arguments(self.arguments)
        if self.versions is not None:
            self.versions.seq = session.seq
        self._times_caught_up = session._times_caught_up
        if tool.read_only:
            self.finished = None
        if self.finished is not None:
            self._calls_before = self.finished.count()
        # A read-only tool adds records too. If commits are awaited, a transaction adds them all in one commit.
        if not tool.read_only or session._awaits_commits:
            self._block = block = session.transaction(cause=self.call_id, cancellation=self.cancellation, shared=True)
            block.__enter__()
            self._own = block._own
            self._base = session.seq
            self._is_counted = False

    def _check_repeated(self) -> None:
        if self.finished is not None:
            done = self.finished.find(self.call_id, self.name, self.recorded_arguments)
            if done is not None:
                raise _Repeated(done)

    async def _acheck_repeated(self) -> None:
        import asyncio

        if self.session._needs_no_thread:
            self._check_repeated()
        else:
            await asyncio.to_thread(self._check_repeated)

    def _prepare(self) -> Tool:
        """Make the checks that come before the handler: stale writes, the policy and the deadline."""
        tool, params = cast(Tool, self.tool), self._params
        if self.versions is not None:
            self.versions.check(tool, params, self.context)
        self._allow(tool, params)
        return tool

    def _handle(self) -> object:
        tool = self._prepare()
        if tool.runs_programs:
            from weakfs.tools.calls.program_call import run_handler

            return run_handler(tool, self._params, self.context, partial(self._checked, tool))
        return tool.handler(self._params, context=self.context)

    async def _ahandle(self) -> object:
        tool = cast(Tool, self.tool)
        if tool.is_async:
            prepared = self._prepare()
            if prepared.runs_programs:
                from weakfs.tools.calls.program_call import await_handler

                return await await_handler(prepared, self._params, self.context, partial(self._checked, prepared))
            handler = cast("Callable[..., Awaitable[object]]", prepared.handler)
            return await handler(self._params, context=self.context)
        if not self._in_thread:
            return self._handle()
        return await in_thread(self._handle, lambda: self.cancellation.cancel("the call was cancelled"))

    def _ended(self, given: object) -> ToolResult[object]:
        """Check what the handler returned, and prepare the end of the transaction."""
        tool = cast(Tool, self.tool)
        result = self._checked(tool, given)
        if tool.read_only and self.versions is not None:
            self.versions.add_read(tool, result)
        if self._block is None:
            return result
        self._count_records()
        if not result.success:
            raise Undone(result)
        if not tool.read_only:
            result = with_lost(result, self._own, self.context.filesystem)
            if self.versions is not None and self._records_made:
                self.versions.add_changes(self.session._rows_since(self._base))
        self.session._conclude(partial(self._final_events, result))
        self._is_ending = True
        return result

    def _end_of(self, block: TransactionBlock[Session], error: BaseException | None) -> Step:
        given = (None, None, None) if error is None else (type(error), error, error.__traceback__)
        return lambda: block.__exit__(*given), lambda: block.__aexit__(*given)

    def _undo(self, error: BaseException) -> Steps[ToolResult[object]]:
        """Undo what was done before an error, and return the answer to the call; raise the error if it is a bug."""
        if self._block is not None:
            self._count_records()
            try:
                # Does nothing if the error is that the transaction could not be merged.
                yield self._end_of(self._block, error)
            except BaseException as failure:
                error = failure
            if self._is_concluded and not self.is_committed:
                # The commit failed, and it included the record of the call.
                self._is_concluded = self._written_down = False
            # The records of the call remain, followed by that of the rollback.
            self._records_made += self._records_made > 0
        if isinstance(error, Undone):
            return with_inexact(error.result, error, self.context.filesystem)
        if isinstance(error, (MergeConflict, SessionConflict)):
            # The call may conflict with the same call made by another process: what others stored is known only now.
            try:
                self._check_repeated()
            except _Repeated as repeated:
                error = repeated
        if isinstance(error, _Repeated):
            self._written_down = True
            return recorded_answer(error.call, self.receipt)
        if isinstance(error, StopIteration):
            # A StopIteration would silently end a loop in the caller; generators convert it for the same reason.
            raise RuntimeError(f"the handler of {self.name!r} raised StopIteration") from error
        if isinstance(error, (RecordsDropped, MissingBlob)) and self.session._has_caught_up(self._times_caught_up):
            message = (
                f"cannot call {self.name}: another process has changed the files; read them again, and repeat the call"
            )
            return failed(self.receipt, "conflict", "merge_conflict", message)
        if isinstance(error, TransactionCancelled) or not isinstance(error, ANSWERED):
            raise error
        return answer_to_error(error, self.name, self.receipt, self.context.filesystem)

    @property
    def is_committed(self) -> bool:
        """Whether the changes are in the session's storage, even if the call was cancelled afterwards."""
        return self._own is not None and self._own.is_stored

    def _count_records(self) -> None:
        """Count the records of the call when its transaction ends, but only once."""
        if not self._is_counted:
            self._is_counted = True
            with suppress(TransactionCancelled):
                self._records_made = self.session.seq - self._base

    def _write_down_fault(self, error: BaseException) -> Steps[None]:
        is_cancelled = isinstance(error, _cancelling())
        if is_cancelled and self._is_ending and self.session._awaits_commits:
            # The call was cancelled while its commit was awaited: storage has both the changes and the record, or
            # neither.
            return
        result = failed(
            Receipt, "error", "cancelled" if is_cancelled else "internal_error", f"{type(error).__name__}: {error}"
        )
        # A session that is closed or needs a repair accepts no record; the error itself matters more.
        with suppress(SessionError):
            if is_cancelled and self.session._awaits_commits:
                # A cancellation must not wait for the storage.
                self._written_down = True
                self.session._dispatch_soon(partial(self._records, result))
            else:
                yield from self._write_down(result)

    def _allow(self, tool: Tool, params: object) -> None:
        """Raise if the policy refuses the call, or if the call has timed out."""
        if (policy := self._policy) is not None:
            policy._judge_call(self._to_judge(tool, params), self.context)
        self.context.check_deadline()

    def _checked(self, tool: Tool, result: object) -> ToolResult[object]:
        """Return the handler's result if it can be recorded, the call has not timed out and the policy allows it."""
        done = valid_result(tool, result)
        if done.success:
            self.context.check_deadline()
            if (policy := self._policy) is not None:
                policy._judge_result(self._to_judge(tool, self._params), done, self.context)
                self._is_judged = True
        return done

    @property
    def _policy(self) -> Policy | None:
        """The policy if it has custom rules, which judge whole calls."""
        policy = self.context.policy
        if policy is None or not policy.has_custom_rules:
            return None
        # Imported here because most calls do not need the class.
        from weakfs.tools.policy import Policy

        return policy if isinstance(policy, Policy) else None

    def _to_judge(self, tool: Tool, params: object) -> CallToJudge:
        from weakfs.tools.policy import CallToJudge

        return CallToJudge(self.name, params, tool.operation, self.call_id, self.caller, self.recorded_arguments)

    def _shown_to_policy(self, result: ToolResult[object]) -> ToolResult[object]:
        """Show the policy a call that has failed; the policy cannot make it succeed."""
        policy, tool = self._policy, self.tool
        if policy is None or self._is_judged or not isinstance(tool, Tool):
            return result
        try:
            policy._judge_result(self._to_judge(tool, self._params), result, self.context)
        except PolicyDenied as error:
            message = f"{result.message}\n{error}"
            return failed(self.receipt, result.status, result.error_code or "error", message, reason=error.reason)
        return result

    def write_down(self, result: ToolResult[object]) -> None:
        """Record the call and its answer, unless that was done already; do nothing if the session is closed."""
        run(self._write_down(result))

    def _write_down(self, result: ToolResult[object]) -> Steps[None]:
        with self.session.lock:
            if self._written_down:
                return
            self._written_down = True
        try:
            records = partial(self._records, result)
            yield partial(self.session._dispatch_all, records), partial(self.session._adispatch_all, records)
        except TransactionCancelled:
            raise
        except SessionClosed:
            # The caller still gets the answer.
            return

    def _final_events(self, result: ToolResult[object], line: Timeline) -> list[tuple[object, str | None]]:
        """Return the events that record the call and what it saw, to be committed with its changes."""
        if self.finished is not None:
            arguments = self.recorded_arguments
            done = self.finished.find_after(line, self._calls_before, self.call_id, self.name, arguments)
            if done is not None:
                raise _Repeated(done)
        self._is_concluded = self._written_down = True
        last = line.seq
        numbers = (last - self._records_made + 1, last) if self._records_made else (None, None)
        return [(self._record(result, *numbers), self.call_id), *self._sightings(result)]

    def _records(self, result: ToolResult[object], line: Timeline) -> list[tuple[object, str | None]]:
        """Return the same events for a call whose changes have already been committed or undone."""
        return [(self._record(result, *self._numbers(line)), self.call_id), *self._sightings(result)]

    def _sightings(self, result: ToolResult[object]) -> list[tuple[object, str | None]]:
        """Return the events that record which versions of files the caller has seen."""
        if self.versions is None or not result.success:
            return []
        return [(seen, self.call_id) for seen in self.versions.events()]

    def _record(self, result: ToolResult[object], first: int | None, last: int | None) -> ToolCall:
        return ToolCall(
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

    def _numbers(self, line: Timeline) -> tuple[int | None, int | None]:
        """Return the numbers of the first and last record of an undone call in a timeline.

        A merge with the changes of others may have moved the records. `None` if they could not be stored.
        """
        made, start = self._records_made, max(self._base, line.dropped)
        if not made:
            return None, None
        with suppress(RecordsDropped, MissingBlob):
            for seq, row in enumerate(line.rows.since(start - line.dropped), start + 1):
                if row[1] != self.call_id:
                    continue
                event = event_of(self.session._rules, row)
                if isinstance(event, RolledBack) and seq == self._base + made:
                    return self._base + 1, seq
                if isinstance(event, Merged) and (event.base, event.count) == (self._base, made):
                    return seq + 1, seq + made
        return None, None
