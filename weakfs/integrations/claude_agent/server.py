"""The tools of a `Toolset` as an MCP server in the process of the Claude Agent SDK."""

from __future__ import annotations

from claude_agent_sdk import McpSdkServerConfig

from weakfs.integrations.mcp import toolset_server
from weakfs.tools import Toolset


def mcp_server(toolset: Toolset, *, name: str = "weakfs") -> McpSdkServerConfig:
    """Return a server for `ClaudeAgentOptions(mcp_servers={name: ...})`: names and schemas are those of the toolset."""
    return McpSdkServerConfig(type="sdk", name=name, instance=toolset_server(toolset))
