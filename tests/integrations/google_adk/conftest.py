"""A conversation with an agent of Google's ADK whose model follows a script."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest


class Conversation:
    """One conversation over an environment; each run makes the calls that it is given."""

    KEYS = {"app_name": "app", "user_id": "ann", "session_id": "chat"}  # noqa: RUF012

    def __init__(self, environment: Any, *, plugins: tuple[Any, ...] = (), artifacts: Any = None) -> None:
        from google.adk.agents import LlmAgent
        from google.adk.apps import App
        from google.adk.models.base_llm import BaseLlm
        from google.adk.models.llm_response import LlmResponse
        from google.adk.runners import Runner
        from google.adk.sessions import InMemorySessionService
        from google.adk.tools.environment import EnvironmentToolset
        from google.genai import types

        pending: list[tuple[str, dict[str, Any]]] = []

        class Script(BaseLlm):
            async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
                part = types.Part(text="done")
                if pending:
                    name, arguments = pending.pop(0)
                    part = types.Part(function_call=types.FunctionCall(name=name, args=arguments))
                yield LlmResponse(content=types.Content(role="model", parts=[part]))

        self._pending = pending
        self.sessions = InMemorySessionService()
        self.agent = LlmAgent(
            name="agent", model=Script(model="script"), tools=[EnvironmentToolset(environment=environment)]
        )
        self.runner = Runner(
            app=App(name="app", root_agent=self.agent, plugins=list(plugins)),
            session_service=self.sessions,
            artifact_service=artifacts,
            auto_create_session=True,
        )

    async def run(self, *calls: tuple[str, dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
        """Make the calls; return the id of the invocation and the answers of the tools."""
        from google.genai import types

        self._pending[:] = calls
        answers: list[dict[str, Any]] = []
        invocation = ""
        message = types.Content(role="user", parts=[types.Part(text="go on")])
        async for event in self.runner.run_async(user_id="ann", session_id="chat", new_message=message):
            invocation = event.invocation_id
            answers += [answer.response or {} for answer in event.get_function_responses()]
        return invocation, answers


@pytest.fixture
def conversation() -> type[Conversation]:
    return Conversation
