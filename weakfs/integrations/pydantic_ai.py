"""The tools of a session for pydantic-ai agents: each run works on a fork, which is merged if the run succeeds.

`Agent(model, toolsets=[SessionToolset(toolset)])`. Needs the extra `weakfs[pydantic-ai]`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from secrets import token_hex
from typing import Any, Literal, Self, cast

from weakfs.integrations.missing_packages import needed
from weakfs.messages import one_line
from weakfs.session import MergeConflict, OnConflict, Session, SessionError
from weakfs.shield import run_in_thread, shielded
from weakfs.tools import Tool, ToolCall, ToolResult, Toolset, ToolValidationError
from weakfs.tools.calls.call_json import read_json
from weakfs.tools.providers.profiles import with_defaults
from weakfs.tools.schemas.content import Provider

with needed("pydantic_ai", package="pydantic-ai-slim", at_least="2.60"):
    from pydantic_ai import BinaryContent, ModelRetry, RunContext, ToolReturn
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.tools import AgentDepsT, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

__all__ = ["RunConflict", "SessionToolset"]

# How many times in a row a model may retry a tool with wrong arguments before the run fails.
MAX_RETRIES = 3

# The key under which each provider's definitions have the schema of the arguments.
_SCHEMA_KEYS = ("input_schema", "inputSchema", "parameters")

# The runs inside which this code runs, innermost last.
_runs: ContextVar[tuple[_RunToolset[Any], ...]] = ContextVar("weakfs_pydantic_ai_runs", default=())

# The prefixes of the provider names in pydantic-ai's models.
_PROVIDERS: Mapping[str, Provider] = {
    "anthropic": "anthropic",
    "azure": "openai",
    "google": "gemini",
    "openai": "openai",
}


class RunConflict(SessionError):
    """A run succeeded, and its changes conflict with what others changed in the session meanwhile.

    The session is unchanged. `fork` is still open and has the changes of the run, which
    `session.merge(fork, on_conflict=...)` merges. `conflict` has the conflicts, and `messages` are the messages of the
    run with the model's answer.
    """

    def __init__(self, conflict: MergeConflict, fork: Session, messages: list[ModelMessage]) -> None:
        self.conflict, self.fork, self.messages = conflict, fork, messages
        super().__init__(
            f"the changes of a run were not merged: {conflict}\nthey are in the attribute `fork` of this error; "
            f"merge it with on_conflict, or run the agent again"
        )


class SessionToolset(AbstractToolset[AgentDepsT]):
    """The tools of a `Toolset` as a toolset of pydantic-ai.

    Each run forks the session, and is merged if it succeeds; `on_conflict` is passed to `Session.merge`. A run that
    fails or is cancelled leaves the session unchanged. A run started by a tool of another run forks that run's fork.
    Files outside the session, such as a host directory, cannot be forked: calls change them immediately, and if a run
    fails, its changes are reverted.

    A failed call is an answer that the model sees. Wrong arguments are sent back to the model, at most `max_retries`
    times in a row for each tool.
    """

    def __init__(
        self,
        toolset: Toolset,
        *,
        id: str | None = None,
        max_retries: int = MAX_RETRIES,
        instructions: str | None = None,
        on_conflict: OnConflict = "raise",
    ) -> None:
        self.toolset = toolset
        self.instructions = instructions
        self._id = id
        self._max_retries = max_retries
        self._on_conflict: OnConflict = on_conflict
        self._offered: dict[str, ToolsetTool[AgentDepsT]] | None = None

    @property
    def id(self) -> str | None:
        """The id of the toolset, unique among the toolsets of an agent."""
        return self._id

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Return the toolset of one run, over a fork of the session."""
        outer = next((run for run in reversed(_runs.get()) if run.root is self.toolset.session), None)
        parent = self.toolset.session if outer is None else outer.toolset.session
        provider = self.toolset.provider or _provider_of(ctx)
        # Files outside the session cannot be forked.
        work = parent if parent._attached else parent.fork()
        return _RunToolset(self, self.toolset.bind(work, provider=provider), parent, outer, ctx.messages)

    async def get_instructions(self, ctx: RunContext[AgentDepsT]) -> str | None:
        """Return the instructions that were given."""
        return self.instructions

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """Return the tools, which are the same at every step of a run."""
        if self._offered is None:
            provider = self.toolset.provider or _provider_of(ctx)
            known = {tool.name: tool for tool in self.toolset.tools}
            self._offered = {
                definition.name: ToolsetTool(
                    toolset=self,
                    tool_def=definition,
                    max_retries=self._max_retries,
                    args_validator=ArgumentChecker(known[definition.name], self.toolset.provider),
                )
                for definition in _definitions(self.toolset, provider)
            }
        return self._offered

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> ToolReturn[Any]:
        """Make one call; raises `ToolFailed` if it failed and so has changed nothing."""
        call_id = _call_id(ctx)
        with self._making(call_id):
            result = await self.toolset.acall(name, tool_args, call_id=call_id, caller=_caller(ctx))
        if not result.success:
            raise ToolFailed(result.message)
        return _returned(result, call_id)

    @contextmanager
    def _making(self, call_id: str) -> Iterator[None]:
        """Remember a call if it belongs to a run that may have to revert it."""
        yield


