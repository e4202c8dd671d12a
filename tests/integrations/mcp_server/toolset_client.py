"""A client of a toolset's server, in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.client.client import Client

from weakfs import (
    DEFAULT_TOOLS,
    Session,
    Toolset,
)
from weakfs.integrations.mcp import SESSION_TOOLS, toolset_server

ERAS = ["legacy", "2026-07-28"]


TOOLS = (*DEFAULT_TOOLS, *SESSION_TOOLS)


def served(session: Session, work: Callable[[Client], Awaitable[None]], mode: str = "legacy", **options: Any) -> None:
    tools = options.pop("tools", TOOLS)
    toolset = Toolset(session, options.pop("filesystem", None), tools=tools, provider="mcp", **options)

    async def run() -> None:
        async with Client(toolset_server(toolset), mode=mode) as client:
            await asyncio.wait_for(work(client), 300)

    asyncio.run(run())


async def call(client: Client, name: str, **arguments: object) -> types.CallToolResult:
    return await client.call_tool(name, arguments)


def text_of(result: types.CallToolResult) -> str:
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text
