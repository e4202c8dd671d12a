"""Reads of adapters under a capability or a policy: whole or refused, and judged by every rule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from weakfs import Capability, HostFilesystem, InMemoryFilesystem, Limits, Policy, PolicyRule, Session, Toolset
from weakfs.backends import MountedFilesystem
from weakfs.tools import CallToJudge, ToolContext, ToolResult

pytestmark = pytest.mark.usefixtures("never_hung")

SIZE = 7000
LINES = "wombat\n" * (SIZE // 7)

# Reads a file of 7,000 bytes, and returns the answer.
Read = Callable[[Toolset, Any], Coroutine[Any, Any, object]]


async def deepagents_read(toolset: Toolset, policy: Any) -> object:
    from weakfs.integrations.deepagents import WeakfsBackend

    backend = WeakfsBackend(toolset.session, toolset.filesystem, capability=toolset.capability, policy=policy)
    return await backend.aread("/big", limit=SIZE)


async def deepagents_download(toolset: Toolset, policy: Any) -> object:
    from weakfs.integrations.deepagents import WeakfsBackend

    backend = WeakfsBackend(toolset.session, toolset.filesystem, capability=toolset.capability, policy=policy)
    return await backend.adownload_files(["/big"])


async def google_adk(toolset: Toolset, policy: Any) -> object:
    from weakfs.integrations.google_adk import WeakfsEnvironment

    environment = WeakfsEnvironment(toolset.session, toolset.filesystem, capability=toolset.capability, policy=policy)
    return await environment.read_file("big")


async def openai_agents(toolset: Toolset, policy: Any) -> object:
    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    def files(session: Session) -> InMemoryFilesystem:
        made = InMemoryFilesystem(session)
        made.write("/big", LINES)
        return made

    client = WeakfsSandboxClient(files=files, capability=toolset.capability, policy=policy)
    sandbox = await client.create()
    await sandbox.start()
    return (await sandbox.read(Path("big"))).read()


async def anthropic(toolset: Toolset, policy: Any) -> object:
    from weakfs.integrations.anthropic import AsyncTextEditorTool

    editor = AsyncTextEditorTool(toolset.session, toolset.filesystem, capability=toolset.capability, policy=policy)
    return await editor.call({"command": "view", "path": "/big"})


async def anthropic_memory(toolset: Toolset, policy: Any) -> object:
    from weakfs.integrations.anthropic import AsyncMemoryTool

    memory = AsyncMemoryTool(toolset.session, toolset.filesystem, capability=toolset.capability, policy=policy)
    return await memory.call({"command": "view", "path": "/memories/big"})


async def mcp_resource(toolset: Toolset, policy: Any) -> object:
    from mcp.client.client import Client

    from weakfs.integrations.mcp import toolset_server

    async with Client(toolset_server(toolset)) as client:
        return await client.read_resource("weakfs:///big")


async def acp(toolset: Toolset, policy: Any) -> object:
    from weakfs.integrations.acp import SessionClient

    client = SessionClient(toolset, permission="allow")
    return await client.read_text_file("s", f"{toolset.filesystem.root}/big")


ALL: list[Read] = [
    deepagents_read,
    deepagents_download,
    google_adk,
    openai_agents,
    anthropic,
    anthropic_memory,
    mcp_resource,
    acp,
]


def answer(read: Read, tmp_path: Path, capability: Capability | None = None, policy: Policy | None = None) -> str:
    """Return what a read of a file of 7,000 bytes answers, as one text."""
    session = Session()
    files = (
        HostFilesystem(tmp_path, session=session, store=tmp_path.parent / "store")
        if read is acp
        else InMemoryFilesystem(session)
    )
    files.write("/big", LINES)
    files.write("/memories/big", LINES)
    toolset = Toolset(session, files, capability=capability, policy=policy)
    try:
        return repr(asyncio.run(read(toolset, policy)))
    except Exception as error:
        return f"{error!r} {vars(error)}"


@pytest.mark.parametrize("read", ALL)
def test_a_part_of_a_file_is_never_returned_as_if_it_were_all_of_it(read: Read, tmp_path: Path) -> None:
    told = answer(read, tmp_path, Capability(max_read_bytes=100))
    assert "wombat" not in told
    assert "7000 bytes" in told or "permission_denied" in told
    whole = answer(read, tmp_path, Capability(max_read_bytes=SIZE))
    assert whole.count("wombat") >= SIZE // 7


@pytest.mark.parametrize("read", ALL)
def test_a_file_that_does_not_fit_into_an_answer_is_refused(read: Read, tmp_path: Path) -> None:
    told = answer(read, tmp_path, Capability(max_inline_bytes=100))
    assert "wombat" not in told
    assert "max_inline_bytes" in told or "permission_denied" in told
    whole = answer(read, tmp_path, Capability(max_inline_bytes=SIZE))
    assert whole.count("wombat") >= SIZE // 7


def test_lines_that_were_asked_for_are_returned_or_refused(tmp_path: Path) -> None:
    from acp import RequestError

    from weakfs.integrations.acp import SessionClient

    session = Session()
    files = HostFilesystem(tmp_path, session=session, store=tmp_path.parent / "store")
    files.write("/big", LINES)
    client = SessionClient(
        Toolset(session, files, capability=Capability(max_read_bytes=140, allowed_fs_ops=["read"])), permission="allow"
    )

    async def work() -> None:
        path = f"{tmp_path}/big"
        assert (await client.read_text_file("s", path, 3, 20)).content == "wombat\n" * 20
        assert (await client.read_text_file("s", path, 999)).content == "wombat\n" * 2
        with pytest.raises(RequestError) as refused:
            await client.read_text_file("s", path, 3, 21)
        assert "7000 bytes" in str(refused.value.data)

    asyncio.run(work())


def checking(call: CallToJudge, context: ToolContext) -> str | None:
    path = getattr(call.params, "path", "/big")
    return "not now" if call.operation == "read" and path.endswith("big") else None


def seeing(call: CallToJudge, result: ToolResult[object], context: ToolContext) -> str | None:
    return "not this" if "wombat\nwombat" in result.message else None


@pytest.mark.parametrize("read", [mcp_resource, acp])
def test_custom_rules_judge_reads_that_are_not_calls(read: Read, tmp_path: Path) -> None:
    for policy, reason in ((Policy(check=checking), "not now"), (Policy(on_result=seeing), "not this")):
        told = answer(read, tmp_path, policy=policy)
        assert reason in told
        assert "wombat" not in told
    assert answer(read, tmp_path, policy=Policy(check=lambda call, context: None)).count("wombat") >= SIZE // 7


def test_custom_rules_judge_the_list_of_resources() -> None:
    from mcp.client.client import Client
    from mcp.shared.exceptions import MCPError

    from weakfs.integrations.mcp import toolset_server

    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/a", "")
    judged: list[tuple[str, object]] = []

    def check(call: CallToJudge, context: ToolContext) -> str | None:
        judged.append((call.name, call.read_arguments()))
        assert context.session is session
        return "not now" if call.operation == "list" else None

    async def work() -> None:
        async with Client(toolset_server(Toolset(session, files, policy=Policy(check=check)))) as client:
            with pytest.raises(MCPError, match="not now"):
                await client.list_resources()
            await client.read_resource("weakfs:///a?at=1")

    asyncio.run(work())
    assert judged == [("resources/list", {"path": "/"}), ("resources/read", {"path": "/a", "at": "1"})]


@pytest.mark.parametrize("effect", ["deny", "blob"])
def test_rules_about_mounted_files_apply_to_what_an_acp_agent_reads(tmp_path: Path, effect: Any) -> None:
    from acp import RequestError

    from weakfs.integrations.acp import SessionClient

    session = Session()
    files = HostFilesystem(tmp_path, session=session, store=tmp_path.parent / "store")
    files.write("/vault/key", "wombat\n")
    files.write("/src/a", "x\n")
    rule = PolicyRule(effect=effect, operations=["read"], paths="/workspace/vault", reason="a secret")
    toolset = Toolset(session, MountedFilesystem(files, "/workspace"), policy=Policy([rule]))
    client = SessionClient(toolset, permission="allow")

    async def work() -> None:
        for path in ("vault/key", "src/../vault/key"):
            with pytest.raises(RequestError) as refused:
                await client.read_text_file("s", f"{tmp_path}/{path}")
            assert "wombat" not in str(refused.value.data)
        assert (await client.read_text_file("s", f"{tmp_path}/src/a")).content == "x\n"

    asyncio.run(work())


def test_resources_are_listed_however_deep_a_directory_is(tmp_path: Path) -> None:
    from mcp.client.client import Client

    from weakfs.integrations.mcp import toolset_server

    session = Session()
    files = InMemoryFilesystem(session, limits=Limits(max_path_depth=None))
    files.write("/" + "d/" * 1200 + "deep", "")
    files.write("/z", "")

    async def work() -> None:
        async with Client(toolset_server(Toolset(session, files))) as client:
            assert [one.name for one in (await client.list_resources()).resources] == ["deep", "z"]

    asyncio.run(work())
