"""The hooks of the SDK: what its tools change becomes calls of the session, whatever order their hooks come in."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from claude_agent_sdk import HookContext
from claude_agent_sdk.types import HookEvent, HookInput

from weakfs import HostFilesystem, Policy, PolicyRule, Session, Toolset
from weakfs.integrations.claude_agent import hooks, mcp_server
from weakfs.tools import CallToJudge, Capability, ToolCalls, ToolContext

Fire = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("a\n")
    return tmp_path / "project"


@pytest.fixture
def toolset(project: Path) -> Toolset:
    session = Session(session_id="main")
    return Toolset(session, HostFilesystem(project, session=session, store=project.parent / "store"))


def firing(toolset: Toolset, **options: Any) -> Fire:
    """Return a function that runs the hooks of one event as the SDK does."""
    matchers = hooks(toolset, **options)

    async def fire(event: HookEvent, tool: str = "", call_id: str = "", **fields: Any) -> dict[str, Any]:
        payload = {"hook_event_name": event, "tool_name": tool, "tool_use_id": call_id, "tool_input": {}, **fields}
        (matcher,) = matchers[event]
        (hook,) = matcher.hooks
        return cast(
            "dict[str, Any]", await hook(cast(HookInput, payload), call_id, cast(HookContext, {"signal": None}))
        )

    return fire


def call_ids(toolset: Toolset) -> list[str]:
    return [call.call_id for call in toolset.session[ToolCalls].all()]


def test_a_command_that_deletes_too_much_is_undone(toolset: Toolset, project: Path) -> None:
    async def work() -> None:
        fire = firing(toolset)
        assert await fire("PreToolUse", "Bash", "toolu_1", tool_input={"command": "rm a.txt"}) == {}
        (project / "a.txt").unlink()
        assert await fire("PostToolUse", "Bash", "toolu_1", tool_response={"stdout": "removed"}) == {}

    asyncio.run(work())
    assert call_ids(toolset) == ["toolu_1"]
    toolset.session.revert("toolu_1")
    assert (project / "a.txt").read_text() == "a\n"


def test_a_tool_that_only_reads_is_not_recorded(toolset: Toolset) -> None:
    async def work() -> None:
        fire = firing(toolset)
        for tool in ("Read", "mcp__weakfs__write_file"):
            await fire("PreToolUse", tool, "toolu_1")
            await fire("PostToolUse", tool, "toolu_1", tool_response="text")

    asyncio.run(work())
    assert call_ids(toolset) == []


def test_tools_that_run_at_the_same_time_are_one_call(toolset: Toolset, project: Path) -> None:
    async def work() -> None:
        fire = firing(toolset)
        await fire("PreToolUse", "Bash", "toolu_1")
        await fire("PreToolUse", "Write", "toolu_2")
        (project / "b.txt").write_text("b")
        await fire("PostToolUse", "Bash", "toolu_1", tool_response={"stdout": ""})
        (project / "c.txt").write_text("c")
        await fire("PostToolUse", "Write", "toolu_2", tool_response={"content": "written"})

    asyncio.run(work())
    assert call_ids(toolset) == ["toolu_1"]
    toolset.session.undo()
    assert sorted(path.name for path in project.iterdir()) == ["a.txt"]


@pytest.mark.parametrize("undo_failed", [False, True])
def test_a_failed_tool_keeps_its_changes_unless_undo_failed_is_set(
    toolset: Toolset, project: Path, undo_failed: bool
) -> None:
    async def work() -> dict[str, Any]:
        fire = firing(toolset, undo_failed=undo_failed)
        await fire("PreToolUse", "Bash", "toolu_1")
        (project / "half.txt").write_text("half")
        return await fire("PostToolUseFailure", "Bash", "toolu_1", error="exit code 1")

    answer = asyncio.run(work())
    assert (project / "half.txt").exists() is not undo_failed
    assert ("were undone" in str(answer)) is undo_failed


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit"])
def test_a_tool_whose_end_is_not_reported_is_recorded_when_the_turn_ends(
    toolset: Toolset, project: Path, event: HookEvent
) -> None:
    async def work() -> None:
        fire = firing(toolset)
        await fire("PreToolUse", "Bash", "toolu_1")
        (project / "b.txt").write_text("b")
        await fire(event)
        await fire("PostToolUse", "Bash", "toolu_1", tool_response="late")
        await fire(event)

    asyncio.run(work())
    assert call_ids(toolset) == ["toolu_1"]
    toolset.session.undo()
    assert not (project / "b.txt").exists()


def test_a_tool_that_the_capability_forbids_is_denied(toolset: Toolset) -> None:
    narrow = Toolset(toolset.session, toolset.filesystem, capability=Capability(allowed_fs_ops=frozenset({"read"})))
    answer = asyncio.run(firing(narrow)("PreToolUse", "Bash", "toolu_1"))
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize("by", ["policy", "fs_roots"])
def test_a_tool_that_could_see_hidden_files_is_denied(toolset: Toolset, by: str) -> None:
    rule = PolicyRule(effect="deny", operations=("read",), paths=("*.key",), reason="a secret")
    narrow = (
        Toolset(toolset.session, toolset.filesystem, policy=Policy([rule]))
        if by == "policy"
        else Toolset(toolset.session, toolset.filesystem, capability=Capability(fs_roots=["/src"]))
    )
    answer = asyncio.run(firing(narrow)("PreToolUse", "Bash", "toolu_1"))
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize("effect", ["deny", "blob"])
def test_reading_tools_that_are_not_recorded_show_no_hidden_file(
    toolset: Toolset, project: Path, effect: Literal["deny", "blob"]
) -> None:
    (project / "secret.key").write_text("wombat\n")
    (project / "link").symlink_to("secret.key")
    rule = PolicyRule(effect=effect, operations=("read",), paths=("*.key",), reason="a secret")
    narrow = Toolset(toolset.session, toolset.filesystem, policy=Policy([rule]))
    fire = firing(narrow)

    async def is_denied(tool: str, **given: str) -> bool:
        answer = await fire("PreToolUse", tool, "toolu_1", tool_input=given, cwd=str(project))
        assert "wombat" not in str(answer)
        return bool(answer.get("hookSpecificOutput", {}).get("permissionDecision") == "deny")

    async def work() -> None:
        for path in ("secret.key", "link", "none/../secret.key", "../outside"):
            assert await is_denied("Read", file_path=f"{project}/{path}"), path
        assert await is_denied("Read", file_path="secret.key")
        assert await is_denied("Read")
        assert await is_denied("Grep", pattern=".", path=str(project))
        assert await is_denied("Glob", pattern="*")
        assert not await is_denied("Read", file_path=f"{project}/a.txt")
        assert not await is_denied("Read", file_path=f"{project}/none")
        assert not await is_denied("WebSearch", query="x")

    asyncio.run(work())
    assert call_ids(toolset) == []


def test_reading_tools_stay_within_a_capability(toolset: Toolset, project: Path) -> None:
    (project / "src").mkdir()
    (project / "src" / "b.txt").write_text("b" * 100)
    narrow = Toolset(toolset.session, toolset.filesystem, capability=Capability(fs_roots=["/src"], max_read_bytes=50))
    few = Toolset(toolset.session, toolset.filesystem, capability=Capability(max_scan_files=5))

    async def decision(given: Toolset, tool: str, **arguments: str) -> str | None:
        answer = await firing(given)("PreToolUse", tool, "toolu_1", tool_input=arguments)
        return cast("str | None", answer.get("hookSpecificOutput", {}).get("permissionDecision"))

    async def work() -> None:
        assert await decision(narrow, "Read", file_path=f"{project}/a.txt") == "deny"
        assert await decision(narrow, "Read", file_path=f"{project}/src/b.txt") == "deny"
        (project / "src" / "b.txt").write_text("b")
        assert await decision(narrow, "Read", file_path=f"{project}/src/b.txt") is None
        assert await decision(narrow, "LS", path=f"{project}/src") == "deny"
        assert await decision(few, "Grep", pattern="x") is None
        assert await decision(toolset, "Read", file_path="/etc/hostname") is None

    asyncio.run(work())


def test_custom_rules_judge_reading_tools(toolset: Toolset, project: Path) -> None:
    judged: list[tuple[str, object, str | None]] = []

    def check(call: CallToJudge, context: ToolContext) -> str | None:
        judged.append((call.name, call.read_arguments(), call.caller))
        return "not today" if call.name == "Grep" else None

    narrow = Toolset(toolset.session, toolset.filesystem, policy=Policy(check=check))

    async def work() -> None:
        fire = firing(narrow)
        assert await fire("PreToolUse", "Read", "t1", tool_input={"file_path": f"{project}/a.txt"}) == {}
        answer = await fire("PreToolUse", "Grep", "t2", tool_input={"pattern": "a", "path": str(project)})
        assert "not today" in answer["hookSpecificOutput"]["permissionDecisionReason"]

    asyncio.run(work())
    assert judged == [("Read", {"path": "/a.txt"}, "claude"), ("Grep", {"path": "/"}, "claude")]


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "UserPromptSubmit"])
async def test_a_malformed_payload_does_no_harm(toolset: Toolset, event: HookEvent) -> None:
    matchers = hooks(toolset)
    for payload in (
        {},
        {"tool_name": None, "tool_use_id": 3, "tool_input": [1], "error": 5, "tool_response": None},
    ):
        (hook,) = matchers[event][0].hooks
        assert await hook(cast(HookInput, payload), None, cast(HookContext, {"signal": None})) == {}


def test_the_tools_are_served_in_process(toolset: Toolset) -> None:
    config = mcp_server(toolset)
    assert config["type"] == "sdk"
    assert config["name"] == "weakfs"
    assert config["instance"].name


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.startswith("weakfs.integrations.claude_agent")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'weakfs\[claude-agent\]'"):
        __import__("weakfs.integrations.claude_agent")
