"""The tools of the MCP project's reference filesystem server, `@modelcontextprotocol/server-filesystem`.

`tools.json` has its definitions of version 2026.8.31, as it answers `tools/list`.
"""
