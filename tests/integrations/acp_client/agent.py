"""An agent of the Agent Client Protocol that follows a script: a prompt is a JSON list of steps."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any, cast

import acp
from acp.schema import (
    ClientCapabilities,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)

OPTIONS = [
    PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
    PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]


class Scripted:
    """Steps are ["tool", id, kind, ask, shell command, status], ["read", path], ["write", path, text]."""

    def __init__(self) -> None:
        self.directory = Path()

    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **_: Any
    ) -> InitializeResponse:
        assert client_capabilities is not None
        assert not client_capabilities.terminal
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        self.directory = Path(cwd)
        return NewSessionResponse(session_id="chat")

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> PromptResponse:
        for step in json.loads(prompt[0].text):
            said = await getattr(self, f"_{step[0]}")(*step[1:])
            await self.client.session_update(
                session_id=session_id, update=acp.update_agent_message_text(json.dumps(said))
            )
        return PromptResponse(stop_reason="end_turn")

    async def _tool(self, tool_id: str, kind: Any, asks: bool, command: str, status: Any) -> str:
        if asks:
            wanted = ToolCallUpdate(tool_call_id=tool_id, kind=kind, title=command)
            done = await self.client.request_permission(session_id="chat", tool_call=wanted, options=OPTIONS)
            if getattr(done.outcome, "option_id", None) != "yes":
                return "refused"
        start = acp.start_tool_call(tool_id, command, kind=kind, status="in_progress")
        await self.client.session_update(session_id="chat", update=start)
        # The client has seen the start once it answers.
        await self.client.read_text_file(session_id="chat", path=str(self.directory / "seen"))
        subprocess.run(command, shell=True, check=False, cwd=self.directory)
        if status is not None:
            end = acp.update_tool_call(tool_id, status=status)
            await self.client.session_update(session_id="chat", update=end)
        return "done"

    async def _read(self, path: str, line: int | None = None, limit: int | None = None) -> str:
        try:
            found = await self.client.read_text_file(session_id="chat", path=path, line=line, limit=limit)
        except acp.RequestError as error:
            return f"{error} {error.data}"
        return found.content

    async def _terminal(self) -> str:
        try:
            made = await self.client.create_terminal(session_id="chat", command="true")
        except acp.RequestError as error:
            return str(error)
        return made.terminal_id

    async def _write(self, path: str, content: str) -> str:
        try:
            await self.client.write_text_file(session_id="chat", path=path, content=content)
        except acp.RequestError as error:
            return f"{error} {error.data}"
        return "written"


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    asyncio.run(acp.run_agent(cast(acp.Agent, Scripted())))
