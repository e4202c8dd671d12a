"""Definitions on their way through the clients of Google and of MCP, and calls on their way back."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, cast

from google import genai
from google.genai import types as gemini
from mcp import Client
from mcp import types as mcp
from mcp.server import Server

from weakfs import Session, Toolset

Json = dict[str, object]

CALL = {"name": "write_file", "args": {"file_path": "/a", "content": "from Gemini"}}
ANSWER = {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": CALL}]}, "finishReason": "STOP"}]}


def ask_gemini(config: gemini.GenerateContentConfig) -> tuple[Json, gemini.GenerateContentResponse]:
    """Send one request to a server that answers with a call, and return the request that it received."""
    bodies: list[Json] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(ANSWER).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        options = gemini.HttpOptions(base_url=f"http://127.0.0.1:{server.server_address[1]}")
        with genai.Client(api_key="test", http_options=options) as client:
            response = client.models.generate_content(model="m", contents="Hello", config=config)
        thread.join()
    return bodies[0], response


def test_the_google_client_sends_declarations_unchanged_and_its_calls_are_accepted() -> None:
    toolset = Toolset(Session(session_id="s"))
    made = toolset.definitions("gemini")
    tools = [gemini.Tool(function_declarations=[gemini.FunctionDeclaration.model_validate(one) for one in made])]

    sent, response = ask_gemini(gemini.GenerateContentConfig(tools=cast("Any", tools)))

    (tool,) = cast("list[Json]", sent["tools"])
    assert lower_types(tool["functionDeclarations"]) == made
    (call,) = response.function_calls or []
    assert toolset.call(call.name or "", call.args or {}).success
    assert toolset.call("read_file", {"file_path": "/a"}).message == "from Gemini"


def lower_types(value: object) -> object:
    if isinstance(value, dict):
        items = cast(Json, value)
        return {
            key: one.lower() if key == "type" and isinstance(one, str) else lower_types(one)
            for key, one in items.items()
        }
    return [lower_types(one) for one in cast("list[object]", value)] if isinstance(value, list) else value


def test_an_mcp_server_lists_the_definitions_and_its_client_calls_them() -> None:
    toolset = Toolset(Session(session_id="s"))
    made = toolset.definitions("mcp")

    async def list_tools(context: object, params: object) -> mcp.ListToolsResult:
        return mcp.ListToolsResult.model_validate({"tools": made})

    async def call_tool(context: object, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        result = await toolset.acall(params.name, params.arguments or {})
        return mcp.CallToolResult(
            content=[mcp.TextContent(type="text", text=result.message)], is_error=not result.success
        )

    async def talk() -> list[object]:
        server = Server("weakfs", on_list_tools=list_tools, on_call_tool=call_tool)
        async with Client(server) as client:
            listed = await client.list_tools()
            written = await client.call_tool("write_file", {"path": "/a", "content": "from MCP"})
            wrong = await client.call_tool("read_file", {"path": "/none"})
            return [[tool.model_dump(by_alias=True, exclude_none=True) for tool in listed.tools], written, wrong]

    listed, written, wrong = cast("tuple[list[Json], mcp.CallToolResult, mcp.CallToolResult]", asyncio.run(talk()))

    assert listed == made
    assert (written.is_error, wrong.is_error) == (False, True)
    assert toolset.call("read_file", {"path": "/a"}).message == "from MCP"
