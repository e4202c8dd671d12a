"""Tools for Anthropic's SDK that work on a session: memory, text editor, and the tools of any toolset.

`client.beta.messages.tool_runner(tools=[MemoryTool(session), *runnable_tools(toolset)])`. Every call is recorded and
can be undone. Needs the extra `weakfs[anthropic]`.
"""

from __future__ import annotations

from weakfs.integrations.missing_packages import needed

with needed("anthropic", at_least="2.0"):
    import anthropic.lib.tools  # noqa: F401

from weakfs.integrations.anthropic.editor import AsyncTextEditorTool, TextEditorTool
from weakfs.integrations.anthropic.memory import AsyncMemoryTool, MemoryTool
from weakfs.integrations.anthropic.runner import async_runnable_tools, runnable_tools

__all__ = [
    "AsyncMemoryTool",
    "AsyncTextEditorTool",
    "MemoryTool",
    "TextEditorTool",
    "async_runnable_tools",
    "runnable_tools",
]
