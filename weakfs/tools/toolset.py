"""A toolset: calls in, answers out; what fails is undone, and every call is written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches

from attrs import define

from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Filesystem, Limits
from weakfs.session import Merged, Session, SessionError
from weakfs.tools.context import ToolContext, build_tool_context
from weakfs.tools.defaults import DEFAULT_TOOLS
from weakfs.tools.errors import ANSWERED, UnknownTool, classify
from weakfs.tools.recording import recorded
from weakfs.tools.results import Receipt, ToolResult, clip, failed, one_line
from weakfs.tools.slice import ToolCall, install
from weakfs.tools.tool import Tool


class _Undone(Exception):
    """Takes a failed result out of its transaction, so that the transaction is rolled back."""

    def __init__(self, result: ToolResult[object]) -> None:
        self.result = result


@define
class _Extent:
    """Which records a call made: how many, after record `base` of the line that it saw."""

    base: int = 0
    made: int = 0


class Toolset:
    """Tools over one session, called by name with plain JSON.

    Without a filesystem the session's own files in memory are used, under `limits`. A filesystem that is
    given keeps its own limits; `limits` then bounds only what an answer holds. Any number of threads may call at
    once: each call works on its own, and one that clashes with what another finished meanwhile is a `conflict`.
    """

    def __init__(
        self,
        session: Session,
        filesystem: Filesystem | None = None,
        *,
        tools: Iterable[Tool] = DEFAULT_TOOLS,
        limits: Limits = Limits.tools(),  # noqa: B008  # frozen
    ) -> None:
        files: Filesystem = InMemoryFilesystem(session, limits=limits) if filesystem is None else filesystem
        owner = getattr(files, "session", session)
        if isinstance(owner, Session) and owner is not session:
            raise ValueError(
                f"cannot use a filesystem of session {owner.session_id!r} with session {session.session_id!r}: a call "
                f"that fails could not be undone; pass the session that the filesystem was made with"
            )
        self.session = session
        self.filesystem = files
        self.limits = limits
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"cannot have two tools named {tool.name!r}; give one of them another name")
            self._tools[tool.name] = tool
        install(session)

    def __repr__(self) -> str:
        return f"<Toolset of {self.session!r}: {', '.join(self._tools)}>"

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that can be called, in the order in which they were given."""
        return tuple(self._tools.values())

    def call(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        call_id: str | None = None,
        caller: str | None = None,
        deadline: int | None = None,
    ) -> ToolResult[object]:
        """Make one call and give its answer; a failure is an answer too, and has changed nothing.

        `call_id` is the cause of every record that the call makes, `caller` whoever made it, `deadline` a
        reading of the session's clock in nanoseconds. Only what is no failure of the call but a fault of a
        program is raised, after it was rolled back and recorded.
        """
        for what, text in (("call_id", call_id), ("caller", caller)):
            if text is not None and not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{what} is {text!r}; give text, or leave it out")
        started_at = self.session.now()
        name = one_line(clip(name, 100)) if isinstance(name, str) else repr(name)  # pyright: ignore[reportUnnecessaryIsInstance]
        call_id = self.session.next_id("call") if call_id is None else one_line(call_id)
        extent = _Extent()

        def record(result: ToolResult[object]) -> None:
            first, last = self._numbers_of(extent, call_id)
            event = ToolCall(
                call_id,
                name,
                recorded(arguments),
                recorded(result.value),
                one_line(result.status),
                result.error_code,
                one_line(result.summary_text),
                None if caller is None else one_line(caller),
                started_at,
                self.session.now(),
                first,
                last,
            )
            self.session.dispatch(event, cause=call_id)

        try:
            result = self._answer(name, arguments, call_id, deadline, extent)
        except BaseException as error:
            # A session that is closed, or waits to be repaired, takes no record; the error itself matters more.
            with suppress(SessionError):
                record(failed(Receipt, "error", "internal_error", f"{type(error).__name__}: {error}"))
            raise
        record(result)
        return result

    def _answer(
        self, name: str, arguments: object, call_id: str, deadline: int | None, extent: _Extent
    ) -> ToolResult[object]:
        tool = self._tools.get(name)
        try:
            if tool is None:
                raise self._unknown(name)
            params = tool.read_arguments(arguments)
            context = build_tool_context(
                session=self.session, filesystem=self.filesystem, limits=self.limits, deadline=deadline
            )
            if tool.read_only:
                return _invoke(tool, params, context)
            return self._run(tool, params, context, call_id, extent)
        except ANSWERED as error:
            status, code = classify(error)
            kind = Receipt if tool is None else tool.receipt
            message = f"cannot call {name}: {error}" if code == "invalid_arguments" else str(error)
            return failed(kind, status, code, message or type(error).__name__)

    def _run(
        self, tool: Tool, params: object, context: ToolContext, call_id: str, extent: _Extent
    ) -> ToolResult[object]:
        try:
            with self.session.transaction(cause=call_id):
                extent.base = self.session.seq
                try:
                    result = _invoke(tool, params, context)
                finally:
                    extent.made = self.session.seq - extent.base
                if not result.success:
                    raise _Undone(result)
        except BaseException as error:
            # What was done stays in the records, and the rollback that undid it follows.
            extent.made += extent.made > 0
            if isinstance(error, _Undone):
                return error.result
            raise
        return result

    def _unknown(self, name: str) -> UnknownTool:
        near = get_close_matches(name, self._tools, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        return UnknownTool(f"there is no tool {name!r}; {hint}there are {', '.join(self._tools)}")

    def _numbers_of(self, extent: _Extent, call_id: str) -> tuple[int | None, int | None]:
        """Find the numbers of a call's records: where it left off, or behind the merge with what others did."""
        if not extent.made:
            return None, None
        first = extent.base + 1
        if self.session.seq > extent.base + extent.made:
            for record in self.session.records.since(extent.base):
                event = record.event
                mine = isinstance(event, Merged) and record.cause == call_id and event.base == extent.base
                if mine and event.count == extent.made:
                    first = record.seq + 1
                    break
        return first, first + extent.made - 1


def _invoke(tool: Tool, params: object, context: ToolContext) -> ToolResult[object]:
    context.check_deadline()
    result = tool.handler(params, context=context)
    if not isinstance(result, ToolResult):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"the handler of {tool.name!r} gave a {type(result).__name__}; let it return a ToolResult")
    if result.success:
        context.check_deadline()
    return result
