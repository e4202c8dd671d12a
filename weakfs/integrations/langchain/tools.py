"""The tools of a toolset as structured tools of LangChain."""

from __future__ import annotations

from base64 import b64encode
from contextvars import ContextVar
from secrets import token_hex
from typing import Any, cast

from langchain_core.tools import StructuredTool, ToolException

from weakfs.class_decorators import frozen
from weakfs.tools import ToolResult, Toolset
from weakfs.tools.schemas.content import Provider

# The key under which each provider's definitions have the schema of the arguments.
_SCHEMA_KEYS = ("input_schema", "inputSchema", "parameters")

# The content for the model, and an artifact with the id of the call for the program.
Content = tuple[str | list[dict[str, Any]], dict[str, Any]]


@frozen
class Identity:
    """The id of a call, and its caller."""

    call_id: str
    caller: str | None


# The identity of the call that the middleware is about to make.
identity: ContextVar[Identity | None] = ContextVar("weakfs_langchain_identity", default=None)


class SessionTool(StructuredTool):
    """A tool of a toolset. Each call is recorded, and a call that fails has changed nothing."""

    read_only: bool = False


def structured_tools(toolset: Toolset, *, caller: str | None = None) -> list[StructuredTool]:
    """Return the tools of a toolset for `create_agent`, or for a model's `bind_tools`.

    A failed call, including one with wrong arguments, returns a message with the status "error" and the reason. The
    artifact of a successful call has the `call_id` with which the session records the receipt. `caller` is recorded as
    the caller, unless a `SessionMiddleware` names the thread.
    """
    provider = toolset.provider or "mcp"
    # Gemini's tools and their argument names are the same.
    form: Provider = "anthropic" if provider == "gemini" else provider
    known = {tool.name: tool for tool in toolset.tools}
    made: list[StructuredTool] = []
    for given in toolset.definitions(form, strict_schemas=False):
        definition = cast("dict[str, Any]", given.get("function", given))
        name = str(definition["name"])
        schema = next(definition[key] for key in _SCHEMA_KEYS if key in definition)
        made.append(_tool(toolset, name, str(definition["description"]), schema, known[name].read_only, caller))
    return made


def _tool(
    toolset: Toolset, name: str, description: str, schema: dict[str, Any], read_only: bool, caller: str | None
) -> SessionTool:
    def who() -> Identity:
        return identity.get() or Identity(f"{name}@{token_hex(6)}", caller)

    def call(**arguments: Any) -> Content:
        made = who()
        return _content(toolset.call(name, arguments, call_id=made.call_id, caller=made.caller), made.call_id)

    async def acall(**arguments: Any) -> Content:
        made = who()
        return _content(await toolset.acall(name, arguments, call_id=made.call_id, caller=made.caller), made.call_id)

    return SessionTool(
        name=name,
        description=description,
        args_schema=schema,
        func=call,
        coroutine=acall,
        response_format="content_and_artifact",
        handle_tool_error=True,
        read_only=read_only,
    )


def _content(result: ToolResult[object], call_id: str) -> Content:
    if not result.success:
        raise ToolException(result.message)
    # Checkpoints store the artifact too, so it has no receipt; that is in the session.
    artifact = {"call_id": call_id}
    if not result.images:
        return result.message, artifact
    images = [
        {"type": "image", "base64": b64encode(image.data).decode(), "mime_type": image.media_type}
        for image in result.images
    ]
    return [{"type": "text", "text": result.message}, *images], artifact
