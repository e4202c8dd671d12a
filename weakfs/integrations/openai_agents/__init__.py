"""Sessions for the OpenAI Agents SDK: tools, a patch editor, a shell, and a sandbox with snapshots.

`Agent(tools=function_tools(toolset))`, `ApplyPatchTool(editor=SessionEditor(toolset))`,
`ShellTool(executor=SessionShell(toolset))` and `SandboxRunConfig(client=WeakfsSandboxClient(location))`. Needs the
extra `weakfs[openai-agents]`.
"""

from __future__ import annotations

from weakfs.integrations.missing_packages import needed

with needed("openai_agents", modules=("agents",), at_least="0.24"):
    # Versions before 0.24 do not have this name.
    from agents.sandbox.session import BaseSandboxClient  # noqa: F401

from weakfs.integrations.openai_agents.client import WeakfsSandboxClient, WeakfsSandboxOptions, WeakfsSandboxState
from weakfs.integrations.openai_agents.sandbox import WeakfsSandboxSession
from weakfs.integrations.openai_agents.snapshots import WeakfsSnapshot, WeakfsSnapshotSpec
from weakfs.integrations.openai_agents.tools import SessionEditor, SessionShell, function_tools

__all__ = [
    "SessionEditor",
    "SessionShell",
    "WeakfsSandboxClient",
    "WeakfsSandboxOptions",
    "WeakfsSandboxSession",
    "WeakfsSandboxState",
    "WeakfsSnapshot",
    "WeakfsSnapshotSpec",
    "function_tools",
]
