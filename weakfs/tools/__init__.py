"""Tools: calls of a model are checked, run so that a failure changes nothing, and recorded.

Names are imported from their modules when they are first used: the registry of a session needs one small module of this
package, and the rest takes half as long to import as everything below it. The handlers of the built-in tools, their
parameters and receipts are in `weakfs.tools.handlers`, sections of prompts in `weakfs.tools.sections`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weakfs.tools.blobs import BlobArgument, BlobReference, Blobs
    from weakfs.tools.context import ToolContext, build_tool_context, require_filesystem
    from weakfs.tools.defaults import DEFAULT_TOOLS, PROCESS_TOOLS
    from weakfs.tools.errors import (
        DeadlineExceeded,
        InlineTooLarge,
        InvalidPattern,
        InvalidRegex,
        LimitExceeded,
        NotText,
        OperationForbidden,
        PolicyDenied,
        StaleRead,
        ToolValidationError,
        UnknownBlob,
        UnknownTool,
        UnreadFile,
    )
    from weakfs.tools.permissions import CONTENTS, CallToJudge, Capability, Policy, PolicyRule
    from weakfs.tools.results import Receipt, ToolResult
    from weakfs.tools.schemas.arguments import param
    from weakfs.tools.schemas.content import Image
    from weakfs.tools.slices import ToolCall, ToolCalls
    from weakfs.tools.tool import Handler, Tool
    from weakfs.tools.toolset import Toolset

__all__ = [
    "CONTENTS",
    "DEFAULT_TOOLS",
    "PROCESS_TOOLS",
    "BlobArgument",
    "BlobReference",
    "Blobs",
    "CallToJudge",
    "Capability",
    "DeadlineExceeded",
    "Handler",
    "Image",
    "InlineTooLarge",
    "InvalidPattern",
    "InvalidRegex",
    "LimitExceeded",
    "NotText",
    "OperationForbidden",
    "Policy",
    "PolicyDenied",
    "PolicyRule",
    "Receipt",
    "StaleRead",
    "Tool",
    "ToolCall",
    "ToolCalls",
    "ToolContext",
    "ToolResult",
    "ToolValidationError",
    "Toolset",
    "UnknownBlob",
    "UnknownTool",
    "UnreadFile",
    "build_tool_context",
    "param",
    "require_filesystem",
]

_NAMES = {
    "weakfs.tools.blobs": ("BlobArgument", "BlobReference", "Blobs"),
    "weakfs.tools.context": ("ToolContext", "build_tool_context", "require_filesystem"),
    "weakfs.tools.defaults": ("DEFAULT_TOOLS", "PROCESS_TOOLS"),
    "weakfs.tools.errors": (
        "DeadlineExceeded",
        "InlineTooLarge",
        "InvalidPattern",
        "InvalidRegex",
        "LimitExceeded",
        "NotText",
        "OperationForbidden",
        "PolicyDenied",
        "StaleRead",
        "ToolValidationError",
        "UnknownBlob",
        "UnknownTool",
        "UnreadFile",
    ),
    "weakfs.tools.permissions": ("CONTENTS", "CallToJudge", "Capability", "Policy", "PolicyRule"),
    "weakfs.tools.results": ("Receipt", "ToolResult"),
    "weakfs.tools.schemas.arguments": ("param",),
    "weakfs.tools.schemas.content": ("Image",),
    "weakfs.tools.slices": ("ToolCall", "ToolCalls"),
    "weakfs.tools.tool": ("Handler", "Tool"),
    "weakfs.tools.toolset": ("Toolset",),
}
_HOME_OF = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'weakfs.tools' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
