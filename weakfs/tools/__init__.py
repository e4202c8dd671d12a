"""Tools: what a model calls, checked, run so that a failure changes nothing, and written down.

Names are imported from their homes when they are first used: the session's registry needs one small module of
this package, and the rest takes half as long to import as all that is below it. The handlers of the tools
that come with weakfs, their parameters and receipts, are in `weakfs.tools.handlers`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weakfs.processes import Bubblewrap, CommandLimits, Finished, SandboxUnavailable, run_command
    from weakfs.tools.blobs import BlobReference
    from weakfs.tools.context import ToolContext, build_tool_context, require_filesystem
    from weakfs.tools.defaults import DEFAULT_TOOLS
    from weakfs.tools.errors import DeadlineExceeded, ToolValidationError
    from weakfs.tools.permissions import CONTENTS, CallToJudge, Capability, Policy, PolicyRule
    from weakfs.tools.results import Receipt, ToolResult
    from weakfs.tools.schemas.arguments import param
    from weakfs.tools.sections import (
        FILESYSTEM_TOOLS,
        FilesystemSection,
        Prompt,
        RenderedPrompt,
        Section,
        VfsSection,
        WorkspaceSection,
        adispatch_tool_call,
        dispatch_tool_call,
    )
    from weakfs.tools.slices import ToolCall, ToolCalls
    from weakfs.tools.tool import Handler, Tool
    from weakfs.tools.toolset import Toolset
    from weakfs.transcripts import Skipped, Transcript, TranscriptCall, read_transcript

__all__ = [
    "CONTENTS",
    "DEFAULT_TOOLS",
    "FILESYSTEM_TOOLS",
    "BlobReference",
    "Bubblewrap",
    "CallToJudge",
    "Capability",
    "CommandLimits",
    "DeadlineExceeded",
    "FilesystemSection",
    "Finished",
    "Handler",
    "Policy",
    "PolicyRule",
    "Prompt",
    "Receipt",
    "RenderedPrompt",
    "SandboxUnavailable",
    "Section",
    "Skipped",
    "Tool",
    "ToolCall",
    "ToolCalls",
    "ToolContext",
    "ToolResult",
    "ToolValidationError",
    "Toolset",
    "Transcript",
    "TranscriptCall",
    "VfsSection",
    "WorkspaceSection",
    "adispatch_tool_call",
    "build_tool_context",
    "dispatch_tool_call",
    "param",
    "read_transcript",
    "require_filesystem",
    "run_command",
]

_HOMES = {
    "weakfs.tools.schemas.arguments": ("param",),
    "weakfs.tools.blobs": ("BlobReference",),
    "weakfs.tools.context": ("ToolContext", "build_tool_context", "require_filesystem"),
    "weakfs.tools.defaults": ("DEFAULT_TOOLS",),
    "weakfs.tools.errors": ("DeadlineExceeded", "ToolValidationError"),
    "weakfs.tools.permissions": ("CONTENTS", "CallToJudge", "Capability", "Policy", "PolicyRule"),
    "weakfs.tools.results": ("Receipt", "ToolResult"),
    "weakfs.tools.sections": (
        "FILESYSTEM_TOOLS",
        "FilesystemSection",
        "Prompt",
        "RenderedPrompt",
        "Section",
        "VfsSection",
        "WorkspaceSection",
        "adispatch_tool_call",
        "dispatch_tool_call",
    ),
    "weakfs.processes": ("Bubblewrap", "CommandLimits", "Finished", "SandboxUnavailable", "run_command"),
    "weakfs.tools.slices": ("ToolCall", "ToolCalls"),
    "weakfs.tools.tool": ("Handler", "Tool"),
    "weakfs.tools.toolset": ("Toolset",),
    "weakfs.transcripts": ("Skipped", "Transcript", "TranscriptCall", "read_transcript"),
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'weakfs.tools' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
