"""Metadata of host files if the journal is on another device and has to hold copies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import frozen

from tests.models.access_control_lists import ACCESS, DEFAULT, access_control_list
from weakfs import Policy, PolicyRule, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.backends import HostFilesystem, MountedFilesystem
from weakfs.snapshots.directory import entries
from weakfs.snapshots.undo_journal import tree_copy
from weakfs.tools import require_filesystem

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    place = Path("/dev/shm") / f"weakfs-test-{os.getpid()}-{tmp_path.name}"
    if not os.access("/dev/shm", os.W_OK) or os.stat("/dev/shm").st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("there is no other device")
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "a").write_text("text")
    (root / "d" / "l").symlink_to("a")
    os.link(root / "d" / "a", root / "d" / "e" / "b")
    os.mkfifo(root / "d" / "fifo")
    return root


@pytest.fixture
def fs(root: Path, store: Path) -> HostFilesystem:
    return HostFilesystem(root, session=Session(), store=store)


@frozen
class NoParams:
    """No parameters."""


def owners(root: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        found[str(path.relative_to(root))] = status.st_uid, status.st_gid, status.st_mode
    return found


def move_and_delete(fs: HostFilesystem) -> None:
    fs.move("/d", "/moved")
    fs.delete("/moved", recursive=True)


def move_in_and_delete(fs: HostFilesystem) -> None:
    fs.move("/d/l", "/d/e/l")
    fs.delete("/d/e", recursive=True)
    fs.write("/n", "takes the number of what went")


CHANGES: dict[str, Callable[[HostFilesystem], object]] = {
    "write": lambda fs: fs.write("/d/a", "after"),
    "delete": lambda fs: fs.delete("/d/a"),
    "delete and write": lambda fs: (fs.delete("/d/a"), fs.write("/d/a", "after")),
    "delete a link": lambda fs: fs.delete("/d/l"),
    "delete a tree": lambda fs: fs.delete("/d", recursive=True),
    "delete a moved tree": move_and_delete,
    "delete what moved in": move_in_and_delete,
    "delete both names": lambda fs: (fs.delete("/d/a"), fs.delete("/d/e/b"), fs.write("/n", "")),
    "edit and delete both": lambda fs: (fs.append("/d/a", "!"), fs.delete("/d/a"), fs.delete("/d/e/b")),
}
changes = pytest.mark.parametrize("change", CHANGES)


def undone(fs: HostFilesystem, change: str) -> list[str]:
    with pytest.raises(KeyError) as caught, fs.session.transaction():
        CHANGES[change](fs)
        raise KeyError
    return list(getattr(caught.value, "__notes__", []))


@needs_root
@changes
def test_undoing_restores_owners_and_groups(fs: HostFilesystem, root: Path, change: str) -> None:
    for number, path in enumerate(sorted(root.rglob("*"))):
        os.chown(path, 12_000 + number, 13_000 + number, follow_symlinks=False)
    (root / "d" / "a").chmod(0o4754)
    before = owners(root)
    undone(fs, change)
    assert owners(root) == before


@changes
def test_undoing_restores_hard_links_or_says_that_it_does_not(fs: HostFilesystem, root: Path, change: str) -> None:
    notes = undone(fs, change)
    if change == "delete what moved in":
        # The other name is not in the directory that was copied as a whole.
        assert notes == ["put back, but not exactly: /d/e/b: its hard link could not be put back"]
        return
    assert notes == []
    a, b = (root / "d" / "a").stat(), (root / "d" / "e" / "b").stat()
    assert (a.st_ino, a.st_nlink) == (b.st_ino, 2)
    assert (root / "d" / "a").read_text() == "text"


@changes
def test_undoing_restores_no_more_access_than_there_was(fs: HostFilesystem, root: Path, change: str) -> None:
    before = owners(root)
    try:
        for path in (root, root / "d", root / "d" / "e"):
            os.setxattr(path, DEFAULT, access_control_list(0o777, {1234: 7}))
    except OSError as error:
        pytest.skip(f"no access control lists here: {error}")
    undone(fs, change)
    assert owners(root) == before
    assert [path for path in root.rglob("*") if ACCESS in os.listxattr(path, follow_symlinks=False)] == []


@changes
def test_undoing_restores_extended_attributes(fs: HostFilesystem, root: Path, store: Path, change: str) -> None:
    store.mkdir(exist_ok=True)
    for place in (root / "d" / "a", root / "d", store):
        try:
            os.setxattr(place, "user.kind", b"draft")
        except OSError as error:
            pytest.skip(f"no extended attributes on both devices: {error}")
    undone(fs, change)
    assert os.getxattr(root / "d" / "a", "user.kind") == b"draft"
    assert os.getxattr(root / "d", "user.kind") == b"draft"


@changes
def test_holes_stay_holes(fs: HostFilesystem, root: Path, change: str) -> None:
    with open(root / "d" / "a", "wb") as stream:
        stream.truncate(8 << 20)
    blocks = (root / "d" / "a").stat().st_blocks
    undone(fs, change)
    assert (root / "d" / "a").stat().st_size == 8 << 20
    assert (root / "d" / "a").stat().st_blocks <= blocks + 256


def test_an_owner_that_cannot_be_restored_is_noted(
    fs: HostFilesystem, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.unlink(root / "d" / "e" / "b")
    lose_owners(monkeypatch)
    assert undone(fs, "delete") == ["put back, but not exactly: /d/a: its owner could not be put back"]
    assert undone(fs, "write") == []


def test_a_failed_call_says_what_could_not_be_restored(
    fs: HostFilesystem, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "bell\x07"
    (root / name).write_text("text")
    lose_owners(monkeypatch)

    def fail(params: object, *, context: ToolContext) -> ToolResult[None]:
        require_filesystem(context).delete(f"/{name}")
        return ToolResult("it fails", None, success=False)

    def refuse(params: object, *, context: ToolContext) -> ToolResult[None]:
        require_filesystem(context).delete(f"/{name}")
        raise ValueError("refused")

    tools = (Tool("fail", "Fails.", NoParams, fail), Tool("refuse", "Refuses.", NoParams, refuse))
    toolset = Toolset(fs.session, fs, tools=tools)
    lines = toolset.call("fail", {}).message.split("\n")
    assert lines == ["it fails", "put back, but not exactly: /bell\\x07: its owner could not be put back"]
    lines = toolset.call("refuse", {}).message.split("\n")
    assert lines[1:] == ["put back, but not exactly: /bell\\x07: its owner could not be put back"]
    assert (root / name).read_text() == "text"


def lose_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the system refuse to change owners, as it does for everybody except root."""
    real = entries.copy_attributes

    def copy_attributes(source: int, before: os.stat_result, target: int) -> str | None:
        return real(source, before, target) or "owner"

    monkeypatch.setattr(tree_copy, "copy_attributes", copy_attributes)


