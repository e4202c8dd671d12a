"""A server with the reference filesystem server's tools, for host directories, that uses a session."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib.resources import files as package_files
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server

import weakfs
from weakfs.integrations.mcp import definitions
from weakfs.integrations.mcp.calls import CallHandler, Context
from weakfs.integrations.mcp.reference import handlers as h
from weakfs.integrations.mcp.reference import listing
from weakfs.integrations.mcp.reference.directories import Directories, valid_roots
from weakfs.integrations.mcp.session_tools import SESSION_TOOLS, TIMELINE
from weakfs.session import Session
from weakfs.tools import Tool, ToolResult, Toolset
from weakfs.tools.permissions import Operation

logger = logging.getLogger("weakfs.integrations.mcp")

# How long calls wait for a client to name its roots, in seconds.
ROOTS_TIMEOUT = 10.0

_EXCLUDE = {"excludePatterns": "exclude_patterns"}
_SPECS: dict[str, tuple[Callable[..., Any], type, Operation, dict[str, str]]] = {
    "read_file": (h.read_handler, h.ReadParams, "read", {}),
    "read_text_file": (h.read_handler, h.ReadParams, "read", {}),
    "read_media_file": (h.media_handler, h.PathParams, "read", {}),
    "read_multiple_files": (h.read_many_handler, h.ReadManyParams, "read", {}),
    "write_file": (h.write_handler, h.WriteParams, "write", {}),
    "edit_file": (h.edit_handler, h.EditParams, "edit", {"dryRun": "dry_run"}),
    "create_directory": (h.mkdir_handler, h.PathParams, "write", {}),
    "list_directory": (listing.list_handler, h.PathParams, "list", {}),
    "list_directory_with_sizes": (listing.sizes_handler, h.SizesParams, "list", {"sortBy": "sort_by"}),
    "directory_tree": (listing.tree_handler, listing.TreeParams, "list", _EXCLUDE),
    "move_file": (h.move_handler, h.MoveParams, "write", {}),
    "search_files": (listing.search_handler, listing.SearchParams, "search", _EXCLUDE),
    "get_file_info": (h.info_handler, h.PathParams, "stat", {}),
    "list_allowed_directories": (h.allowed_handler, h.NoParams, "list", {}),
}
_WRITING = frozenset({"write_file", "edit_file", "create_directory", "move_file"})


@cache
def reference_definitions() -> tuple[types.Tool, ...]:
    """Return the reference server's definitions of its tools."""
    text = package_files("weakfs.integrations.mcp.reference").joinpath("tools.json").read_text("utf-8")
    return tuple(types.Tool.model_validate(one) for one in json.loads(text))


def reference_tools(directories: Directories, *, read_only: bool) -> tuple[Tool, ...]:
    """Return the tools; with `read_only`, only those that change nothing."""
    described = {one.name: one.description or "" for one in reference_definitions()}
    return tuple(
        Tool(
            name,
            described[name],
            params,
            partial(handler, directories),
            read_only=name not in _WRITING,
            operation=operation,
            aliases=aliases,
        )
        for name, (handler, params, operation, aliases) in _SPECS.items()
        if not (read_only and name in _WRITING)
    )


def filesystem_server(
    directories: Iterable[str | os.PathLike[str]] = (),
    *,
    session: Session | None = None,
    history_tools: bool = True,
    read_only: bool = False,
    use_roots: bool = True,
    store: str | None = None,
) -> Server[Any]:
    """Return a server with the tools of `@modelcontextprotocol/server-filesystem` for host directories.

    Every call is a call of `session`, and is undone if it fails or is cancelled. `history_tools` adds tools with which
    the model can see and undo what was done. With `use_roots`, the roots that a client with an older protocol version
    offers replace the directories; do not use it if several clients share the server. `store` is where contents for
    undo are stored; see `HostFilesystem`. Raises `OSError` if a directory cannot be opened.
    """
    served = _Served(Session() if session is None else session, history_tools, read_only, store)
    served.allow(directories)
    server: Server[Any] = Server(
        "weakfs",
        title="weakfs filesystem",
        version=weakfs.__version__,
        on_list_tools=served.list_tools,
        on_call_tool=CallHandler(lambda: served.toolset, served.answer, served.prepare),
    )
    if use_roots:
        server.add_notification_handler("notifications/initialized", types.NotificationParams, served.ask_for_roots)
        server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, served.ask_for_roots
        )
    return server


class _Served:
    """What one server serves: its directories, which roots may replace, and the toolset that works in them."""

    def __init__(self, session: Session, history_tools: bool, read_only: bool, store: str | None) -> None:
        self._session = session
        self._directories = Directories(session, read_only=read_only, store=store)
        self._history = () if not history_tools else (TIMELINE,) if read_only else SESSION_TOOLS
        self._tools = (*reference_tools(self._directories, read_only=read_only), *self._history)
        self._known = {
            one.name: {*one.input_schema.get("properties", {})}
            for one in reference_definitions()
            if one.name not in {tool.name for tool in self._history}
        }
        self._roots: asyncio.Task[None] | None = None

    def allow(self, directories: Iterable[str | os.PathLike[str]]) -> None:
        """Serve these directories instead of the present ones."""
        self._directories.use(directories)
        # Like the reference server, writes do not check what has changed in the meantime.
        self.toolset = Toolset(
            self._session, self._directories.first, tools=self._tools, provider="mcp", refuse_stale_writes=False
        )

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Handle `tools/list`."""
        names = {tool.name for tool in self._tools}
        own = [one for one in reference_definitions() if one.name in names]
        added = [one for one in definitions.listed(self.toolset) if one.name not in self._known]
        return types.ListToolsResult(tools=[*own, *added])

    async def prepare(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Wait for the client's roots, and drop unknown arguments as the reference server does."""
        if self._roots is not None:
            await asyncio.wait([self._roots])
        known = self._known.get(name)
        return arguments if known is None else {key: value for key, value in arguments.items() if key in known}

    def answer(self, name: str, result: ToolResult[object]) -> types.CallToolResult:
        """Return a result in the reference server's form."""
        if name not in self._known:
            return definitions.answered(result)
        if not result.success:
            return types.CallToolResult(content=[types.TextContent(text=result.message)], is_error=True)
        if name == "read_media_file":
            item = json.loads(result.message)
            return types.CallToolResult.model_validate({"content": [item], "structuredContent": {"content": [item]}})
        return types.CallToolResult(
            content=[types.TextContent(text=result.message)], structured_content={"content": result.message}
        )

    async def ask_for_roots(self, context: Context, params: types.NotificationParams) -> None:
        """Serve the client's roots, if it offers any."""
        capabilities = context.session.client_capabilities
        if capabilities is None or capabilities.roots is None:
            return
        self._roots = asyncio.create_task(self._use_roots(context))
        await asyncio.wait([self._roots])

    async def _use_roots(self, context: Context) -> None:
        try:
            found = await context.session.send_request(
                types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=ROOTS_TIMEOUT
            )
            roots = await asyncio.to_thread(valid_roots, [str(root.uri) for root in found.roots])
            if roots:
                await asyncio.to_thread(self.allow, roots)
            else:
                logger.warning("the client named no directory as a root; keeping %s", self._directories.allowed)
        except Exception as error:
            # If the client's roots are unusable, the server keeps its own directories.
            logger.warning("cannot use the client's roots: %s; keeping %s", error, self._directories.allowed)
