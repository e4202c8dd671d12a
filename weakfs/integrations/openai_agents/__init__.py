"""Sessions for the OpenAI Agents SDK: tools, a patch editor, a shell, and a sandbox with snapshots.

`Agent(tools=function_tools(toolset))`, `ApplyPatchTool(editor=SessionEditor(toolset))`,
`ShellTool(executor=SessionShell(toolset))` and `SandboxRunConfig(client=WeakfsSandboxClient(location))`. Needs the
extra `weakfs[openai-agents]`.
"""

from __future__ import annotations

try:
    # Versions before 0.24 do not have it.
    from agents.sandbox.session import BaseSandboxClient  # noqa: F401
except ImportError as error:
    if error.name is None or error.name.partition(".")[0] != "agents":
        raise
    raise ModuleNotFoundError(
        "cannot use weakfs.integrations.openai_agents: the package openai-agents is not installed, or is older than "
        "0.24; run: pip install 'weakfs[openai-agents]'"
    ) from error

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
