"""A deep agent whose files go back with its thread."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from weakfs import Toolset
from weakfs.tools import ToolCall

pytestmark = [pytest.mark.usefixtures("never_hung"), pytest.mark.sampled]


def test_the_files_of_a_deep_agent_are_restored_too(toolset: Toolset, is_async: bool) -> None:
    from deepagents import create_deep_agent
    from langgraph.checkpoint.memory import InMemorySaver

    from tests.integrations.langchain_agent.conftest import scripted_model
    from weakfs.integrations.deepagents import WeakfsBackend
    from weakfs.integrations.langchain import SessionMiddleware

    backend = WeakfsBackend(toolset.session, toolset.filesystem)
    turns = [
        [("write_file", {"file_path": f"/{name}.txt", "content": "1"}) for name in "ab"],
        [("edit_file", {"file_path": "/a.txt", "old_string": "1", "new_string": "2"})],
        [("edit_file", {"file_path": "/a.txt", "old_string": "none", "new_string": "2"})],
    ]
    agent: Any = create_deep_agent(
        model=scripted_model(*turns, [], []),
        backend=backend,
        middleware=[SessionMiddleware(Toolset(toolset.session, backend.files))],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "chat"}}

    def invoke(given: Any, at: Any) -> Any:
        return asyncio.run(agent.ainvoke(given, at)) if is_async else agent.invoke(given, at)

    invoke({"messages": [("user", "go")]}, config)
    assert toolset.filesystem.read("/a.txt").content == "2"
    before = [one for one in agent.get_state_history(config) if one.next == ("model",)][2]
    invoke(None, before.config)
    assert [toolset.filesystem.read(f"/{name}.txt").content for name in "ab"] == ["1", "1"]


def test_operations_of_a_deep_agent_are_undone_one_by_one_and_the_thread_continues(
    toolset: Toolset, is_async: bool
) -> None:
    from deepagents import create_deep_agent
    from langgraph.checkpoint.memory import InMemorySaver

    from tests.integrations.langchain_agent.conftest import scripted_model
    from weakfs.integrations.deepagents import WeakfsBackend
    from weakfs.integrations.langchain import SessionMiddleware

    session, files = toolset.session, toolset.filesystem
    backend = WeakfsBackend(session, files)
    turns = [
        [("write_file", {"file_path": "/a.txt", "content": "1\n2\n3\n"})],
        [("write_file", {"file_path": "/b.txt", "content": "1"})],
        [("edit_file", {"file_path": "/a.txt", "old_string": "3", "new_string": "4"})],
        [],
        [("write_file", {"file_path": "/c.txt", "content": "1"})],
        [],
        [],
    ]
    agent: Any = create_deep_agent(
        model=scripted_model(*turns),
        backend=backend,
        middleware=[SessionMiddleware(Toolset(session, backend.files))],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "chat"}}

    def invoke(given: Any, at: Any = config) -> None:
        _ = asyncio.run(agent.ainvoke(given, at)) if is_async else agent.invoke(given, at)

    def shown() -> dict[str, str]:
        return {one.path: files.read(one.path).content for one in files.walk("/") if one.is_file}

    invoke({"messages": [("user", "go")]})
    wrote_b = [call.call_id for call in session[ToolCall].all() if call.tool == "write"][1]
    assert session.revert(wrote_b).paths == ("/b.txt",)
    session.undo()
    # The call of the enclosing tool has the same changes.
    around = [call.call_id for call in session[ToolCall].all() if call.tool == "write_file"][1]
    assert session.revert(around).paths == ("/b.txt",)
    assert shown() == {"/a.txt": "1\n2\n4\n"}
    assert session.undo().paths == ("/b.txt",)
    assert session.undo().paths == ("/a.txt",)
    assert shown() == {"/a.txt": "1\n2\n3\n", "/b.txt": "1"}
    # A run that continues from the latest checkpoint keeps what was undone.
    invoke({"messages": [("user", "go on")]})
    assert shown() == {"/a.txt": "1\n2\n3\n", "/b.txt": "1", "/c.txt": "1"}
    first = [one for one in agent.get_state_history(config) if one.next == ("model",)][-2]
    invoke(None, first.config)
    assert shown() == {"/a.txt": "1\n2\n3\n"}
