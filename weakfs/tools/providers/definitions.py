"""Tool definitions in each provider's format, made from the classes that check the calls.

What each provider gets, and where to pass it:

- "openai": `client.chat.completions.create(tools=...)`, or with `api="responses"`,
  `client.responses.create(tools=...)`. Definitions are strict where strict mode can express the parameters; then every
  call of the model is well-formed and has every parameter, with `null` for each one that the model leaves out. Models
  get `apply_patch` to edit files.
- "anthropic": `client.messages.create(tools=...)`. Models get `edit_file`.
- "gemini": function declarations, for `types.Tool(function_declarations=...)` or the dict of that name. Models get
  `edit_file`.
- "mcp": `types.Tool.model_validate(...)` for each, or the list itself as the answer to
  `tools/list`.

Arguments have the names that the provider's models know (`file_path`); a call accepts those and weakfs's own.
Definitions are in the order of the tools, and the same tools always give the same JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import cast, get_args

from weakfs.tools.providers.profiles import defaults_for, hints_of, left_out_of, names_of, offered, title_of
from weakfs.tools.schemas import Schema, is_strict_compatible, openapi, schema_of, strict
from weakfs.tools.schemas.content import OpenAIApi, Provider, check_provider
from weakfs.tools.tool import Tool

# The names that Gemini accepts: they start with a letter or an underscore.
_GEMINI_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def definitions(
    tools: Iterable[Tool],
    provider: Provider,
    *,
    api: OpenAIApi = "chat",
    strict_schemas: bool = True,
    used_by: Provider | None = None,
) -> list[dict[str, object]]:
    """Return the definitions of tools for a provider, one for each tool, ready to be sent as JSON.

    `api` and `strict_schemas` concern OpenAI only: `strict_schemas=False` leaves optional parameters optional, for
    servers that implement its API without strict mode. `used_by` is the provider whose defaults apply to calls. Raises
    `ValueError` for an unknown provider, and for a tool that the provider does not accept.
    """
    check_provider(provider)
    if api not in get_args(OpenAIApi):
        raise ValueError(f"OpenAI has no API {api!r}; use one of {', '.join(get_args(OpenAIApi))}")
    chosen = offered(list(tools), provider)
    if provider == "openai":
        return [_openai(tool, _schema(tool, provider, used_by), api, strict_schemas) for tool in chosen]
    describe = _DESCRIBE[provider]
    return [describe(tool, _schema(tool, provider, used_by)) for tool in chosen]


def _schema(tool: Tool, provider: str, used_by: str | None) -> Schema:
    names = names_of(tool, provider)
    schema = schema_of(tool.params, names, without=left_out_of(tool, provider))
    properties = cast("dict[str, Schema]", schema["properties"])
    for name, value in defaults_for(tool, used_by).items():
        if names.get(name, name) in properties:
            properties[names.get(name, name)]["default"] = value
    return schema


def _openai(tool: Tool, schema: Schema, api: OpenAIApi, strict_schemas: bool) -> dict[str, object]:
    is_strict = strict_schemas and is_strict_compatible(schema)
    function: dict[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": strict(schema) if is_strict else schema,
        "strict": is_strict,
    }
    # The Responses API has the function's fields next to its type, Chat Completions one level deeper.
    return {"type": "function", **function} if api == "responses" else {"type": "function", "function": function}


def _anthropic(tool: Tool, schema: Schema) -> dict[str, object]:
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _gemini(tool: Tool, schema: Schema) -> dict[str, object]:
    properties = cast("dict[str, object]", schema["properties"])
    for name in (tool.name, *properties):
        if not _GEMINI_NAME.fullmatch(name):
            raise ValueError(
                f"cannot describe {tool.name!r} to Gemini: names start with a letter or an underscore, followed by "
                f"those, digits and '-'; give {name!r} another name"
            )
    declaration: dict[str, object] = {"name": tool.name, "description": tool.description}
    # Gemini refuses the schema of an object without properties, so a tool without parameters has none.
    return {**declaration, "parameters": openapi(schema)} if properties else declaration


def _mcp(tool: Tool, schema: Schema) -> dict[str, object]:
    hints = hints_of(tool)
    annotations: dict[str, object] = {"readOnlyHint": tool.read_only}
    if hints is not None:
        annotations.update(
            destructiveHint=hints.destructive, idempotentHint=hints.idempotent, openWorldHint=hints.open_world
        )
    return {
        "name": tool.name,
        "title": title_of(tool),
        "description": tool.description,
        "inputSchema": schema,
        "annotations": annotations,
    }


_DESCRIBE: dict[str, Callable[[Tool, Schema], dict[str, object]]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "mcp": _mcp,
}
