"""Sessions for the Claude Agent SDK: hooks that record every tool, weakfs tools in process, transcripts in storage.

In `ClaudeAgentOptions`, pass the result of `hooks` as `hooks`, that of `mcp_server` in `mcp_servers`, and a
`StorageSessionStore` as `session_store`. Needs the extra `weakfs[claude-agent]`.
"""

from __future__ import annotations

try:
    import claude_agent_sdk  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "claude_agent_sdk":
        raise
    raise ModuleNotFoundError(
        "cannot use weakfs.integrations.claude_agent: the package claude-agent-sdk is not installed; "
        "run: pip install 'weakfs[claude-agent]'"
    ) from error

from weakfs.integrations.claude_agent.hooks import hooks
from weakfs.integrations.claude_agent.server import mcp_server
from weakfs.integrations.claude_agent.session_store import StorageSessionStore
from weakfs.integrations.claude_code.events import READ_ONLY_TOOLS

__all__ = ["READ_ONLY_TOOLS", "StorageSessionStore", "hooks", "mcp_server"]
