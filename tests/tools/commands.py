"""The tools that come with weakfs, for tests that run commands with or without a sandbox."""

from __future__ import annotations

from weakfs import DEFAULT_TOOLS, Tool
from weakfs.tools.handlers import ShellOptions, shell_tool

# A command runs in a sandbox if there is one.
TOOLS: tuple[Tool, ...] = (
    *(tool for tool in DEFAULT_TOOLS if tool.name != "shell"),
    shell_tool(ShellOptions(sandbox="auto")),
)
