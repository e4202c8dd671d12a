"""The middleware: each tool call is a transaction of a session, which follows its thread back in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
from langchain.agents.middleware.types import ExtendedModelResponse, ModelCallResult, ModelResponse, ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.types import Command, Overwrite

from weakfs.class_decorators import frozen
from weakfs.integrations.fair_lock import Turns
from weakfs.integrations.langchain.checkpoint_records import (
    POSITION,
    Position,
    Positions,
    PositionState,
    caller_of,
    step_of,
)
from weakfs.integrations.langchain.outer_graph import Ancestor, alineage, is_in_graph, lineage
from weakfs.integrations.langchain.tool_calls import Answer, ForeignCalls, Work, messages_of, outer_work
from weakfs.integrations.langchain.tools import Identity, SessionTool, identity
from weakfs.messages import one_line
from weakfs.session.undo.reversion import Foreign
from weakfs.tools import ToolResult, Toolset

T = TypeVar("T")

ToolHandler = Callable[[ToolCallRequest], Answer]


@frozen
class _Begun:
    """A tool call that is about to be made."""

    name: str
    tool_call_id: str
    call_id: str
    caller: str
    # The position in the state, and whether the session was rolled back to it.
    position: Position | None
    went_back: bool


class SessionMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Make each tool call of an agent a transaction of a session, which follows its thread back in time.

    A tool that fails, raises or is interrupted leaves no changes in the session or in the files of `toolset`; each call
    is recorded and can be undone. This also holds for tools that know nothing about the session. `tools` restricts it
    to the named tools; by default it applies to every tool of the agent. Tools that run at the same time are separate
    transactions. On files outside memory they take turns, because their changes could not be told apart.

    With a checkpointer, the state of the graph holds the number of the session's last record. A run that continues from
    an earlier checkpoint, or from another branch, first rolls the session back to its state at that checkpoint if the
    thread has changed anything since. The rollback is recorded, so that `session.undo()` reverses it, and you can
    return to the branch that was left. In a host directory, changes made by other programs are kept in files that the
    session has not changed since; `foreign` is passed to `Session.rollback`.

    Use a separate session for each thread: going back raises `SessionError` if another thread has changed something
    since. Agents that work on the same session should share one middleware.
    """

    state_schema = PositionState

    def __init__(
        self, toolset: Toolset, *, tools: Collection[BaseTool | str] | None = None, foreign: Foreign | None = None
    ) -> None:
        super().__init__()
        self.tools = []
        self.toolset = toolset
        self._names = None if tools is None else {tool if isinstance(tool, str) else tool.name for tool in tools}
        self._positions = Positions(toolset.session, foreign)
        self._calls = ForeignCalls(toolset)
        self._turns = Turns()

    # Going back in time

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Roll back to the position in the state if the thread has left it, and note where the run begins."""
        info = runtime.execution_info
        return self._begin(state, info, lineage() if self._needs_lineage(info) else None)

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `before_agent` does, without blocking the event loop."""
        info = runtime.execution_info
        ancestors = await alineage() if self._needs_lineage(info) else None
        return await self._in_thread(partial(self._begin, state, info, ancestors))

    def _needs_lineage(self, info: ExecutionInfo | None) -> bool:
        """Return whether the agent is part of a larger graph, whose state has no position."""
        return info is not None and is_in_graph(info) and outer_work(self.toolset.session) is None

    def _begin(
        self, state: AgentState[Any], info: ExecutionInfo | None, ancestors: list[Ancestor] | None
    ) -> dict[str, Any] | None:
        if self._is_inside():
            return None
        position, step = cast("PositionState", state).get("weakfs_position"), step_of(info)
        then = position if step is None or ancestors is None else self._positions.position_of(step, ancestors)
        self._positions.go_back(step, then)
        here = self._positions.here()
        if position == here:
            return None
        # This replaces even a greater position, which belongs to an older session with the same id.
        return {POSITION: Overwrite(here) if position else here}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        """Roll back to the position in the state if the thread has left it, before the model continues from there."""
        went_back = self._goes_back(request)
        return self._with_note(handler(request), went_back)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelCallResult[Any]:
        """Do what `wrap_model_call` does, without blocking the event loop."""
        went_back = await self._in_thread(partial(self._goes_back, request))
        return self._with_note(await handler(request), went_back)

    def _goes_back(self, request: ModelRequest[Any]) -> bool:
        position: Position | None = cast("dict[str, Any]", request.state).get(POSITION)
        info = getattr(request.runtime, "execution_info", None)
        return not self._is_inside() and self._positions.go_back(step_of(info), position)

    def _with_note(self, given: Any, went_back: bool) -> ModelCallResult[Any]:
        if not went_back:
            return cast("ModelCallResult[Any]", given)
        response = ModelResponse(result=[given]) if isinstance(given, AIMessage) else given
        return ExtendedModelResponse(response, Command(update={POSITION: Overwrite(self._positions.here())}))

    def _is_inside(self) -> bool:
        """Return whether this agent runs inside a tool of another agent on the same session, which handles all this."""
        outer = outer_work(self.toolset.session)
        if outer is not None:
            outer.has_agent = True
        return outer is not None

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Call a function in a thread, unless everything is in memory: a thread would cost more than the function."""
        if self._calls.is_in_memory and self.toolset.session._needs_no_thread:
            return work()
        return await asyncio.to_thread(work)

    # Tool calls

    def wrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> Any:
        """Run a tool as a call of the session."""
        if self._is_inside() or not self._is_wanted(request):
            return handler(request)
        with self._turn(request):
            begun = self._begun(request)
            if isinstance(request.tool, SessionTool):
                with _identified(begun):
                    return self._answered(begun, handler(request))
            work = self._work(request, lambda: handler(request))
            arguments = request.tool_call["args"]
            result = self._calls.call(begun.name, arguments, call_id=begun.call_id, caller=begun.caller, work=work)
            return self._outcome(begun, work, result)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Await a tool as a call of the session; if the task is cancelled, the tool's changes are undone."""
        if self._is_inside() or not self._is_wanted(request):
            return await handler(request)
        async with self._aturn(request):
            begun = await self._in_thread(partial(self._begun, request))
            if isinstance(request.tool, SessionTool):
                with _identified(begun):
                    return self._answered(begun, await handler(request))
            work = self._work(request, lambda: handler(request))
            arguments = request.tool_call["args"]
            result = await self._calls.acall(
                begun.name, arguments, call_id=begun.call_id, caller=begun.caller, work=work
            )
            return self._outcome(begun, work, result)

    def _work(self, request: ToolCallRequest, perform: Callable[[], Any]) -> Work:
        info = request.runtime.execution_info
        return Work(self.toolset.session, perform, "" if info is None else info.checkpoint_ns)

    def _is_wanted(self, request: ToolCallRequest) -> bool:
        names = self._names
        return names is None or isinstance(request.tool, SessionTool) or request.tool_call["name"] in names

    def _turn(self, request: ToolCallRequest) -> Any:
        return nullcontext() if self._needs_no_turn(request) else self._turns.turn()

    def _aturn(self, request: ToolCallRequest) -> Any:
        return nullcontext() if self._needs_no_turn(request) else self._turns.aturn()

    def _needs_no_turn(self, request: ToolCallRequest) -> bool:
        return self._calls.is_in_memory or (isinstance(request.tool, SessionTool) and request.tool.read_only)

    def _begun(self, request: ToolCallRequest) -> _Begun:
        """Roll the session back to where the call begins, and choose the id of the call."""
        info: ExecutionInfo | None = request.runtime.execution_info
        step, position = step_of(info), cast("dict[str, Any]", request.state).get(POSITION)
        went_back = self._positions.go_back(step, position)
        tool_call_id = request.tool_call["id"] or request.tool_call["name"]
        call_id = self._positions.begin_call(one_line(tool_call_id), step, position)
        return _Begun(request.tool_call["name"], tool_call_id, call_id, caller_of(info), position, went_back)

    def _outcome(self, begun: _Begun, work: Work, result: ToolResult[object]) -> Any:
        """Return the answer of the tool or raise its error; if its changes were undone, return why."""
        if work.error is not None:
            raise work.error
        has_failed = work.answer is None or not any(one.status == "error" for one in messages_of(work.answer))
        if not result.success and has_failed:
            reason = (
                result.message
                if work.answer is None
                else f"The changes that the tool made were undone: {result.message}"
            )
            return self._answered(
                begun, ToolMessage(reason, tool_call_id=begun.tool_call_id, name=begun.name, status="error")
            )
        return self._answered(begun, work.answer)

    def _answered(self, begun: _Begun, given: Answer) -> Any:
        """Add the position to an answer, if the position has changed."""
        here = self._positions.here()
        has_failed = any(message.status == "error" for message in messages_of(given))
        if here == begun.position or (has_failed and not begun.went_back):
            return given
        if isinstance(given, ToolMessage):
            return Command(update={"messages": [given], POSITION: here})
        if isinstance(given, Command) and isinstance(given.update, dict) and given.graph is None:
            return replace(given, update={**given.update, POSITION: here})
        return [*(given if isinstance(given, list) else [given]), Command(update={POSITION: here})]


@contextmanager
def _identified(begun: _Begun) -> Iterator[None]:
    token = identity.set(Identity(begun.call_id, begun.caller))
    try:
        yield
    finally:
        identity.reset(token)
