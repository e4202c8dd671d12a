"""The SDK's tool runner with our tools, against a scripted API."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
from anthropic import Anthropic, AsyncAnthropic, DefaultAsyncHttpxClient, DefaultHttpxClient

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.integrations.anthropic import (
    AsyncMemoryTool,
    AsyncTextEditorTool,
    MemoryTool,
    TextEditorTool,
    async_runnable_tools,
    runnable_tools,
)
from weakfs.tools import ToolCall

Calls = list[tuple[str, object]]


class Api:
    """Answers with the calls of each turn, then with a text, and keeps the requests."""

    def __init__(self, *turns: Calls) -> None:
        self.turns = list(turns)
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(request.content))
        calls = self.turns.pop(0) if self.turns else []
        content: list[dict[str, object]] = [
            {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}
            for number, (name, given) in enumerate(calls)
        ]
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": content or [{"type": "text", "text": "done"}],
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return httpx2.Response(200, json=message)

    def results(self) -> list[dict[str, Any]]:
        # Newer versions send only what is new.
        return [block for request in self.requests[1:] for block in request["messages"][-1]["content"]]


TURNS: tuple[Calls, ...] = (
    [("write_file", {"file_path": "/a", "content": "1\n"}), ("memory", {"command": "view", "path": "/memories"})],
    [("read_file", {"file_path": "/no"}), ("read_file", {"path": 3})],
    [("str_replace_based_edit_tool", {"command": "str_replace", "path": "/a", "old_str": "1", "new_str": "2"})],
    [("read_file", {"file_path": "/p.png"})],
)


def check(api: Api, session: Session) -> None:
    results = api.results()
    assert [bool(block.get("is_error")) for block in results] == [False, False, True, True, False, False]
    assert "/no" in str(results[2]["content"])
    assert results[5]["content"][1]["source"]["media_type"] == "image/png"
    assert InMemoryFilesystem(session).read("/a").content == "2\n"
    assert [call.status for call in session[ToolCall].all()].count("ok") == 4
    names = [tool["name"] for tool in api.requests[0]["tools"]]
    assert {"memory", "str_replace_based_edit_tool", "edit_file"} <= set(names)
    session.undo()
    assert InMemoryFilesystem(session).read("/a").content == "1\n"


def prepared() -> Session:
    session = Session(session_id="main")
    InMemoryFilesystem(session).write_bytes("/p.png", b"\x89PNG\r\n\x1a\n" + bytes(10))
    return session


def test_the_runner_runs_our_tools() -> None:
    api, session = Api(*TURNS), prepared()
    with DefaultHttpxClient(transport=httpx2.MockTransport(api)) as http:
        client = Anthropic(api_key="none", http_client=http)
        tools = runnable_tools(Toolset(session, provider="anthropic"), caller="claude")
        runner = client.beta.messages.tool_runner(
            model="claude-test",
            max_tokens=100,
            messages=[{"role": "user", "content": "go"}],
            tools=[MemoryTool(session), TextEditorTool(session), *tools],
        )
        assert runner.until_done().content[0].type == "text"
    check(api, session)


def test_the_async_runner_runs_our_tools() -> None:
    api, session = Api(*TURNS), prepared()

    async def main() -> None:
        async with DefaultAsyncHttpxClient(transport=httpx2.MockTransport(api)) as http:
            client = AsyncAnthropic(api_key="none", http_client=http)
            tools = async_runnable_tools(Toolset(session, provider="anthropic"))
            runner = client.beta.messages.tool_runner(
                model="claude-test",
                max_tokens=100,
                messages=[{"role": "user", "content": "go"}],
                tools=[AsyncMemoryTool(session), AsyncTextEditorTool(session), *tools],
            )
            await runner.until_done()

    asyncio.run(main())
    check(api, session)
