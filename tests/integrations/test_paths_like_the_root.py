"""Files whose path starts like the root of their host directory, through the integrations that keep canonical paths."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from weakfs import HostFilesystem, Session, Toolset


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory that contains a directory with its own path, with a file of the same name in both."""
    root = tmp_path / "root"
    inside(root).mkdir(parents=True)
    (inside(root) / "file").write_text("inner\n")
    (root / "file").write_text("outer\n")
    return root


def inside(root: Path) -> Path:
    return root / str(root)[1:]


def test_fsspec_finds_and_changes_the_named_files(root: Path) -> None:
    fsspec = pytest.importorskip("weakfs.integrations.fsspec")
    fs: Any = fsspec.WeakfsFileSystem(HostFilesystem(root))
    assert {name: fs.cat(name) for name in fs.find("/")} == {"/file": b"outer\n", f"{root}/file": b"inner\n"}
    fs.mv(f"{root}/file", f"{root}/moved")
    fs.pipe(f"{root}/file", b"new\n")
    assert (inside(root) / "moved").read_text() == "inner\n"
    assert (inside(root) / "file").read_text() == "new\n"
    assert (root / "file").read_text() == "outer\n"


def test_the_text_editor_edits_the_named_file(root: Path) -> None:
    anthropic = pytest.importorskip("weakfs.integrations.anthropic")
    session = Session()
    editor = anthropic.TextEditorTool(session, HostFilesystem(root, session=session), version="20250124")
    path = f"{root}/file"[1:]
    editor.call({"command": "str_replace", "path": path, "old_str": "inner", "new_str": "edited"})
    editor.call({"command": "insert", "path": path, "insert_line": 0, "new_str": "first"})
    assert (inside(root) / "file").read_text() == "first\nedited\n"
    editor.call({"command": "undo_edit", "path": path})
    assert "     1\tedited\n" in str(editor.call({"command": "view", "path": path}))
    assert (root / "file").read_text() == "outer\n"


def test_mcp_resources_are_the_listed_files(root: Path) -> None:
    mcp = pytest.importorskip("weakfs.integrations.mcp")
    client = pytest.importorskip("mcp.client.client")
    session = Session()
    server = mcp.toolset_server(Toolset(session, HostFilesystem(root, session=session)))

    async def read() -> dict[str, str]:
        async with client.Client(server) as connected:
            listed = (await connected.list_resources()).resources
            return {one.uri: (await connected.read_resource(one.uri)).contents[0].text for one in listed}

    assert asyncio.run(read()) == {"weakfs:///file": "outer\n", f"weakfs://{root}/file": "inner\n"}


def test_the_reference_tools_use_the_named_file(root: Path, tmp_path: Path) -> None:
    mcp = pytest.importorskip("weakfs.integrations.mcp")
    client = pytest.importorskip("mcp.client.client")
    server = mcp.filesystem_server([root], store=str(tmp_path / "store"))
    path = str(inside(root) / "file")

    async def work() -> str:
        async with client.Client(server) as connected:
            await connected.call_tool("write_file", {"path": path, "content": "new\n"})
            await connected.call_tool("edit_file", {"path": path, "edits": [{"oldText": "new", "newText": "edited"}]})
            return str((await connected.call_tool("read_text_file", {"path": path})).content[0].text)

    assert asyncio.run(work()) == "edited\n"
    assert (inside(root) / "file").read_text() == "edited\n"
    assert (root / "file").read_text() == "outer\n"
