"""Agents of pydantic-ai whose models follow a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import pytest
from attrs import frozen
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.integrations.pydantic_ai import SessionToolset

Calls = Iterable[tuple[str, dict[str, Any] | str]]


def scripted(*turns: Calls, answer: str = "done") -> FunctionModel:
    """Return a model that makes the calls of each turn in parallel, and then answers."""

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        made = sum(isinstance(message, ModelResponse) for message in messages)
        if made < len(turns):
            return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in turns[made]])
        return ModelResponse(parts=[TextPart(answer)])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        for index, part in enumerate(reply(messages, info).parts):
            if isinstance(part, ToolCallPart):
                text = part.args if isinstance(part.args, str) else json.dumps(part.args)
                yield {index: DeltaToolCall(name=part.tool_name, json_args=text, tool_call_id=part.tool_call_id)}
            elif isinstance(part, TextPart):
                yield part.content

    return FunctionModel(reply, stream_function=stream)


@frozen
class Nothing:
    """The parameters of a tool that has none."""


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def returns(messages: Iterable[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


@pytest.fixture(autouse=True)
def event_loop() -> Iterator[None]:
    """Close the loop on which `run_sync` runs."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    asyncio.set_event_loop(None)


@pytest.fixture
def session() -> Session:
    return Session(session_id="main")


@pytest.fixture
def files(session: Session) -> InMemoryFilesystem:
    return InMemoryFilesystem(session)


@pytest.fixture
def tools(session: Session, files: InMemoryFilesystem) -> SessionToolset[object]:
    return SessionToolset(Toolset(session, files))


def agent(model: Any, *toolsets: SessionToolset[object]) -> Agent[object, str]:
    return Agent(model, toolsets=toolsets, name="helper", deps_type=object)
