"""The client side of the Agent Client Protocol: what an agent does in a directory becomes calls of a session.

`acp.spawn_agent_process(SessionClient(toolset, permission="allow"), program)`. Needs the extra `weakfs[acp]`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal, TypeVar

from weakfs.backends import HostFilesystem, MountedFilesystem
from weakfs.filesystem import Filesystem
from weakfs.integrations.judged_reads import Request, judged_read
from weakfs.integrations.missing_packages import needed
from weakfs.integrations.tool_recorder import ToolRecorder
from weakfs.messages import a_type
from weakfs.tools import Toolset
from weakfs.tools.calls.external_call import ExternalCallFailed
from weakfs.tools.permissions.guard import check_fits_inline, check_may_show, guarded, point_of, refuse_partial_read

with needed("acp", package="agent-client-protocol", at_least="0.12"):
    from acp import RequestError
    from acp.interfaces import Agent, Client
    from acp.schema import (
        AllowedOutcome,
        ClientCapabilities,
        DeniedOutcome,
        FileSystemCapabilities,
        PermissionOption,
        PromptResponse,
        ReadTextFileResponse,
        RequestPermissionResponse,
        TextContentBlock,
        ToolCallProgress,
        ToolCallStart,
        ToolCallUpdate,
        WriteTextFileResponse,
    )

__all__ = ["CAPABILITIES", "SessionClient"]

T = TypeVar("T")

logger = logging.getLogger("weakfs.integrations.acp")

# The capabilities that `initialize` announces. An agent that is offered no terminals runs commands itself.
CAPABILITIES = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=False)

# Kinds of tools that change no files, and so are not recorded.
READ_ONLY_KINDS = frozenset({"fetch", "read", "search", "switch_mode", "think"})

Permission = Literal["allow", "deny"] | Callable[[ToolCallUpdate, list[PermissionOption]], Awaitable[str | None]]


class SessionClient(Client):
    """A client of one agent that works in the directory of a `HostFilesystem`.

    Whatever changes in the directory while a tool of the agent runs is recorded as one call of the toolset, with the
    tool's id; tools that run at the same time share one call. A failed tool keeps its changes unless `undo_failed` is
    set. The capability and the policy of the toolset check files that the agent reads and writes through the client,
    but not what the agent does by itself.

    `permission` answers the agent's requests: "allow" and "deny" choose an option for that one request; a coroutine
    function returns the id of the chosen option, or `None` to cancel. `on_update` receives every update of the agent.
    Use `prompt` for each turn.
    """

    def __init__(
        self,
        toolset: Toolset,
        *,
        permission: Permission,
        on_update: Callable[[object], Awaitable[None]] | None = None,
        caller: str = "agent",
        undo_failed: bool = False,
    ) -> None:
        files = toolset.filesystem.files if isinstance(toolset.filesystem, MountedFilesystem) else toolset.filesystem
        if not isinstance(files, HostFilesystem):
            raise TypeError(
                f"cannot follow an agent in {a_type(files)}: agents of this protocol work in a directory of "
                f"the host; give a toolset with a HostFilesystem"
            )
        self._root = PurePosixPath(files.root)
        self._recorder = ToolRecorder(toolset, caller, undo_failed)
        self._permission = permission
        self._on_update = on_update
        self._agent: Agent | None = None
        self._written = 0

    def on_connect(self, conn: Agent) -> None:
        """Remember the connection to the agent, for `prompt`."""
        self._agent = conn

    async def prompt(self, session_id: str, text: str) -> PromptResponse:
        """Send a prompt to the agent, wait for the end of its turn, and end the calls that are still open.

        Raises `RuntimeError` if no agent is connected.
        """
        if self._agent is None:
            raise RuntimeError("there is no agent yet; pass this client to acp.spawn_agent_process or connect_to_agent")
        try:
            return await self._agent.prompt(prompt=[TextContentBlock(type="text", text=text)], session_id=session_id)
        finally:
            await self._recorder.finish()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        """Answer a permission request, and begin the tool's call if it is allowed."""
        chosen = await self._chosen(tool_call, options)
        if chosen is not None and not chosen.kind.startswith("reject"):
            try:
                await self._begin(tool_call)
            except ExternalCallFailed as refused:
                logger.warning("a tool was not allowed: %s", refused)
                chosen = next((option for option in options if option.kind == "reject_once"), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def session_update(self, session_id: str, update: object, **kwargs: Any) -> None:
        """Begin and end calls as the agent reports its tools."""
        try:
            if isinstance(update, ToolCallStart | ToolCallProgress):
                await self._follow(update)
        except Exception:
            logger.exception("what a tool changed could not be recorded")
        if self._on_update is not None:
            await self._on_update(update)

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        """Read a text file in the directory."""
        offset = max(line or 1, 1) - 1
        toolset, place = self._recorder.toolset, self._path(path)
        request = Request("read_text_file", "read", place)
        work = partial(_text, path=place, offset=offset, limit=limit)
        caller = self._recorder.caller

        def read() -> str:
            return judged_read(toolset, toolset.filesystem, request, work, shown=str, caller=caller)

        return ReadTextFileResponse(content=await self._work(path, read))

    async def write_text_file(self, session_id: str, path: str, content: str, **kwargs: Any) -> WriteTextFileResponse:
        """Write a text file, as part of the running tool's call or as a separate call."""
        toolset = self._recorder.toolset
        files = guarded(toolset.filesystem, toolset.capability, toolset.policy, "write")
        write = partial(files.write, self._path(path), content)
        self._written += 1
        own_id = f"{session_id}-write-{self._written}"
        try:
            await self._recorder.begin("write_text_file", {"path": path}, own_id)
        except ExternalCallFailed as refused:
            raise RequestError.invalid_params({"path": path, "reason": str(refused)}) from refused
        try:
            await self._work(path, write)
        finally:
            await self._recorder.end(own_id, f"wrote {path}")
        return WriteTextFileResponse()

    # Unsupported requests: the agent gets an error rather than an empty answer.

    async def create_terminal(self, *_: Any, **__: Any) -> Any:
        """Refuse: the agent runs commands itself."""
        raise RequestError.method_not_found("terminal/create")

    async def terminal_output(self, *_: Any, **__: Any) -> Any:
        """Refuse: there are no terminals."""
        raise RequestError.method_not_found("terminal/output")

    async def release_terminal(self, *_: Any, **__: Any) -> Any:
        """Refuse: there are no terminals."""
        raise RequestError.method_not_found("terminal/release")

    async def wait_for_terminal_exit(self, *_: Any, **__: Any) -> Any:
        """Refuse: there are no terminals."""
        raise RequestError.method_not_found("terminal/wait_for_exit")

    async def kill_terminal(self, *_: Any, **__: Any) -> Any:
        """Refuse: there are no terminals."""
        raise RequestError.method_not_found("terminal/kill")

    async def create_elicitation(self, *_: Any, **__: Any) -> Any:
        """Refuse: there is nobody to ask."""
        raise RequestError.method_not_found("elicitation/create")

    async def complete_elicitation(self, elicitation_id: str, **kwargs: Any) -> None:
        """Ignore the end of a question that was never asked."""

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Refuse an extension method."""
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Ignore an extension notification."""

    async def _chosen(self, tool_call: ToolCallUpdate, options: Sequence[PermissionOption]) -> PermissionOption | None:
        if self._permission in ("allow", "deny"):
            wanted = "allow_once" if self._permission == "allow" else "reject_once"
            return next((option for option in options if option.kind == wanted), None)
        assert callable(self._permission)
        option_id = await self._permission(tool_call, list(options))
        return next((option for option in options if option.option_id == option_id), None)

    async def _follow(self, update: ToolCallStart | ToolCallProgress) -> None:
        if update.status in ("completed", "failed"):
            answer = update.raw_output if isinstance(update.raw_output, str) else update.title or ""
            await self._recorder.end(update.tool_call_id, answer, failed=update.status == "failed")
        elif isinstance(update, ToolCallStart) or update.status == "in_progress":
            await self._begin(update)

    async def _begin(self, tool: ToolCallStart | ToolCallUpdate) -> None:
        if tool.kind in READ_ONLY_KINDS:
            return
        arguments = tool.raw_input if isinstance(tool.raw_input, dict) else {}
        await self._recorder.begin(tool.kind or "other", {"title": tool.title, **arguments}, tool.tool_call_id)

    def _path(self, path: str) -> str:
        """Return the path that rules and messages of the toolset use for a path on the host."""
        given = PurePosixPath(path)
        if not given.is_absolute() or not given.is_relative_to(self._root):
            raise RequestError.invalid_params({"path": path, "reason": f"the path is not below {self._root}"})
        own, point = f"/{given.relative_to(self._root)}", point_of(self._recorder.toolset.filesystem)
        return own if point is None else point.mounted("/" if own == "/." else own)

    async def _work(self, path: str, work: Callable[[], T]) -> T:
        """Use a file, after handling earlier updates; raise errors in the protocol's form."""
        try:
            return await self._recorder.run(work)
        except FileNotFoundError as missing:
            raise RequestError.resource_not_found(path) from missing
        except (OSError, ValueError) as refused:
            raise RequestError.invalid_params({"path": path, "reason": str(refused)}) from refused


def _text(files: Filesystem, *, path: str, offset: int, limit: int | None) -> str:
    """Return lines of a text; raise `PermissionError` if they, or some of those requested, may not be shown."""
    found = files.read(path, offset=offset, limit=-1 if limit is None else limit)
    check_may_show(files, found.path)
    if found.truncated and (limit is None or found.limit != limit):
        size = files.read_bytes(found.path, limit=0).size_bytes
        refuse_partial_read(found.path, size, len(found.content.encode()))
    check_fits_inline(files, found.path, found.content)
    return found.content
