"""The overhead of each adapter for one call: `python -m benchmarks.adapters [--quick]`.

Each adapter writes the same file in memory through the interface that its host calls, compared with `Toolset.acall`, in
turn and in one process. Adapters that follow programs write it in a directory of at most 1,300 files, and scan that
twice. The figures are processor time; hosts that ask a model for each call have a model that answers immediately.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time_ns
from typing import Any

from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset

CALLS = 50
TEXT = "port = 80\n"

# Writes one file.
Write = Callable[[str], Awaitable[object]]
# Returns a function that writes, with its own session, which lasts until the stack is closed.
Adapter = Callable[[AsyncExitStack], Awaitable[Write]]


def _arguments(path: str) -> dict[str, str]:
    return {"path": path, "content": TEXT}


async def acall(stack: AsyncExitStack) -> Write:
    toolset = Toolset(Session())
    return lambda path: toolset.acall("write_file", _arguments(path))


async def mcp_older(stack: AsyncExitStack) -> Write:
    return await _mcp(stack, "legacy")


async def mcp_newer(stack: AsyncExitStack) -> Write:
    return await _mcp(stack, "2026-07-28")


async def _mcp(stack: AsyncExitStack, mode: str) -> Write:
    from mcp.client.client import Client

    from weakfs.integrations.mcp import toolset_server

    client = await stack.enter_async_context(Client(toolset_server(Toolset(Session(), provider="mcp")), mode=mode))
    return lambda path: client.session.call_tool("write_file", _arguments(path))


async def openai_tool(stack: AsyncExitStack) -> Write:
    from agents import FunctionTool
    from agents.tool_context import ToolContext

    from weakfs.integrations.openai_agents import function_tools

    tools = {tool.name: tool for tool in function_tools(Toolset(Session())) if isinstance(tool, FunctionTool)}

    async def write(path: str) -> object:
        arguments = json.dumps(_arguments(path))
        context = ToolContext(context=None, tool_name="write_file", tool_call_id="c", tool_arguments=arguments)
        return await tools["write_file"].on_invoke_tool(context, arguments)

    return write


async def openai_sandbox(stack: AsyncExitStack) -> Write:
    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    sandbox = await WeakfsSandboxClient().create()
    await stack.enter_async_context(sandbox)
    return lambda path: sandbox.write(Path(path[1:]), io.BytesIO(TEXT.encode()))


async def anthropic_tool(stack: AsyncExitStack) -> Write:
    from weakfs.integrations.anthropic import async_runnable_tools

    tools = {tool.name: tool for tool in async_runnable_tools(Toolset(Session(), provider="anthropic"))}
    return lambda path: tools["write_file"].call(_arguments(path))


async def anthropic_memory(stack: AsyncExitStack) -> Write:
    from weakfs.integrations.anthropic import AsyncMemoryTool

    tool = AsyncMemoryTool(Session())
    return lambda path: tool.call({"command": "create", "path": f"/memories{path}", "file_text": TEXT})


async def anthropic_editor(stack: AsyncExitStack) -> Write:
    from weakfs.integrations.anthropic import AsyncTextEditorTool

    tool = AsyncTextEditorTool(Session())
    return lambda path: tool.call({"command": "create", "path": path, "file_text": TEXT})


async def pydantic_ai(stack: AsyncExitStack) -> Write:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from weakfs.integrations.pydantic_ai import SessionToolset

    # A run makes all calls of a measurement, since each run forks the session.
    paths: list[str] = []

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not paths:
            return ModelResponse(parts=[TextPart("done")])
        parts = [ToolCallPart("write_file", _arguments(path)) for path in paths]
        paths.clear()
        return ModelResponse(parts=parts)

    agent = Agent(FunctionModel(reply), toolsets=[SessionToolset(Toolset(Session()))])

    async def write(path: str) -> object:
        paths.append(path)
        return await agent.run("go") if len(paths) == CALLS else None

    return write


async def deepagents(stack: AsyncExitStack) -> Write:
    from weakfs.integrations.deepagents import WeakfsBackend

    backend = WeakfsBackend(Session())
    return lambda path: backend.awrite(path, TEXT)


async def langchain_tool(stack: AsyncExitStack) -> Write:
    from weakfs.integrations.langchain import structured_tools

    tools = {tool.name: tool for tool in structured_tools(Toolset(Session()))}
    return lambda path: tools["write_file"].ainvoke(
        {"type": "tool_call", "id": "c", "name": "write_file", "args": _arguments(path)}
    )


async def google_adk(stack: AsyncExitStack) -> Write:
    from weakfs.integrations.google_adk import WeakfsEnvironment

    environment = WeakfsEnvironment(Session())
    return lambda path: environment.write_file(path[1:], TEXT)


async def acp(stack: AsyncExitStack) -> Write:
    from weakfs.integrations.acp import SessionClient

    directory = stack.enter_context(TemporaryDirectory())
    session = Session()
    toolset = Toolset(session, HostFilesystem(directory, session=session))
    client = SessionClient(toolset, permission="allow")
    return lambda path: client.write_text_file("s", directory + path, TEXT)


async def claude_hooks(stack: AsyncExitStack) -> Write:
    from claude_agent_sdk import HookContext

    from weakfs.integrations.claude_agent import hooks

    directory = Path(stack.enter_context(TemporaryDirectory()))
    session = Session()
    made: Any = hooks(Toolset(session, HostFilesystem(directory, session=session)))
    context = HookContext(signal=None)

    async def fire(event: Any, path: str) -> None:
        payload: Any = {"hook_event_name": event, "session_id": "s", "tool_name": "Write", "tool_use_id": path}
        payload["tool_input"] = {"file_path": path}
        await made[event][0].hooks[0](payload, path, context)

    async def write(path: str) -> None:
        await fire("PreToolUse", path)
        place = directory / path[1:]
        place.parent.mkdir(exist_ok=True)
        place.write_text(TEXT)
        await fire("PostToolUse", path)

    return write


async def claude_sessions(stack: AsyncExitStack) -> Write:
    from weakfs.integrations.claude_agent import StorageSessionStore
    from weakfs.storage import AsyncMemoryStorage

    store = StorageSessionStore(AsyncMemoryStorage())

    async def write(path: str) -> None:
        entry: Any = {"type": "user", "uuid": path, "message": {"role": "user", "content": TEXT}}
        await store.append({"project_key": "p", "session_id": "s"}, [entry])

    return write


async def host_acall(stack: AsyncExitStack) -> Write:
    session = Session()
    toolset = Toolset(session, HostFilesystem(stack.enter_context(TemporaryDirectory()), session=session))
    return lambda path: toolset.acall("write_file", _arguments(path))


async def fsspec(stack: AsyncExitStack) -> Write:
    from weakfs.integrations.fsspec import WeakfsFileSystem

    fs = WeakfsFileSystem(InMemoryFilesystem())
    content = TEXT.encode()

    async def write(path: str) -> None:
        fs.pipe_file(path, content)

    return write


ADAPTERS: dict[str, Adapter] = {
    "`Toolset.acall`": acall,
    "MCP, to 2025-11-25": mcp_older,
    "MCP, 2026-07-28": mcp_newer,
    "OpenAI Agents, function tool": openai_tool,
    "OpenAI Agents, sandbox": openai_sandbox,
    "Anthropic SDK, runnable tool": anthropic_tool,
    "Anthropic SDK, memory": anthropic_memory,
    "Anthropic SDK, text editor": anthropic_editor,
    "pydantic-ai, a call of a run": pydantic_ai,
    "deepagents, backend": deepagents,
    "LangChain, structured tool": langchain_tool,
    "Google ADK, environment": google_adk,
    "fsspec, an event without a call": fsspec,
    "Claude Agent SDK, an entry of its session store": claude_sessions,
    "`Toolset.acall`, in a directory": host_acall,
    "ACP, a file that the agent writes, in a directory": acp,
    "Claude Agent SDK, both hooks of a tool, in a directory": claude_hooks,
}


async def microseconds(write: Write, numbers: count[int]) -> float:
    """Return the processor time of one of many calls."""
    paths = [f"/d{number % 10}/f{number}.py" for number, _ in zip(numbers, range(CALLS), strict=False)]
    begun = process_time_ns()
    for path in paths:
        await write(path)
    return (process_time_ns() - begun) / CALLS / 1000


@asynccontextmanager
async def made() -> AsyncIterator[dict[str, Write]]:
    """Make all adapters whose packages are installed."""
    async with AsyncExitStack() as stack:
        writers: dict[str, Write] = {}
        for name, adapter in ADAPTERS.items():
            try:
                writers[name] = await adapter(stack)
            except ModuleNotFoundError as error:
                print(f"left out {name}: {error}")
        yield writers


async def measured(repeats: int) -> dict[str, float]:
    """Return the median of each adapter; they are measured in turn."""
    taken: dict[str, list[float]] = {}
    numbers = count()
    async with made() as writers:
        for number in range(repeats + 1):
            for name, write in writers.items():
                one = await microseconds(write, numbers)
                if number:
                    taken.setdefault(name, []).append(one)
    return {name: median(times) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adapters", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    repeats = 5 if parser.parse_args().quick else 25
    # The warning of Google's ADK about its environments.
    warnings.simplefilter("ignore", UserWarning)
    found: dict[str, Any] = asyncio.run(measured(repeats))
    base = found["`Toolset.acall`"]
    print("| writing a small file in memory through | µs of processor time | compared with `Toolset.acall` |")
    print("| --- | --- | --- |")
    for name, taken in found.items():
        print(f"| {name} | {taken:.0f} | {taken / base:.1f} |")


if __name__ == "__main__":
    main()
