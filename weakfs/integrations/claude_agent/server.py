"""The tools of a `Toolset` as an in-process MCP server for the Claude Agent SDK."""

from __future__ import annotations

from claude_agent_sdk import McpSdkServerConfig

from weakfs.integrations.mcp import toolset_server
from weakfs.tools import Toolset


def mcp_server(toolset: Toolset, *, name: str = "weakfs") -> McpSdkServerConfig:
    """Return a server for `ClaudeAgentOptions(mcp_servers={name: ...})`, with the toolset's names and schemas."""
    return McpSdkServerConfig(type="sdk", name=name, instance=toolset_server(toolset))