class _RunToolset(SessionToolset[AgentDepsT]):
    """The tools during one run: on a fork of `parent`, or on `parent` itself if it has files outside the session."""

    def __init__(
        self,
        of: SessionToolset[AgentDepsT],
        toolset: Toolset,
        parent: Session,
        outer: _RunToolset[Any] | None,
        messages: list[ModelMessage],
    ) -> None:
        super().__init__(
            toolset,
            id=of.id,
            max_retries=of._max_retries,
            instructions=of.instructions,
            on_conflict=of._on_conflict,
        )
        self.root = of.toolset.session
        self._parent = parent
        self._outer = outer
        self._forked_at = toolset.session.seq
        self._messages = messages
        self._calls: list[str] = []
        self._open_calls: dict[str, asyncio.Event] = {}
        self._handled: BaseException | None = None
        self._entered = False

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Refuse to be used for another run."""
        raise SessionError("cannot start a run with the toolset of another run; use the SessionToolset itself")

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Return this toolset; its tools stay the same."""
        self._messages = ctx.messages
        return self

    async def __aenter__(self) -> Self:
        self._handled = sys.exc_info()[1]
        self._entered = True
        _runs.set((*_runs.get(), self))
        return self

    async def __aexit__(self, *args: Any) -> bool | None:
        if not self._entered:
            return None
        self._entered = False
        own = self.toolset.session
        _runs.set(tuple(run for run in _runs.get() if run is not self))
        # Combined toolsets do not pass on the error that ends a run.
        error = next((one for one in args if isinstance(one, BaseException)), None) or sys.exc_info()[1]
        has_failed = error is not None and error is not self._handled
        if own is self._parent:
            if has_failed:
                await shielded(asyncio.ensure_future(self._reverted()))
            elif self._outer is not None:
                self._outer._calls.extend(self._calls)
        elif has_failed:
            own.close("the run that it belongs to failed")
        else:
            await self._merge(own)
        return None

    async def _merge(self, fork: Session) -> None:
        if fork.seq == self._forked_at:
            fork.close("the run that it belongs to has ended")
            return
        parent, merge = self._parent, partial(self._parent.merge, fork, on_conflict=self._on_conflict)
        try:
            if parent._awaits_commits:
                async with parent.transaction():
                    merge()
            elif parent._needs_no_thread:
                merge()
            else:
                await shielded(run_in_thread(merge))
        except MergeConflict as conflict:
            raise RunConflict(conflict, fork, list(self._messages)) from conflict
        except BaseException:
            fork.close("the run that it belongs to failed")
            raise
        fork.close("the run that it belongs to has ended")

    async def _reverted(self) -> None:
        # A cancelled run does not wait for its calls, which are still being undone.
        for call in [*self._open_calls.values()]:
            await call.wait()
        await run_in_thread(self._revert)

    def _revert(self) -> None:
        """Revert the calls of this run, newest first."""
        session, own = self._parent, set(self._calls)
        made = [one for one in session[ToolCall].all() if one.call_id in own and one.status == "ok" and one.first_seq]
        problems: list[Exception] = []
        for call in reversed(made):
            try:
                session.revert(call.call_id)
            except (SessionError, OSError) as problem:
                problems.append(problem)
        if problems:
            raise SessionError(
                f"the run failed, and {len(problems)} of its calls could not be reverted: {problems[0]}; "
                f"revert them one by one with on_conflict"
            ) from problems[0]

    @contextmanager
    def _making(self, call_id: str) -> Iterator[None]:
        self._calls.append(call_id)
        ended = self._open_calls[call_id] = asyncio.Event()
        try:
            yield
        finally:
            ended.set()
            del self._open_calls[call_id]


