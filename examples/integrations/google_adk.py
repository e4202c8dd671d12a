"""An agent works on a session, breaks it, and gets it back: `python -m examples.integrations.google_adk`.

The model is a script, so no network is needed. The second half runs in another process.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import tempfile
import warnings
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.environment import EnvironmentToolset
from google.genai import types

from weakfs import InMemoryFilesystem, Session
from weakfs.integrations.google_adk import RewindPlugin, WeakfsEnvironment
from weakfs.tools import ToolCall
from weakfs.tools.handlers import ShellOptions

Call = tuple[str, dict[str, Any]]
CALLS: Sequence[Call] = [
    ("EditFile", {"path": "src/app.py", "old_string": "port = 80", "new_string": "port = 8000"}),
    ("WriteFile", {"path": "docs/ports.md", "content": "8000: the server\n"}),
    ("EditFile", {"path": "src/app.py", "old_string": "host = 'localhost'", "new_string": "host = '0.0.0.0'"}),
    ("Execute", {"command": "rm -r src docs"}),
]


class Script(BaseLlm):
    """A model that makes one call after another."""

    calls: list[Call]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        part = types.Part(text="done")
        if self.calls:
            name, arguments = self.calls.pop(0)
            part = types.Part(function_call=types.FunctionCall(name=name, args=arguments))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def runner(session: Session, calls: Sequence[Call], plugin: RewindPlugin) -> Runner:
    environment = WeakfsEnvironment(session, shell=ShellOptions(sandbox="auto"), caller="agent")
    tools = EnvironmentToolset(environment=environment)
    agent = LlmAgent(name="agent", model=Script(model="script", calls=list(calls)), tools=[tools])
    app = App(name="shop", root_agent=agent, plugins=[plugin])
    sessions = InMemorySessionService()
    return Runner(app=app, session_service=sessions, auto_create_session=True)


async def work(agent: Runner, session: Session) -> str:
    """Let the agent make its calls in one run, print the answers, and return the run's id."""
    invocation = ""
    message = types.Content(role="user", parts=[types.Part(text="Move the server to port 8000.")])
    async for event in agent.run_async(user_id="ann", session_id="chat", new_message=message):
        invocation = event.invocation_id
        for answer in event.get_function_responses():
            print(f"{answer.name}: {answer.response}"[:90])
    print(f"left: {shown(session)}", flush=True)
    return invocation


def shown(session: Session) -> str:
    """Return the files of a session in one line."""
    return " ".join(one.path for one in InMemoryFilesystem(session).walk("/") if one.is_file) or "nothing"


async def first_half(sessions: Path) -> None:
    with Session.open(sessions, "chat") as session:
        InMemoryFilesystem(session).write("/src/app.py", "port = 80\n")
        plugin = RewindPlugin(session)
        agent = runner(session, CALLS, plugin)
        invocation = await work(agent, session)
        # The conversation is rewound to before the run, and the files with it.
        await plugin.rewind(agent, user_id="ann", session_id="chat", rewind_before_invocation_id=invocation)
        print(f"left: {shown(session)}", flush=True)
        session.undo()


async def second_half(sessions: Path) -> None:
    with Session.open(sessions, "chat") as session:
        # The rewind was undone. The calls can also be reverted one by one.
        deletion = next(call for call in reversed(session[ToolCall].all()) if call.tool == "execute")
        session.revert(deletion.call_id)
        print(f"left: {shown(session)}", flush=True)
        writes = ("WriteFile", {"path": "notes.md", "content": "all is well\n"})
        await work(runner(session, [writes], RewindPlugin(session)), session)
        print("calls:", " ".join(call.tool for call in session[ToolCall].all()))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        sessions = Path(directory) / "sessions"
        asyncio.run(first_half(sessions))
        subprocess.run([sys.executable, "-m", "examples.integrations.google_adk", str(sessions)], check=True)


if __name__ == "__main__":
    # The ADK warns at each use that environments are experimental.
    warnings.filterwarnings("ignore", message=".*EXPERIMENTAL", category=UserWarning)
    logging.getLogger("google_adk").setLevel(logging.ERROR)
    if len(sys.argv) == 2:
        asyncio.run(second_half(Path(sys.argv[1])))
    else:
        main()
