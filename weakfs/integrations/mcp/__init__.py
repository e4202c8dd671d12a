"""MCP servers for a session: its tools, its files as resources, and a replacement for the reference filesystem server.

`toolset_server` serves the tools of a `Toolset`; `filesystem_server` serves the tools of
`@modelcontextprotocol/server-filesystem` for host directories. Both return a low-level `mcp.server.Server`, which
`serve_stdio` and `serve_http` run. Needs the extra `weakfs[mcp]`.
"""

from __future__ import annotations

from weakfs.integrations.missing_packages import needed

with needed("mcp", modules=("mcp", "mcp_types"), at_least="2.3"):
    # mcp_types has been part of mcp since 2.0.
    import mcp.server.lowlevel  # noqa: F401
    import mcp_types  # noqa: F401

from weakfs.integrations.mcp.reference.server import filesystem_server
from weakfs.integrations.mcp.server import toolset_server
from weakfs.integrations.mcp.session_tools import SESSION_TOOLS
from weakfs.integrations.mcp.transports import http_app, serve_http, serve_stdio

__all__ = ["SESSION_TOOLS", "filesystem_server", "http_app", "serve_http", "serve_stdio", "toolset_server"]
