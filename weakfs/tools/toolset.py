"""A toolset: it turns calls into answers, undoes calls that fail, and records every call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, TypeVar, Unpack, cast, overload

from weakfs.attribute_hints import attribute_hints
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import BaseFilesystem, Filesystem, Limits
from weakfs.filesystem.limits import checked_limits
from weakfs.messages import a_type, clip, one_line
from weakfs.session import Cancellation, Session
from weakfs.tools.calls.call import Call
from weakfs.tools.calls.call_json import read_json, recorded
from weakfs.tools.calls.call_versions import CallVersions
from weakfs.tools.calls.finished_calls import FinishedCalls
from weakfs.tools.calls.stale_writes import SeenVersions
from weakfs.tools.calls.threads import in_thread
from weakfs.tools.context import build_tool_context, tighter
from weakfs.tools.defaults import DEFAULT_TOOLS
from weakfs.tools.errors import ToolValidationError, UnknownTool
from weakfs.tools.permissions.guard import guarded
from weakfs.tools.results import Receipt, ToolResult, failed
from weakfs.tools.schemas.content import OpenAIApi, Provider, check_provider, chosen_provider
from weakfs.tools.slices import install
from weakfs.tools.tool import Tool

if TYPE_CHECKING:
    from weakfs.tools.calls.call_options import AsyncCallOptions, CallOptions
    from weakfs.tools.calls.external_call import ExternalCall
    from weakfs.tools.permissions import Capability
    from weakfs.tools.policy import Policy

V = TypeVar("V")


@attribute_hints(
    dispatch="call(name, arguments)",
    execute="call(name, arguments)",
    invoke="call(name, arguments)",
    run="call(name, arguments)",
    schemas="definitions(provider)",
)
class Toolset:
    """Tools over one session, called by name with plain JSON.

    Without a filesystem, the toolset uses the session's own files in memory, and `limits` bounds how large they grow. A
    given filesystem keeps its own limits. In both cases `limits` bounds the lines and grep matches in an answer; the
    filesystem's own methods return everything, so that a handler can write back what it read. Thread-safe: a call that
    conflicts with one that finished in the meantime fails with the status `conflict`.

    With `refuse_stale_writes`, a call that names its caller cannot change a file that has changed since the caller last
    saw it. With `require_read`, it also cannot change an existing file that the caller never saw. What callers saw is
    part of the session. Calls without a caller are only prevented from undoing what a caller changed.

    `provider` names the provider of the models that make the calls. It is the default of `definitions`, and it sets the
    defaults of arguments: `read_file` returns images, which `ToolResult.content(provider)` includes, and line numbers
    for Anthropic's models.

    Raises `ValueError` for a filesystem of another session, two tools with one name, an unknown provider, or
    `require_read` without `refuse_stale_writes`, and `TypeError` for arguments of other types, or if the filesystem
    cannot be guarded.
    """

    def __init__(
        self,
        session: Session,
        filesystem: Filesystem | None = None,
        *,
        tools: Iterable[Tool] = DEFAULT_TOOLS,
        capability: Capability | None = None,
        policy: Policy | None = None,
        limits: Limits = Limits.tools(),  # noqa: B008  # frozen
        refuse_stale_writes: bool = True,
        require_read: bool = False,
        provider: Provider | None = None,
    ) -> None:
        if not isinstance(session, Session):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(_no_session(session))
        if filesystem is not None and not hasattr(filesystem, "read_bytes"):
            raise TypeError(
                f"cannot use {filesystem!r} as a filesystem: its type is {type(filesystem).__name__}; give a "
                f"filesystem, such as HostFilesystem(...), or leave it out to use the session's files in memory"
            )
        checked_limits(limits)
        files: Filesystem = InMemoryFilesystem(session, limits=limits.for_files()) if filesystem is None else filesystem
        owner = getattr(files, "session", session)
        if isinstance(owner, Session) and owner is not session:
            raise ValueError(
                f"cannot use a filesystem of session {owner.session_id!r} with session {session.session_id!r}: a call "
                f"that fails could not be undone; pass the session that the filesystem was made with"
            )
        # Raises TypeError if the filesystem cannot be guarded.
        guarded(files, capability, policy, None)
        check_provider(provider)
        self.session = session
        self.filesystem = files
        # `files` of a mounted filesystem is the filesystem that is mounted.
        self._is_in_memory = type(getattr(files, "files", files)) is InMemoryFilesystem
        self.provider: Provider | None = provider
        self.capability = capability
        self.policy = policy
        self.limits = limits
        if require_read and not refuse_stale_writes:
            raise ValueError("require_read needs refuse_stale_writes; leave one of them out")
        guards = refuse_stale_writes and isinstance(files, BaseFilesystem)
        self._seen_versions = SeenVersions(session, files) if guards else None
        self._require_read = require_read
        self._finished = FinishedCalls(session)
        self._tools: dict[str, Tool] = {}
        if isinstance(tools, Tool) or callable(tools):
            raise TypeError(f"tools is {a_type(tools)}; give a list of Tool objects, tools=[...]")
        for tool in tools:
            if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(_no_tool(tool))
            if tool.name in self._tools:
                raise ValueError(f"cannot use two tools named {tool.name!r}; give one of them another name")
            self._tools[tool.name] = tool
        install(session)

    def __repr__(self) -> str:
        return f"<Toolset of {self.session!r}: {', '.join(self._tools)}>"

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that can be called, in the order in which they were given."""
        return tuple(self._tools.values())

    def bind(self, session: Session, *, provider: Provider | None = None) -> Toolset:
        """Return the same tools over another session, such as a fork, with the filesystem bound to it.

        `provider` replaces the provider, if it is given.
        """
        return Toolset(
            session,
            self.filesystem.bind(session),
            tools=self.tools,
            capability=self.capability,
            policy=self.policy,
            limits=self.limits,
            refuse_stale_writes=self._seen_versions is not None,
            require_read=self._require_read,
            provider=self.provider if provider is None else provider,
        )

    def definitions(
        self, provider: Provider | None = None, *, api: OpenAIApi = "chat", strict_schemas: bool = True
    ) -> list[dict[str, object]]:
        """Return the tools in the form that a provider's API takes: "openai", "anthropic", "gemini" or "mcp".

        The default is the toolset's provider. OpenAI's models get `apply_patch`, Anthropic's and Gemini's `edit_file`,
        each with the argument names that they know; `call` accepts all of these names. `api` and `strict_schemas` are
        for OpenAI's two APIs. Raises `ValueError` if no provider is given, or for an unknown one.
        """
        from weakfs.tools.providers.definitions import definitions

        chosen = chosen_provider(provider, self.provider)
        return definitions(self.tools, chosen, api=api, strict_schemas=strict_schemas, used_by=self.provider)

    @overload
    def call(
        self, name: str, arguments: Mapping[str, object] | str | bytes, **options: Unpack[CallOptions]
    ) -> ToolResult[object]: ...
    @overload
    def call(
        self, name: Tool[V], arguments: Mapping[str, object] | str | bytes, **options: Unpack[CallOptions]
    ) -> ToolResult[V]: ...
    def call(
        self,
        name: str | Tool,
        arguments: Mapping[str, object] | str | bytes,
        *,
        call_id: str | None = None,
        caller: str | None = None,
        deadline: int | None = None,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
        prompt: object = None,
        rendered_prompt: object = None,
        adapter: object = None,
        budget_tracker: object = None,
    ) -> ToolResult[object]:
        """Make one call and return its answer; a failure is an answer too, and has changed nothing.

        `name` is the name of one of this toolset's tools, or the tool itself. If it is a tool, such as
        `weakfs.tools.READ_FILE`, type checkers know the class of the receipt, which is the result's value. `arguments`
        are a mapping, or JSON text as the model sent it. `call_id` is the cause of every record that the call makes;
        `caller` names who made the call.

        If you give a `call_id`, a session in storage does not make the same call twice: if a call with this id, tool
        and arguments is among the last thousand, succeeded and was not rolled back, its recorded answer is returned.
        The process that made it may have died before it learned the outcome. The receipt has plain values if its class
        has changed meanwhile. Read-only calls are made again.

        The call fails if it takes longer than `timeout` seconds, or runs past `deadline`, a time on the session's clock
        in nanoseconds; if both are given, the earlier one counts. `cancellation` lets another thread undo the call
        while it runs. `prompt`, `rendered_prompt`, `adapter` and `budget_tracker` are passed to the handler in its
        context.

        Raises `TransactionCancelled` if the call is cancelled. An exception that is a bug rather than a failure of the
        call is raised after the call has been rolled back and recorded.
        """
        deadline = self._earlier(deadline, timeout)
        runtime = (prompt, rendered_prompt, adapter, budget_tracker)
        return self._perform(self._call(name, arguments, call_id, caller, deadline, cancellation, runtime))

    @overload
    async def acall(
        self, name: str, arguments: Mapping[str, object] | str | bytes, **options: Unpack[AsyncCallOptions]
    ) -> ToolResult[object]: ...
    @overload
    async def acall(
        self, name: Tool[V], arguments: Mapping[str, object] | str | bytes, **options: Unpack[AsyncCallOptions]
    ) -> ToolResult[V]: ...
    async def acall(
        self,
        name: str | Tool,
        arguments: Mapping[str, object] | str | bytes,
        *,
        call_id: str | None = None,
        caller: str | None = None,
        deadline: int | None = None,
        timeout: float | None = None,
        prompt: object = None,
        rendered_prompt: object = None,
        adapter: object = None,
        budget_tracker: object = None,
    ) -> ToolResult[object]:
        """Make one call concurrently with others: the handler runs in a thread, a coroutine function in this task.

        A quick tool on files in memory runs in this task too, because a thread would cost more than the call.

        The arguments are those of `call`. A cancelled call is rolled back and recorded before `CancelledError`
        propagates, even if its handler hangs: further changes by the handler raise an exception, and a command that it
        runs is killed. A call that had already ended keeps its effects. A quick call either returns its answer, or has
        not begun.

        Tasks and threads that a handler starts with a copy of its context (`gather`, `asyncio.to_thread`) take part in
        its call; those that outlive a failure can change nothing more. The threads belong to the event loop's default
        executor, whose size bounds how many run at once.
        """
        import asyncio

        deadline = self._earlier(deadline, timeout)
        runtime = (prompt, rendered_prompt, adapter, budget_tracker)
        call = self._call(name, arguments, call_id, caller, deadline, None, runtime)
        is_async = isinstance(call.tool, Tool) and call.tool.is_async
        if self.session._awaits_commits:
            work = call.aperform(in_thread=not is_async and not self._takes_no_thread(call))
            # The call must not join a transaction around it, so it runs in a separate task.
            return await (asyncio.create_task(work) if self.session.in_transaction else work)
        if is_async:
            return await call.aperform()
        if not self.session.in_transaction and self._takes_no_thread(call):
            # Lets other tasks run, however many calls this task makes. Done before the call: a task that is cancelled
            # here has changed nothing, and after the call nothing can keep it from getting its answer.
            await asyncio.sleep(0)
            return self._perform(call)
        return await in_thread(partial(self._perform, call), partial(_cancel, call))

    def external_call(
        self,
        tool: str | Tool,
        arguments: Mapping[str, object] | str | bytes | None = None,
        *,
        call_id: str | None = None,
        caller: str | None = None,
        timeout: float | None = None,
    ) -> ExternalCall:
        """Return a call whose work is done elsewhere: by a runtime's own shell or editor, a subprocess, another server.

        Use it in a `with` or `async with` block, or call its `begin` and later its `end` or `abort`. What changes in
        its `directory` meanwhile becomes part of this call; an exception or `abort` undoes it. `tool` is a tool, or
        the name of any tool; the name and `arguments` are recorded. The value of the result is an
        `ExternalReceipt`, whatever the tool. A capability and a policy treat the call as a command. It costs two scans
        of the files, and nothing else may change them in between.

        Raises `TypeError` if `tool` is neither text nor a `Tool`. The block raises `ExternalCallFailed` if the call is
        refused, or if it was undone at its end because the policy or a limit forbids its changes, or because it took
        longer than `timeout` seconds.
        """
        from weakfs.tools.calls.external_call import EXTERNAL, ExternalCall

        if not isinstance(tool, str | Tool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"cannot make an external call to {clip(repr(tool), 100)}; give the name of a tool, or a Tool"
            )
        deadline = self._earlier(None, timeout)
        given = {} if arguments is None else arguments
        call = self._call(tool, given, call_id, caller, deadline, None, (None, None, None, None), EXTERNAL)
        return ExternalCall._of(call)

    def _takes_no_thread(self, call: Call) -> bool:
        """Return whether a call is quick: nothing in it waits for a disk, a person or another thread."""
        if self.policy is not None:
            from weakfs.tools.policy import Policy

            # Custom rules may do anything.
            if not isinstance(self.policy, Policy) or self.policy.has_custom_rules:
                return False
        return (
            (not isinstance(call.tool, Tool) or call.tool.is_quick)
            and self._is_in_memory
            and self.session._needs_no_thread
        )

    def _earlier(self, deadline: int | None, timeout: float | None) -> int | None:
        """Return the earlier of the two deadlines of a call."""
        if timeout is None:
            return deadline
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"timeout is {timeout!r}; give a number of seconds above 0, or leave it out")
        # An infinite timeout sets no deadline.
        return deadline if timeout == inf else tighter(deadline, self.session.now() + int(timeout * 1e9))

    def _call(
        self,
        asked: str | Tool,
        arguments: object,
        call_id: str | None,
        caller: str | None,
        deadline: int | None,
        cancellation: Cancellation | None,
        runtime: tuple[object, object, object, object],
        external: Tool | None = None,
    ) -> Call:
        if call_id is not None:
            _check_text("call_id", call_id)
        if caller is not None:
            _check_text("caller", caller)
        session = self.session
        started_at = session.now()
        is_own_id = call_id is None
        call_id = session.next_id("call") if call_id is None else one_line(call_id)
        name, tool = self._named(asked)
        declaring = asked if isinstance(asked, Tool) else tool
        if external is not None:
            declaring = tool = external
        prompt, rendered_prompt, adapter, budget_tracker = runtime
        context = build_tool_context(
            session=session,
            filesystem=self.filesystem,
            limits=self.limits,
            deadline=deadline,
            capability=self.capability,
            policy=self.policy,
            operation=None if tool is None else tool.operation,
            cancellation=cancellation,
            call_id=call_id,
            caller=caller,
            prompt=prompt,
            rendered_prompt=rendered_prompt,
            adapter=adapter,
            budget_tracker=budget_tracker,
        )
        given, sent = _values(arguments)
        known = self._seen_versions
        return Call(
            session,
            self._unknown(name) if tool is None else tool,
            Receipt if declaring is None else cast("type[Receipt]", declaring.receipt),
            name,
            given if tool is None or self.provider is None else self._with_defaults(tool, given),
            call_id,
            caller,
            context,
            None if known is None else CallVersions(known, caller, self._require_read),
            started_at,
            recorded(sent),
            # An external call is never answered from the record: its work is done again.
            None if is_own_id or not session.is_durable or external is not None else self._finished,
        )

    def _named(self, asked: str | Tool) -> tuple[str, Tool | None]:
        """Return the name to record for a call, and the tool of this toolset that was asked for, if it has it."""
        name = asked.name if isinstance(asked, Tool) else asked
        if isinstance(name, Mapping):
            raise TypeError("name is a mapping; pass a call in two parts: call(name, arguments)")
        tool = self._tools.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if tool is None:
            name = one_line(clip(name, 100)) if isinstance(name, str) else repr(name)  # pyright: ignore[reportUnnecessaryIsInstance]
        elif isinstance(asked, Tool) and asked is not tool:
            tool = None
        return name, tool

    def _perform(self, call: Call) -> ToolResult[object]:
        if isinstance(call.tool, Tool) and call.tool.is_async:
            raise TypeError(
                f"cannot call {call.name!r} from synchronous code: its handler is a coroutine function; use acall"
            )
        return call.perform()

    def _with_defaults(self, tool: Tool, arguments: object) -> object:
        from weakfs.tools.providers.profiles import with_defaults

        return with_defaults(tool, arguments, self.provider)

    def _unknown(self, name: str) -> UnknownTool:
        if name in self._tools:
            return UnknownTool(f"this toolset has another tool named {name!r}; call it by its name")
        from difflib import get_close_matches

        near = get_close_matches(name, self._tools, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        return UnknownTool(f"there is no tool {name!r}; {hint}use one of {', '.join(self._tools)}")


def _no_session(given: object) -> str:
    kind = a_type(given)
    if isinstance(given, Filesystem):
        return (
            f"cannot make a Toolset from {kind}: the session comes first; use Toolset(session, filesystem) with the "
            f"session that the filesystem was made with"
        )
    return f"cannot make a Toolset from {kind}: it takes a Session; use Toolset(Session())"


def _no_tool(given: object) -> str:
    name = getattr(given, "__name__", None)
    if callable(given) and isinstance(name, str):
        return (
            f"cannot use the function {name!r} as a tool: models need its name, description and parameters; use "
            f"Tool({name!r}, 'what it does', Params, {name})"
        )
    return f"cannot use {given!r} as a tool: it is {a_type(given)}; give Tool objects, such as weakfs.tools.READ_FILE"


def _check_text(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{what} is {text!r}; give text, or leave it out")


def _values(arguments: object) -> tuple[object, object]:
    """Return arguments as plain values, or the error if they are malformed, and the form in which they are recorded."""
    if not isinstance(arguments, str | bytes | bytearray):
        return arguments, arguments
    try:
        given = read_json(arguments)
    except ToolValidationError as error:
        return error, arguments if isinstance(arguments, str) else arguments.decode("utf-8", "replace")
    return given, given


def _cancel(call: Call) -> None:
    call.cancellation.cancel("the call was cancelled")
    # A call that failed by itself at the same moment might not be recorded yet; a call that succeeded is.
    call.write_down(failed(Receipt, "error", "cancelled", "the call was cancelled and its changes were undone"))