class ArgumentChecker:
    """Takes the place of pydantic-ai's validator, and checks arguments with the tool itself."""

    def __init__(self, tool: Tool, provider: Provider | None) -> None:
        self._tool = tool
        self._provider = provider

    def validate_json(
        self,
        input: str | bytes | bytearray,
        *,
        allow_partial: bool | Literal["off", "on", "trailing-strings"] = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the arguments in JSON text; raises `ModelRetry`, which names every problem."""
        try:
            given = read_json(input)
        except ToolValidationError as error:
            raise ModelRetry(f"cannot call {self._tool.name}: {error}") from None
        return self.validate_python(given)

    def validate_python(
        self,
        input: Any,
        *,
        allow_partial: bool | Literal["off", "on", "trailing-strings"] = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the arguments if they fit the tool; raises `ModelRetry`, which names every problem."""
        try:
            self._tool.read_arguments(with_defaults(self._tool, input, self._provider))
        except ToolValidationError as error:
            raise ModelRetry(f"cannot call {self._tool.name}: {error}") from None
        return dict(input)


def _provider_of(ctx: RunContext[Any]) -> Provider:
    """Return the provider whose tools a model knows; "mcp" if its provider is unknown."""
    name = str(ctx.model.system)
    for start, provider in _PROVIDERS.items():
        if name.startswith(start):
            return provider
    return "mcp"


def _definitions(toolset: Toolset, provider: Provider) -> Iterator[ToolDefinition]:
    hints = {str(one["name"]): one["annotations"] for one in toolset.definitions("mcp")}
    runs_commands = {tool.name for tool in toolset.tools if tool.operation == "shell"}
    # Gemini gets the same tools with the same argument names; pydantic-ai adapts the schemas to each model.
    form: Provider = "anthropic" if provider == "gemini" else provider
    for given in toolset.definitions(form, strict_schemas=False):
        definition = cast("dict[str, Any]", given.get("function", given))
        name = str(definition["name"])
        yield ToolDefinition(
            name=name,
            description=definition["description"],
            parameters_json_schema=next(definition[key] for key in _SCHEMA_KEYS if key in definition),
            # A command may change any file, and calls at the same time would be refused.
            sequential=name in runs_commands,
            metadata={"annotations": hints[name]} if name in hints else None,
        )


def _call_id(ctx: RunContext[Any]) -> str:
    """Return the id of a call: the model's id, with the end of the run's id.

    Some models number their calls, and a session in storage does not make a call with a known id twice.
    """
    run = (ctx.run_id or "")[-12:]
    return f"{ctx.tool_call_id or token_hex(4)}@{run}" if run else f"{ctx.tool_call_id or 'call'}@{token_hex(6)}"


def _caller(ctx: RunContext[Any]) -> str:
    name = None if ctx.agent is None else ctx.agent.name
    return one_line(name) if name else "pydantic-ai"


def _returned(result: ToolResult[object], call_id: str) -> ToolReturn[Any]:
    """Return an answer with its images for the model, and the id of the call and the receipt for the program."""
    images = [BinaryContent(image.data, media_type=image.media_type) for image in result.images]
    shown: Any = [result.message, *images] if images else result.message
    return ToolReturn(return_value=shown, metadata={"call_id": call_id, "receipt": result.value})
