"""Tool calls: each `tools/call` request is one call of the toolset, with its id and caller."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from secrets import token_hex
from typing import Any, cast

import mcp_types as types
from attrs import frozen
from mcp.server.context import ServerRequestContext

from weakfs.messages import clip, one_line
from weakfs.session import SessionError
from weakfs.tools import ToolResult, Toolset
from weakfs.tools.calls.call_json import recorded

logger = logging.getLogger("weakfs.integrations.mcp")

Context = ServerRequestContext[Any, Any]
Answer = Callable[[str, ToolResult[object]], types.CallToolResult]

# Keys of `_meta` in results.
CALL_ID = "weakfs/callId"
ERROR_CODE = "weakfs/errorCode"

# The maximum recorded lengths of a client's name and of a request's id.
MAX_NAME = 100


def call_id_of(context: Context) -> str:
    """Return the id of a call: the request's JSON-RPC id, with a suffix that makes it unique in the session.

    Clients count their requests from 0 or 1 on every connection, and a session in storage does not make a call with a
    known id twice.
    """
    return f"rpc-{one_line(clip(str(context.request_id), MAX_NAME))}-{token_hex(3)}"


def caller_of(context: Context) -> str:
    """Return the caller: the client's name and, for an HTTP session, the beginning of the session's id."""
    params = context.session.client_params
    name = "mcp" if params is None else f"{params.client_info.name} {params.client_info.version}".strip()
    headers: Mapping[str, str] = getattr(context.request, "headers", None) or {}
    transport_session = headers.get("mcp-session-id")
    name = one_line(clip(name, MAX_NAME)) or "mcp"
    return name if transport_session is None else f"{name} {one_line(transport_session[:8])}"


def failure(message: str, *, code: str) -> types.CallToolResult:
    """Return a failed call as a result that the model can read."""
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True, _meta={ERROR_CODE: code})


def plain_receipt(result: ToolResult[object]) -> dict[str, object]:
    """Return a receipt as plain JSON values, without unknown ones."""
    return cast("dict[str, object]", _without_nulls(json.loads(recorded(result.value))))


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {name: _without_nulls(one) for name, one in fields.items() if one is not None}
    return [_without_nulls(one) for one in cast("list[object]", value)] if isinstance(value, list) else value


@frozen(eq=False)
class CallHandler:
    """Handles `tools/call`: makes the call and always returns an MCP result.

    If the request is cancelled or the connection ends, the call is rolled back.
    """

    toolset: Callable[[], Toolset]
    answer: Answer
    prepare: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]] | None = None

    async def __call__(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Make one call."""
        call_id = call_id_of(context)
        arguments = params.arguments or {}
        if self.prepare is not None:
            arguments = await self.prepare(params.name, arguments)
        try:
            done = await self.toolset().acall(params.name, arguments, call_id=call_id, caller=caller_of(context))
            result = self.answer(params.name, done)
            meta = {CALL_ID: call_id}
            if done.error_code is not None:
                meta[ERROR_CODE] = done.error_code
        except SessionError as error:
            # For example, a conflict with another process that uses the session. The call is undone.
            return failure(f"the call was undone: {error}", code="session_error")
        except Exception as error:
            logger.exception("the tool %s failed unexpectedly; the call was undone", params.name)
            text = f"{type(error).__name__}: {error}"
            return failure(f"the tool failed unexpectedly and was undone: {clip(text, 500)}", code="internal_error")
        return result.model_copy(update={"meta": meta})
