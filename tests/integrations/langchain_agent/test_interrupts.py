"""Interrupted runs, and the changes that their tools made before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integrations.langchain_agent.conftest import Agent, edit, write
from weakfs import Toolset
from weakfs.tools import ToolCall

pytestmark = [pytest.mark.usefixtures("never_hung"), pytest.mark.sampled]


def test_resuming_keeps_changes_by_other_tools_of_the_step(toolset: Toolset, is_async: bool, saver: Any) -> None:
    from langgraph.types import Command, interrupt

    def confirm(path: str) -> str:
        """Write a file once somebody agrees."""
        toolset.filesystem.write(path, "not yet")
        answer = interrupt("may I?")
        assert not toolset.filesystem.exists("/later")
        toolset.filesystem.write("/later", answer)
        return answer  # type: ignore[no-any-return]

    turn = [write("1"), ("confirm", {"path": "/half"})]
    agent = Agent(toolset, turn, [], tools=[confirm], saver=saver, is_async=is_async)
    agent.ask()
    # What the tool did before the interrupt is undone, because it runs from the beginning again.
    assert agent.shown() == {"/a": "1"}
    found = answers_of(agent.invoke(Command(resume="yes")))
    assert [one.status for one in found] == ["success", "success"]
    assert agent.shown() == {"/a": "1", "/half": "not yet", "/later": "yes"}
    calls = [(call.tool, call.error_code) for call in agent.session[ToolCall].all() if call.tool == "confirm"]
    assert calls == [("confirm", "interrupted"), ("confirm", None)]


def answers_of(state: Any) -> list[Any]:
    return [one for one in state["messages"] if one.type == "tool"]


def test_approving_a_call_rolls_nothing_back(toolset: Toolset, is_async: bool, saver: Any) -> None:
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langgraph.types import Command

    approval = HumanInTheLoopMiddleware(interrupt_on={"edit_file": True})
    agent = Agent(toolset, [write("1")], [edit("1", "2")], [], saver=saver, is_async=is_async, middleware=[approval])
    agent.ask()
    toolset.filesystem.write("/mine", "meanwhile")
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}))
    assert agent.shown() == {"/a": "2", "/mine": "meanwhile"}


def test_resuming_after_a_tool_that_raised_keeps_changes_by_the_others(toolset: Toolset, is_async: bool) -> None:
    tries: list[int] = []

    def flaky() -> str:
        """Fail the first time."""
        toolset.filesystem.write("/flaky", "x")
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("no network")
        return "done"

    agent = Agent(toolset, [write("1"), ("flaky", {})], [], tools=[flaky], is_async=is_async)
    with pytest.raises(ConnectionError):
        agent.ask()
    before = len(agent.session[ToolCall].all())
    agent.go_on()
    assert agent.shown() == {"/a": "1", "/flaky": "x"}
    assert len(agent.session[ToolCall].all()) - before <= 2


@pytest.mark.parametrize("knows_session", [True, False])
def test_an_interrupted_agent_inside_a_tool_keeps_its_changes(
    toolset: Toolset, is_async: bool, knows_session: bool
) -> None:
    from langchain.agents import create_agent
    from langchain_core.tools import StructuredTool
    from langgraph.types import Command, interrupt

    from tests.integrations.langchain_agent.conftest import scripted_model
    from weakfs.integrations.langchain import SessionMiddleware, structured_tools

    def confirm() -> str:
        """Ask somebody."""
        return str(interrupt("may I?"))

    helper: Any = create_agent(
        scripted_model([write("1")], [("confirm", {})], [edit("1", "2")], []),
        [*structured_tools(toolset), confirm],
        middleware=[SessionMiddleware(toolset)] if knows_session else [],
    )

    def delegate(task: str) -> str:
        """Let a helper do it."""
        return str(helper.invoke({"messages": [("user", task)]})["messages"][-2].content)

    async def adelegate(task: str) -> str:
        return str((await helper.ainvoke({"messages": [("user", task)]}))["messages"][-2].content)

    tool = StructuredTool.from_function(delegate, adelegate)
    agent = Agent(toolset, [("delegate", {"task": "it"})], [], tools=[tool], is_async=is_async)
    agent.ask()
    assert agent.shown() == {"/a": "1"}
    agent.invoke(Command(resume="yes"))
    assert agent.shown() == {"/a": "2"}
