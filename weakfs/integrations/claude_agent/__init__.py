"""Sessions for the Claude Agent SDK: hooks that record every tool, weakfs tools in process, transcripts in storage.

In `ClaudeAgentOptions`, pass the result of `hooks` as `hooks`, that of `mcp_server` in `mcp_servers`, and a
`StorageSessionStore` as `session_store`. Needs the extra `weakfs[claude-agent]`.
"""

from __future__ import annotations

from weakfs.integrations.missing_packages import needed

with needed("claude_agent", package="claude-agent-sdk", modules=("claude_agent_sdk",)):
    import claude_agent_sdk  # noqa: F401

from weakfs.integrations.claude_agent.hooks import hooks
from weakfs.integrations.claude_agent.server import mcp_server
from weakfs.integrations.claude_agent.session_store import StorageSessionStore
from weakfs.integrations.claude_code.events import READ_ONLY_TOOLS

__all__ = ["READ_ONLY_TOOLS", "StorageSessionStore", "hooks", "mcp_server"]