@pytest.mark.parametrize("mounted_at", [None, "/workspace"])
def test_a_failed_call_names_no_hidden_file_that_could_not_be_restored(
    fs: HostFilesystem,
    root: Path,
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mounted_at: str | None,
) -> None:
    (root / "d" / "e" / "b").unlink()
    (root / "d" / "hidden").write_text("text")
    (tmp_path / "other").mkdir()
    other = HostFilesystem(tmp_path / "other", session=fs.session, store=store)
    other.write("/elsewhere", "text")
    lose_owners(monkeypatch)
    files, at = (fs, "") if mounted_at is None else (MountedFilesystem(fs, mounted_at), mounted_at)

    def fail(params: object, *, context: ToolContext) -> ToolResult[None]:
        require_filesystem(context).delete(f"{at}/d", recursive=True)
        other.delete("/elsewhere")
        return ToolResult("it fails", None, success=False)

    rule = PolicyRule(
        effect="deny", operations=["read", "list", "search", "stat"], paths=f"{at}/d/hidden", reason="a secret"
    )
    tools = (Tool("fail", "Fails.", NoParams, fail),)
    start = "put back, but not exactly: "
    told = Toolset(fs.session, files, tools=tools, policy=Policy([rule])).call("fail", {}).message
    assert f"{start}{at}/d/a: its owner could not be put back" in told.split("\n")
    assert "hidden" not in told
    assert "elsewhere" not in told
    told = Toolset(fs.session, files, tools=tools).call("fail", {}).message
    assert f"{start}{at}/d/hidden: its owner could not be put back" in told.split("\n")
    assert f"{start}/elsewhere: its owner could not be put back" in told.split("\n")
    assert (root / "d" / "hidden").read_text() == "text"
