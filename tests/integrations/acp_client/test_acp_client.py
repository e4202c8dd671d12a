"""A client of the Agent Client Protocol over a real connection to an agent."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, Policy, PolicyRule, Session, Toolset
from weakfs.tools import ToolCall

pytestmark = pytest.mark.usefixtures("never_hung")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "seen").write_text("")
    (work / "a.txt").write_text("one\ntwo\nthree\n")
    return work


def talk(
    toolset: Toolset, *turns: list[Any], permission: Any = "allow", undo_failed: bool = False, own_process: bool = False
) -> list[str]:
    """Hold a conversation with the scripted agent; return what it says after each step."""
    import acp

    from tests.integrations.acp_client import agent
    from weakfs.integrations.acp import CAPABILITIES, SessionClient

    said: list[str] = []

    async def hear(update: Any) -> None:
        if update.session_update == "agent_message_chunk":
            said.append(json.loads(update.content.text))

    async def turns_with(client: SessionClient, agent: Any) -> None:
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=CAPABILITIES)
        session = await agent.new_session(cwd=str(toolset.filesystem.root))
        for turn in turns:
            await client.prompt(session.session_id, json.dumps(turn))

    async def work() -> None:
        client = SessionClient(toolset, permission=permission, on_update=hear, undo_failed=undo_failed)
        if own_process:
            async with acp.spawn_agent_process(client, sys.executable, str(agent.__file__)) as (connection, _):
                await turns_with(client, connection)
            return
        (here, to_agent), (there, to_client) = [await asyncio.open_connection(sock=end) for end in socket.socketpair()]
        serving = asyncio.create_task(acp.run_agent(cast(acp.Agent, agent.Scripted()), to_client, there))
        connection = acp.connect_to_agent(client, to_agent, here)
        try:
            await turns_with(client, connection)
        finally:
            to_agent.close()
            await serving
            await connection.close()
            to_client.close()

    asyncio.run(work())
    return said


def host(directory: Path, **options: Any) -> Toolset:
    session = Session()
    return Toolset(session, HostFilesystem(directory, session=session), **options)


def calls(toolset: Toolset) -> list[tuple[str, str, str]]:
    return [(call.call_id, call.tool, call.status) for call in toolset.session[ToolCall].all()]


@pytest.mark.slow
def test_changes_by_a_tool_of_the_agent_are_one_call_that_can_be_reverted(directory: Path) -> None:
    toolset = host(directory)
    said = talk(
        toolset,
        [
            ["tool", "t1", "edit", True, "echo new > b.txt", "completed"],
            ["tool", "t2", "execute", False, "rm a.txt; mkdir d; echo x > d/y", "completed"],
            ["tool", "t3", "read", False, "true", "completed"],
        ],
        own_process=True,
    )
    assert said == ["done", "done", "done"]
    assert calls(toolset) == [("t1", "edit", "ok"), ("t2", "execute", "ok")]
    toolset.session.revert("t2")
    assert (directory / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert not (directory / "d").exists()
    assert (directory / "b.txt").read_text() == "new\n"


@pytest.mark.slow
def test_files_are_read_and_written_through_the_client(directory: Path) -> None:
    toolset = host(directory)
    said = talk(
        toolset,
        [
            ["read", f"{directory}/a.txt"],
            ["read", f"{directory}/a.txt", 2, 1],
            ["write", f"{directory}/new/c.txt", "hello\n"],
            ["read", f"{directory}/nope"],
            ["read", "/etc/passwd"],
            ["read", f"{directory}/../../etc/passwd"],
        ],
    )
    assert said[:3] == ["one\ntwo\nthree\n", "two\n", "written"]
    assert said[3].startswith("Resource not found")
    assert "not below" in said[4]
    assert "climbs above the root" in said[5]
    assert [call[1:] for call in calls(toolset)] == [("write_text_file", "ok")]
    toolset.session.undo()
    assert not (directory / "new").exists()


def test_a_tool_that_is_not_allowed_does_not_run(directory: Path) -> None:
    toolset = host(directory)
    assert talk(toolset, [["tool", "t1", "execute", True, "rm a.txt", "completed"]], permission="deny") == ["refused"]
    assert (directory / "a.txt").exists()
    assert calls(toolset) == []


def test_a_person_can_be_asked_for_permission(directory: Path) -> None:
    asked: list[str] = []

    async def person(tool: Any, options: list[Any]) -> str | None:
        asked.append(tool.title)
        return "yes" if "b.txt" in tool.title else None

    steps = [["tool", name, "edit", True, f"echo > {name}", "completed"] for name in ("b.txt", "c.txt")]
    assert talk(host(directory), steps, permission=person) == ["done", "refused"]
    assert asked == ["echo > b.txt", "echo > c.txt"]


def test_operations_that_the_policy_forbids_are_refused(directory: Path) -> None:
    rule = PolicyRule(effect="deny", operations=frozenset({"read", "write"}), paths=("/a.txt",), reason="it is secret")
    toolset = host(directory, policy=Policy([rule]))
    said = talk(toolset, [["read", f"{directory}/a.txt"], ["write", f"{directory}/a.txt", "x"]])
    assert all("Invalid params" in one for one in said)
    assert (directory / "a.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize("undo_failed", [False, True])
def test_a_failed_tool_keeps_its_changes_unless_undo_failed_is_set(directory: Path, undo_failed: bool) -> None:
    toolset = host(directory)
    talk(toolset, [["tool", "t1", "execute", False, "rm a.txt", "failed"]], undo_failed=undo_failed)
    assert (directory / "a.txt").exists() == undo_failed
    assert calls(toolset) == [("t1", "execute", "error" if undo_failed else "ok")]


def test_a_tool_whose_end_is_not_reported_ends_with_the_turn(directory: Path) -> None:
    toolset = host(directory)
    talk(
        toolset,
        [["tool", "t1", "execute", False, "rm a.txt", None]],
        [["tool", "t2", "execute", False, "rm seen", "completed"]],
    )
    assert [call[0] for call in calls(toolset)] == ["t1", "t2"]
    toolset.session.revert("t1")
    assert sorted(path.name for path in directory.iterdir()) == ["a.txt"]


def test_a_request_for_a_terminal_is_refused(directory: Path) -> None:
    (said,) = talk(host(directory), [["terminal"]])
    assert said.startswith("Method not found")


def test_only_a_host_directory_is_accepted() -> None:
    from weakfs.integrations.acp import SessionClient

    session = Session()
    with pytest.raises(TypeError, match="HostFilesystem"):
        SessionClient(Toolset(session, InMemoryFilesystem(session)), permission="deny")
