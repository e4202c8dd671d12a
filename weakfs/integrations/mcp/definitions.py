"""Definitions of tools for `tools/list`: schemas of arguments and results, and hints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types

from weakfs.integrations.mcp.calls import plain_receipt
from weakfs.tools import Receipt, ToolResult, Toolset
from weakfs.tools.schemas import schema_of

# Hints for tools that have none in their definitions.
_REPLACES = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)
_HINTS: Mapping[str, types.ToolAnnotations] = {
    "timeline": types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
    "snapshot": _REPLACES.model_copy(update={"destructive_hint": False}),
    **dict.fromkeys(("undo", "redo", "revert", "restore"), _REPLACES),
}


def listed(toolset: Toolset) -> list[types.Tool]:
    """Return the definitions of a toolset's tools, in the toolset's order."""
    receipts = {tool.name: tool.receipt for tool in toolset.tools}
    found: list[types.Tool] = []
    for definition in toolset.definitions("mcp"):
        tool = types.Tool.model_validate(definition)
        update: dict[str, Any] = {}
        if tool.name in _HINTS:
            update["annotations"] = _HINTS[tool.name]
        if _is_described(receipts[tool.name]):
            update["output_schema"] = _output_schema(receipts[tool.name])
        found.append(tool.model_copy(update=update))
    return found


def answered(result: ToolResult[object]) -> types.CallToolResult:
    """Return the result of a call for MCP, with the receipt as structured content if its schema is declared."""
    content = types.CallToolResult.model_validate({"content": result.content("mcp")}).content
    structured = plain_receipt(result) if result.success and _is_described(type(result.value)) else None
    return types.CallToolResult(content=content, structured_content=structured, is_error=not result.success)


def _is_described(receipt: type) -> bool:
    """Return whether a receipt class is one of the library's own, which contain everything that the message says.

    The receipts of custom tools might not.
    """
    return issubclass(receipt, Receipt) and receipt is not Receipt and receipt.__module__.startswith("weakfs.")


def _output_schema(receipt: type) -> dict[str, object]:
    """Return the schema of a receipt, in which unknown values are left out rather than null."""
    schema = dict(schema_of(receipt))
    schema["required"] = ["status", "summary_text"]
    return schema
