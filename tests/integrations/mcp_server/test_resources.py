"""Files and the timeline as resources of a toolset's server, and what a policy hides of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from tests.integrations.mcp_server.toolset_client import ERAS, TOOLS, call, served
from weakfs import (
    Capability,
    HostFilesystem,
    InMemoryFilesystem,
    MountedFilesystem,
    Policy,
    PolicyRule,
    Session,
    Toolset,
)


@pytest.mark.parametrize("era", ERAS)
def test_files_are_resources_now_and_at_earlier_moments(era: str, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    for on_host in (False, True):
        session = Session()
        files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store") if on_host else None

        async def work(client: Client) -> None:
            await call(client, "write_file", path="/a b/é.txt", content="one\n")
            await call(client, "snapshot", tag="first")
            await call(client, "write_file", path="/a b/é.txt", content="two\n")
            listed = (await client.list_resources()).resources
            assert [one.uri for one in listed] == ["weakfs:///a%20b/%C3%A9.txt"]

            async def read(uri: str) -> object:
                contents = (await client.read_resource(uri)).contents[0]
                return contents.text if isinstance(contents, types.TextResourceContents) else contents.blob

            assert await read(listed[0].uri) == "two\n"
            assert await read(f"{listed[0].uri}?at=first") == "one\n"
            assert json.loads(str(await read("weakfs:///"))) == [{"name": "a b", "type": "directory"}]
            for uri in (
                "weakfs:///none",
                "weakfs:///a%20b/%C3%A9.txt?at=never",
                "file:///etc/passwd",
                "weakfs:///%FF",
                "weakfs:///../x",
                "weakfs://host/x",
                "weakfs:///x?to=1",
            ):
                with pytest.raises(MCPError):
                    await read(uri)
            templates = (await client.list_resource_templates()).resource_templates
            assert [one.uri_template for one in templates] == ["weakfs:///{+path}{?at}"]

        served(session, work, era, filesystem=files)


def test_bytes_are_read_as_base64() -> None:
    session = Session()
    InMemoryFilesystem(session).write_bytes("/a.png", b"\x89PNG\xff")

    async def work(client: Client) -> None:
        contents = (await client.read_resource("weakfs:///a.png")).contents[0]
        assert isinstance(contents, types.BlobResourceContents)
        assert (contents.blob, contents.mime_type) == ("iVBOR/8=", "image/png")

    served(session, work)


def test_resources_are_listed_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weakfs.integrations.mcp.resources.PAGE", 3)
    session = Session()
    files = InMemoryFilesystem(session)
    paths = ["/a-b", "/a.txt", "/a/b/c", "/a/x", "/a/y", "/b", "/c/d/e/f", "/d"]
    for path in [*paths, "/.git/config", "/a/.hidden"]:
        files.write(path, "x")

    async def work(client: Client) -> None:
        found: list[str] = []
        cursor: str | None = None
        sizes: list[int] = []
        while True:
            page = await client.list_resources(cursor=cursor)
            sizes.append(len(page.resources))
            found += [one.uri.removeprefix("weakfs://") for one in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert sorted(found) == sorted(paths)
        assert sizes == [3, 3, 2]
        for bad in ("nonsense", "////", ""):
            with pytest.raises(MCPError):
                await client.list_resources(cursor=bad or "\x00")

    served(session, work)


def test_files_that_a_capability_forbids_are_not_resources() -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/open/a", "x")
    files.write("/secret/b", "y")

    async def work(client: Client) -> None:
        assert (await client.read_resource("weakfs:///open/a")).contents
        for uri in ("weakfs:///secret/b", f"weakfs:///secret/b?at={session.seq}"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)

    served(session, work, capability=Capability(fs_roots=("/open",)))


@pytest.mark.parametrize("effect", ["deny", "blob"])
def test_files_that_a_policy_withholds_are_not_resources(effect: Literal["deny", "blob"]) -> None:
    session = Session()
    files = InMemoryFilesystem(session, follow_symlinks="within_root_only")
    files.write("/open/a", "x")
    files.write("/secret/b", "swordfish")
    files.symlink("/secret/b", "/open/link")

    async def work(client: Client) -> None:
        assert (await client.read_resource("weakfs:///open/a")).contents
        for uri in ("weakfs:///secret/b", f"weakfs:///secret/b?at={session.seq}", "weakfs:///open/link"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert "swordfish" not in str(refused.value)

    hidden = PolicyRule(effect=effect, operations=["read"], paths="/secret", reason="credentials")
    served(session, work, filesystem=files, policy=Policy([hidden]))


def test_the_timeline_names_no_file_that_a_capability_hides() -> None:
    session = Session()
    tools = Toolset(session, InMemoryFilesystem(session))
    for path in ("/open/a", "/secret/b"):
        assert tools.call("write_file", {"path": path, "content": "x"}).success
    assert tools.call("mv", {"source": "/secret/b", "destination": "/open/b"}).success
    assert tools.call("read_file", {"path": "/secret/gone"}).error_code == "not_found"

    async def work(client: Client) -> None:
        answer = await call(client, "timeline")
        assert "secret" not in str(answer)
        assert [row["target"] for row in answer.structured_content["rows"]] == ["/open/a", "", "", ""]

    served(session, work, capability=Capability(fs_roots=("/open",)))


@pytest.mark.parametrize("effect", ["deny", "blob"])
def test_the_timeline_names_no_file_that_may_not_be_listed(effect: Literal["deny", "blob"]) -> None:
    session = Session()
    free = Toolset(session, InMemoryFilesystem(session), tools=TOOLS)
    for path in ("/open/a", "/secret/b"):
        assert free.call("write_file", {"path": path, "content": "x"}).success
    assert free.call("mv", {"source": "/secret/b", "destination": "/open/b"}).success
    assert free.call("mv", {"source": "/open/b", "destination": "/secret/c"}).success
    hidden = PolicyRule(effect=effect, operations=["list", "search"], paths="/secret/*", reason="names")
    tools = Toolset(session, free.filesystem, tools=TOOLS, policy=Policy([hidden]))

    answer = tools.call("timeline", {})

    assert "/secret/" not in f"{answer.message} {answer.value}"
    assert "A /open/b" in answer.message


def test_the_timeline_of_mounted_files_has_their_paths_and_names_no_hidden_file() -> None:
    session = Session()
    files = MountedFilesystem(InMemoryFilesystem(session), "/workspace")
    free = Toolset(session, files, tools=TOOLS)
    for path in ("/workspace/open/a", "secret/b"):
        assert free.call("write_file", {"path": path, "content": "x"}).success
    files.files.write("/open/c", "x")
    files.files.write("/secret/d", "x")
    hidden = PolicyRule(effect="deny", operations=["read"], paths="/workspace/secret", reason="credentials")
    tools = Toolset(session, files, tools=TOOLS, policy=Policy([hidden]))

    answer = tools.call("timeline", {})
    below = free.call("timeline", {"path": "/workspace/secret"})

    assert "secret" not in f"{answer.message} {answer.value}"
    assert "write_file /workspace/open/a ok\n  A /workspace/open/a\n" in answer.message
    assert "fs/file_written /workspace/open/c ok\n  A /workspace/open/c\n" in answer.message
    assert below.message.endswith("[2 rows]")
    assert free.call("timeline", {"path": "secret"}).message == below.message


def test_the_timeline_under_a_policy_has_no_files_of_other_filesystems(tmp_path: Path) -> None:
    session = Session()
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    own, other = (
        HostFilesystem(tmp_path / name, session=session, store=tmp_path / "store") for name in ("own", "other")
    )
    other.write("/b", "x")
    InMemoryFilesystem(session).write("/c", "x")
    own.write("/a", "x")
    rule = PolicyRule(effect="deny", operations=["read"], paths="/secret", reason="credentials")
    tools = Toolset(session, own, tools=TOOLS, policy=Policy([rule]))

    answer = tools.call("timeline", {})

    assert [name for name in "abc" if f"/{name}" in answer.message] == ["a"]
    assert all(f"/{name}" in Toolset(session, own, tools=TOOLS).call("timeline", {}).message for name in "abc")
