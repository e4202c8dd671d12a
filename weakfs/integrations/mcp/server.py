"""The server of a toolset: tools and resources, on the SDK's low-level server."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler

import weakfs
from weakfs.integrations.mcp.calls import CallHandler, Context
from weakfs.integrations.mcp.definitions import answered, listed
from weakfs.integrations.mcp.notifications import Notifications
from weakfs.integrations.mcp.resources import Resources
from weakfs.tools import Toolset

INSTRUCTIONS = (
    "Every call either succeeds as a whole or changes nothing. timeline shows what happened; undo reverses the last "
    "change, revert reverses one call, restore brings back a snapshot. Files are resources: weakfs:///path, and "
    "weakfs:///path?at=RECORD for an earlier version."
)


def toolset_server(
    toolset: Toolset, *, name: str = "weakfs", instructions: str | None = INSTRUCTIONS, resources: bool = True
) -> Server[Any]:
    """Return a server for a toolset's tools and, with `resources`, its files.

    No other server may change the session at the same time unless it was opened with `on_conflict="merge"`. The caller
    must close the session.
    """
    tools = listed(toolset)

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    call_tool = CallHandler(lambda: toolset, lambda name, result: answered(result))
    server: Server[Any] = Server(
        name,
        version=weakfs.__version__,
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    if resources:
        add_resources(server, toolset)
    return server


def add_resources(server: Server[Any], toolset: Toolset) -> Notifications:
    """Serve the files of a toolset as resources, with notifications of their changes."""
    files = Resources(toolset)
    notifications = Notifications(toolset)
    paged, uri = types.PaginatedRequestParams, types.SubscribeRequestParams
    server.add_request_handler("resources/list", paged, files.list)
    server.add_request_handler("resources/templates/list", paged, files.templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, files.read)
    server.add_request_handler("resources/subscribe", uri, notifications.subscribe)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, notifications.unsubscribe)
    listen = ListenHandler(notifications.bus)
    server.add_request_handler(
        "subscriptions/listen", types.SubscriptionsListenRequestParams, notifications.listening(listen)
    )
    server.middleware.append(notifications.remember_client)
    return notifications
