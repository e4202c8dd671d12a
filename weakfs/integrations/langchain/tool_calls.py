"""LangChain tools as calls of a session: the changes of a tool that fails are undone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, cast

from attrs import field
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.errors import GraphBubbleUp, ParentCommand
from langgraph.types import Command, Interrupt

from weakfs.backends import InMemoryFilesystem
from weakfs.class_decorators import define
from weakfs.filesystem import SupportsCheckout
from weakfs.integrations.langchain.checkpoint_records import INTERRUPTED
from weakfs.messages import clip
from weakfs.session import Session
from weakfs.tools import Receipt, ToolContext, ToolResult, Toolset
from weakfs.tools.calls.external_call import AnyArguments, ExternalTool
from weakfs.tools.permissions.guard import guard_of
from weakfs.tools.results import answer, failed, summarize

# The answer of a tool: a message, a command, or several of them.
Answer = Any

# The maximum length of a recorded answer, in characters.
MAX_MESSAGE = 2000

# The tools inside which this code runs, innermost last.
_works: ContextVar[tuple[Work, ...]] = ContextVar("weakfs_langchain_works", default=())


@define(eq=False)
class Work:
    """The run of a LangChain tool in one call of a session, and how it ended."""

    session: Session
    perform: Callable[[], Any] = field(repr=False)
    # The namespace in which LangGraph stores the checkpoints of graphs inside the tool.
    namespace: str
    answer: Answer = None
    error: Exception | None = None
    # Whether an agent inside the tool works on the same session.
    has_agent: bool = False

    def ended(self, given: Answer) -> ToolResult[object]:
        """Store the answer of the tool, and return the answer of the call."""
        self.answer = given
        messages = messages_of(given)
        text = "\n".join(clip(message.text, MAX_MESSAGE) for message in messages) or "done"
        if any(message.status == "error" for message in messages):
            return failed(Receipt, "error", "tool_failed", text)
        return answer(Receipt(summary_text=summarize(text)), text)

    def raised(self, error: Exception) -> ToolResult[object]:
        """Store the error of the tool, and return the answer of the call."""
        self.error = error
        if not isinstance(error, GraphBubbleUp):
            return failed(Receipt, "error", "tool_failed", f"{type(error).__name__}: {error}")
        if isinstance(error, ParentCommand):
            return answer(Receipt(summary_text="the tool handed over to the graph around it"))
        if self.has_agent or self._is_of_graph(error):
            # An agent inside the tool will continue where it was, with the files as they are.
            return answer(Receipt(summary_text="the tool was interrupted", error_code=INTERRUPTED))
        # The tool will run again from its beginning when the graph continues.
        return failed(Receipt, "error", INTERRUPTED, "the tool was interrupted")

    def _is_of_graph(self, error: GraphBubbleUp) -> bool:
        """Return whether a graph inside the tool was interrupted, rather than the tool itself."""
        interrupts = cast("Sequence[Interrupt]", error.args[0] if error.args else ())
        return any(one.id != Interrupt.from_ns(None, self.namespace).id for one in interrupts)


def outer_work(session: Session) -> Work | None:
    """Return the innermost tool of a session inside which this code runs."""
    return next((work for work in reversed(_works.get()) if work.session is session), None)


def messages_of(given: Answer) -> list[ToolMessage]:
    """Return the messages in the answer of a tool."""
    found: list[BaseMessage] = []
    for one in cast("list[object]", given) if isinstance(given, list) else [given]:
        if isinstance(one, BaseMessage):
            found.append(one)
        elif isinstance(one, Command) and isinstance(one.update, dict):
            messages = cast("dict[str, object]", one.update).get("messages")
            found += [each for each in cast("list[object]", messages or []) if isinstance(each, BaseMessage)]
    return [one for one in found if isinstance(one, ToolMessage)]


def _handle(params: object, *, context: ToolContext) -> ToolResult[object]:
    work: Work = context.adapter  # type: ignore[assignment]  # this module makes every such call
    with _part_of(work), _judged(context):
        try:
            given = work.perform()
        except Exception as error:
            return work.raised(error)
        return work.ended(given)


async def _ahandle(params: object, *, context: ToolContext) -> ToolResult[object]:
    work: Work = context.adapter  # type: ignore[assignment]  # this module makes every such call
    with _part_of(work), _judged(context):
        try:
            given = await cast("Awaitable[Any]", work.perform())
        except Exception as error:
            return work.raised(error)
        return work.ended(given)


def _judged(context: ToolContext) -> AbstractContextManager[object]:
    """Judge what a tool changed in the session's own files; others are judged by their scan."""
    guard = guard_of(context.filesystem)
    return nullcontext() if guard is None else guard.judging_own_files()


@contextmanager
def _part_of(work: Work) -> Iterator[None]:
    token = _works.set((*_works.get(), work))
    try:
        yield
    finally:
        _works.reset(token)


class ForeignCalls:
    """Makes calls of tools that know nothing about the session.

    If the files are in memory, such a tool can only change them through the session's filesystem. Other files are
    scanned before and after it, so that changes by programs are part of the call too.
    """

    def __init__(self, toolset: Toolset) -> None:
        files = toolset.filesystem
        self.is_in_memory = type(getattr(files, "files", files)) is InMemoryFilesystem
        scans = not self.is_in_memory and isinstance(files, SupportsCheckout)
        self._toolset = toolset
        self._tool, self._async_tool = (
            ExternalTool("langchain_tool", "A tool of LangChain.", AnyArguments, handler, runs_programs=scans)
            for handler in (_handle, _ahandle)
        )

    def call(
        self, name: str, arguments: Mapping[str, object], *, call_id: str, caller: str, work: Work
    ) -> ToolResult[object]:
        """Run a tool as one call, and return the answer of the call; `work` has the answer of the tool."""
        runtime = (None, None, work, None)
        return self._toolset._call(name, arguments, call_id, caller, None, None, runtime, external=self._tool).perform()

    async def acall(
        self, name: str, arguments: Mapping[str, object], *, call_id: str, caller: str, work: Work
    ) -> ToolResult[object]:
        """Await a tool as one call, as `call` runs one; if the task is cancelled, the tool's changes are undone."""
        runtime = (None, None, work, None)
        made = self._toolset._call(name, arguments, call_id, caller, None, None, runtime, external=self._async_tool)
        return await made.aperform()
