"""Changes of files as notifications, for clients of both generations of the protocol; and roots of older clients."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.session import MessageHandlerFnT
from mcp.server.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from tests.models.cost import lines_of
from weakfs import Capability, HostFilesystem, InMemoryFilesystem, Policy, PolicyRule, Session, Toolset
from weakfs.backends import MountedFilesystem
from weakfs.integrations.mcp import filesystem_server, toolset_server
from weakfs.integrations.mcp.reference.server import reference_definitions
from weakfs.tools.permissions import Operation


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.005)


def noting(heard: list[str]) -> MessageHandlerFnT:
    """Return a message handler that adds to `heard` what changed."""

    async def note(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.append(str(message.params.uri))
        elif isinstance(message, types.ResourceListChangedNotification):
            heard.append("list")

    return note


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_an_older_client_is_notified_of_its_subscriptions() -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/d/a", "1")
    heard: list[str] = []
    server = toolset_server(Toolset(session))
    async with Client(server, mode="legacy", message_handler=noting(heard)) as client:
        for path in ("/d/a", "/d", "/e"):
            await client.subscribe_resource(f"weakfs://{path}")
        # From a thread that is not the event loop's.
        await asyncio.to_thread(files.append, "/d/a", "2")
        await until(lambda: len(heard) >= 2)
        assert sorted(heard) == ["weakfs:///d", "weakfs:///d/a"]

        heard.clear()
        await client.call_tool("write_file", {"path": "/new", "content": "x"})
        await until(lambda: heard)
        assert heard == ["list"]

        await client.unsubscribe_resource("weakfs:///d/a")
        heard.clear()
        # A rollback may have changed anything.
        session.rollback(1)
        await until(lambda: len(heard) >= 3)
        assert sorted(heard) == ["list", "weakfs:///d", "weakfs:///e"]
        with pytest.raises(MCPError):
            await client.subscribe_resource("file:///etc/passwd")


async def test_a_newer_client_opens_a_listening_stream() -> None:
    session = Session()
    files = InMemoryFilesystem(session)

    server = toolset_server(Toolset(session))
    async with (
        Client(server, mode="2026-07-28") as client,
        client.listen(resource_subscriptions=["weakfs:///a"]) as events,
    ):
        files.write("/other", "x")
        files.write("/a", "x")
        async for event in events:
            assert event == ResourceUpdated(uri="weakfs:///a")
            break


def notified(session: Session, toolset: Toolset, uris: list[str], work: Callable[[], object], last: str) -> list[str]:
    """Return what an older client hears of some work until it hears `last`."""
    heard: list[str] = []

    async def run() -> None:
        async with Client(toolset_server(toolset), mode="legacy", message_handler=noting(heard)) as client:
            for uri in uris:
                await client.subscribe_resource(uri)
            await asyncio.to_thread(work)
            await until(lambda: last in heard)

    asyncio.run(run())
    return heard


HIDDEN: tuple[Operation, ...] = ("read", "write", "edit", "patch", "search", "list", "stat")


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize(
    "bounds",
    [
        {"capability": Capability(fs_roots=("/open",))},
        {"policy": Policy([PolicyRule(effect="deny", operations=HIDDEN, paths="/vault", reason="hidden")])},
    ],
)
def test_clients_are_not_notified_of_changes_to_hidden_files(bounds: Any) -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.mkdir("/open")

    def work() -> None:
        files.write("/vault/key", "1")
        files.append("/vault/key", "2")
        files.move("/vault/key", "/vault/other")
        files.delete("/vault", recursive=True)
        files.mkdir("/open/a")

    uris = ["weakfs:///vault", "weakfs:///vault/key", "weakfs:///open"]
    assert notified(session, Toolset(session, **bounds), uris, work, "weakfs:///open") == ["weakfs:///open"]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_notifications_of_mounted_files_use_mounted_paths() -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/a", "1")
    toolset = Toolset(session, MountedFilesystem(files, "/workspace"))
    uris = ["weakfs:///workspace/a", "weakfs:///a"]
    heard = notified(session, toolset, uris, lambda: files.write("/a", "2"), "weakfs:///workspace/a")
    assert "weakfs:///a" not in heard


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_clients_are_not_notified_of_changes_to_other_filesystems(tmp_path: Path) -> None:
    session = Session()
    other = HostFilesystem(tmp_path, session=session, store=tmp_path.parent / "store")
    files = InMemoryFilesystem(session)
    for one in (files, other):
        one.write("/d/a", "1")

    uris = ["weakfs:///d", "weakfs:///d/a", "weakfs:///z"]
    for own, elsewhere in ((files, other), (other, files)):

        def work(own: Any = own, elsewhere: Any = elsewhere) -> None:
            elsewhere.append("/d/a", "2")
            elsewhere.write("/d/new", "2")
            own.write("/z", "x")
            own.append("/z", "x")

        heard = notified(session, Toolset(session, own), uris, work, "weakfs:///z")
        assert {*heard} == {"list", "weakfs:///z"}


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_client_that_reads_nothing_does_not_keep_others_waiting() -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/a", "1")
    heard: list[str] = []
    server = toolset_server(Toolset(session))
    to_server, given = anyio.create_memory_object_stream[Any](0)
    answers, from_server = anyio.create_memory_object_stream[Any](0)

    async def ask(number: int, method: str, params: dict[str, Any]) -> None:
        request = types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=params)
        await to_server.send(SessionMessage(request))
        assert isinstance((await from_server.receive()).message, types.JSONRPCResponse)

    async with to_server, given, answers, from_server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, given, answers, server.create_initialization_options())
        client_info = {"name": "stalled", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info}
        await ask(1, "initialize", hello)
        ready = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
        await to_server.send(SessionMessage(ready))
        await ask(2, "resources/subscribe", {"uri": "weakfs:///a"})
        async with Client(server, mode="legacy", message_handler=noting(heard)) as client:
            await client.subscribe_resource("weakfs:///a")
            running = 0
            for number in range(200):
                heard.clear()
                files.append("/a", "2")
                await until(lambda: heard)
                running = len(asyncio.all_tasks()) if number < 10 else running
            assert len(asyncio.all_tasks()) <= running
        # When it reads again, it is told once of all that changed meanwhile.
        told = [(await from_server.receive()).message.method for _ in range(2)]
        assert told == ["notifications/resources/updated"] * 2
        assert from_server.statistics().tasks_waiting_send == 0
        tasks.cancel_scope.cancel()


def test_the_cost_of_a_notification_does_not_depend_on_how_much_changed_elsewhere() -> None:
    from weakfs.integrations.mcp import notifications
    from weakfs.integrations.mcp.notifications import _Changed

    def cost(count: int) -> int:
        changed = _Changed.at(f"/d{number}/a" for number in range(count))
        assert all(map(changed.concerns, ("/d7/a", "/d7", "/d7/a/b", "/")))
        return lines_of(lambda: changed.concerns("/other/a/b"), notifications)

    assert cost(10_000) == cost(10)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("url", ["folder:{}/sessions", "sqlite:{}/sessions.db"])
def test_clients_are_notified_of_changes_by_another_process(tmp_path: Path, url: str) -> None:
    where = url.format(tmp_path)
    program = (
        "import sys; from weakfs import InMemoryFilesystem, Session\n"
        "with Session.open(sys.argv[1], 'main', on_conflict='merge') as session:\n"
        "    InMemoryFilesystem(session).write('/a', '2')"
    )
    with Session.open(where, "main", on_conflict="merge") as session:
        InMemoryFilesystem(session).write("/a", "1")
        toolset = Toolset(session)

        def work() -> None:
            subprocess.run([sys.executable, "-c", program, where], check=True)

        assert "weakfs:///a" in notified(session, toolset, ["weakfs:///a"], work, "weakfs:///a")
        assert toolset.filesystem.read("/a").content == "2"


def roots(*directories: Path) -> Any:
    async def listed(_context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": one.as_uri()}) for one in directories])

    return listed


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("use_roots", [True, False])
def test_roots_of_an_older_client_replace_the_directories(tmp_path: Path, use_roots: bool) -> None:
    given, root = tmp_path / "given", tmp_path / "a root"
    for one in (given, root):
        one.mkdir()
    session = Session()

    async def run() -> None:
        server = filesystem_server([given], session=session, use_roots=use_roots, store=str(tmp_path / "store"))
        async with Client(server, mode="legacy", list_roots_callback=roots(root, tmp_path / "none")) as client:
            listed = await client.call_tool("list_allowed_directories", {})
            allowed = root if use_roots else given
            assert listed.structured_content == {"content": f"Allowed directories:\n{allowed}"}
            for place in (given, root):
                done = await client.call_tool("write_file", {"path": str(place / "x"), "content": "x"})
                assert done.is_error is (place != allowed)

    asyncio.run(run())
    assert (root / "x").exists() is use_roots


async def test_without_a_directory_every_path_is_refused() -> None:
    async with Client(filesystem_server(), mode="legacy") as client:
        refused = await client.call_tool("read_text_file", {"path": "/etc/passwd"})
        assert refused.is_error
        assert not (await client.call_tool("list_allowed_directories", {})).is_error


@pytest.mark.parametrize(
    ("options", "added"),
    [
        ({"history_tools": False}, []),
        ({}, ["timeline", "undo", "redo", "revert", "restore", "snapshot"]),
        ({"read_only": True}, ["timeline"]),
    ],
)
async def test_the_tools_are_listed_as_by_the_reference_server(tmp_path: Path, options: Any, added: list[str]) -> None:
    server = filesystem_server([tmp_path], **options)
    async with Client(server, mode="legacy") as client:
        tools = (await client.list_tools()).tools
        own = [
            one
            for one in reference_definitions()
            if not options.get("read_only") or (one.annotations and one.annotations.read_only_hint)
        ]
        assert tools[: len(own)] == own
        assert [one.name for one in tools[len(own) :]] == added
        refused = await client.session.call_tool("write_file", {"path": str(tmp_path / "x"), "content": ""})
        assert refused.is_error is bool(options.get("read_only"))


async def test_work_in_several_directories_is_undone_together_and_a_failed_call_changes_none(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for place in (one, other):
        place.mkdir()
        (place / "a.txt").write_text("a\n")

    server = filesystem_server([one, other, one / "."], store=str(tmp_path / "store"))
    async with Client(server, mode="legacy") as client:
        for place in (one, other):
            edit = {"path": str(place / "a.txt"), "edits": [{"oldText": "a", "newText": "b"}]}
            assert not (await client.call_tool("edit_file", edit)).is_error
            assert (place / "a.txt").read_text() == "b\n"
        for place in (other, one):
            undone = await client.call_tool("undo", {})
            assert not undone.is_error, undone
            assert (place / "a.txt").read_text() == "a\n"


def fingerprint(place: Path) -> list[object]:
    """Return everything below a directory."""
    return [
        (
            str(path.relative_to(place)),
            path.lstat().st_mode,
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(place.rglob("*"))
    ]


async def test_a_move_between_allowed_directories_can_be_undone(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    (one / "tree/deep").mkdir(parents=True)
    other.mkdir()
    (one / "tree/run.sh").write_text("#!/bin/sh\n")
    (one / "tree/run.sh").chmod(0o750)
    (one / "tree/deep/bytes").write_bytes(b"\xff\x00")
    (one / "tree/deep").chmod(0o700)
    (one / "tree/link").symlink_to("run.sh")
    tree, nothing = fingerprint(one / "tree"), fingerprint(other)

    server = filesystem_server([one, other], store=str(tmp_path / "store"))
    async with Client(server, mode="legacy") as client:

        async def move(source: Path, destination: Path) -> bool:
            given = {"source": str(source), "destination": str(destination)}
            return not (await client.call_tool("move_file", given)).is_error

        assert await move(one / "tree", other / "moved")
        assert fingerprint(other / "moved") == tree
        assert not (one / "tree").exists()
        assert not (await client.call_tool("undo", {})).is_error
        assert (fingerprint(one / "tree"), fingerprint(other)) == (tree, nothing)

        # A FIFO cannot be moved: what was written before it is undone.
        os.mkfifo(one / "tree/z")
        assert not await move(one / "tree", other / "moved")
        (one / "tree/z").unlink()
        assert (fingerprint(one / "tree"), fingerprint(other)) == (tree, nothing)
        (other / "moved").mkdir()
        assert not await move(one / "tree", other / "moved")
        assert not await move(one / "tree", other / "gone/moved")
        assert await move(one / "tree/run.sh", other / "run.sh")
        assert (other / "run.sh").stat().st_mode & 0o777 == 0o750
