"""The tools of the MCP project's reference filesystem server, `@modelcontextprotocol/server-filesystem`.

`tools.json` contains the definitions of version 2026.8.31, as the server returns them for `tools/list`.
"""
