"""Tools: a model's calls are checked, recorded, and run so that a call that fails changes nothing.

Names are imported from their modules when they are first used: a session's registry needs only one small module of this
package, and importing the rest would take half as long as importing all lower layers. The handlers of the built-in
tools, their parameters and receipts are in `weakfs.tools.handlers`, sections of prompts in `weakfs.tools.sections`.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.tools.blobs import BlobArgument, BlobReference, Blobs
    from weakfs.tools.calls.external_call import ExternalCall, ExternalCallFailed, ExternalReceipt
    from weakfs.tools.context import ToolContext, build_tool_context, require_filesystem
    from weakfs.tools.defaults import (
        APPLY_PATCH,
        CP,
        DEFAULT_TOOLS,
        EDIT_FILE,
        EXISTS,
        GLOB,
        GREP,
        LS,
        MKDIR,
        MV,
        READ_FILE,
        RM,
        SHELL,
        STAT,
        WRITE_FILE,
    )
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
    from weakfs.tools.handlers.processes.handlers import PROCESS_TOOLS
    from weakfs.tools.history import HISTORY_TOOLS
    from weakfs.tools.permissions import CONTENTS, Capability, PathPolicy, PolicyRule
    from weakfs.tools.policy import CallToJudge, Policy
    from weakfs.tools.results import Receipt, ToolResult
    from weakfs.tools.schemas.arguments import param
    from weakfs.tools.schemas.content import Image
    from weakfs.tools.slices import ToolCall, ToolCalls
    from weakfs.tools.tool import Handler, Tool
    from weakfs.tools.toolset import Toolset

__all__ = [
    "APPLY_PATCH",
    "CONTENTS",
    "CP",
    "DEFAULT_TOOLS",
    "EDIT_FILE",
    "EXISTS",
    "GLOB",
    "GREP",
    "HISTORY_TOOLS",
    "LS",
    "MKDIR",
    "MV",
    "PROCESS_TOOLS",
    "READ_FILE",
    "RM",
    "SHELL",
    "STAT",
    "WRITE_FILE",
    "BlobArgument",
    "BlobReference",
    "Blobs",
    "CallToJudge",
    "Capability",
    "DeadlineExceeded",
    "ExternalCall",
    "ExternalCallFailed",
    "ExternalReceipt",
    "Handler",
    "Image",
    "InlineTooLarge",
    "InvalidPattern",
    "InvalidRegex",
    "LimitExceeded",
    "NotText",
    "OperationForbidden",
    "PathPolicy",
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "blobs": "BlobArgument BlobReference Blobs",
        "calls.external_call": "ExternalCall ExternalCallFailed ExternalReceipt",
        "context": "ToolContext build_tool_context require_filesystem",
        "defaults": (
            "APPLY_PATCH CP DEFAULT_TOOLS EDIT_FILE EXISTS GLOB GREP LS MKDIR MV READ_FILE RM SHELL STAT WRITE_FILE"
        ),
        "errors": (
            "DeadlineExceeded InlineTooLarge InvalidPattern InvalidRegex LimitExceeded NotText OperationForbidden "
            "PolicyDenied StaleRead ToolValidationError UnknownBlob UnknownTool UnreadFile"
        ),
        "handlers.processes.handlers": "PROCESS_TOOLS",
        "history": "HISTORY_TOOLS",
        "permissions": "CONTENTS Capability PathPolicy PolicyRule",
        "policy": "CallToJudge Policy",
        "results": "Receipt ToolResult",
        "schemas.arguments": "param",
        "schemas.content": "Image",
        "slices": "ToolCall ToolCalls",
        "tool": "Handler Tool",
        "toolset": "Toolset",
    },
)
