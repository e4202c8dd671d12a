"""A host root that is removed or renamed while it is open."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from weakfs import Session
from weakfs.backends import HostFilesystem

CALLS: dict[str, Callable[[HostFilesystem], object]] = {
    "read": lambda fs: fs.read("/a"),
    "read_bytes": lambda fs: fs.read_bytes("/a"),
    "read_lines": lambda fs: fs.read_lines("/a"),
    "open to read": lambda fs: fs.open("/a"),
    "open to write": lambda fs: fs.open("/a", "w"),
    "exists": lambda fs: fs.exists("/a"),
    "exists of the root": lambda fs: fs.exists("/"),
    "is_file": lambda fs: fs.is_file("/a"),
    "is_directory": lambda fs: fs.is_directory("/d"),
    "stat": lambda fs: fs.stat("/a"),
    "stat of the root": lambda fs: fs.stat("/"),
    "readlink": lambda fs: fs.readlink("/l"),
    "list": lambda fs: fs.list("/"),
    "walk": lambda fs: list(fs.walk("/")),
    "glob": lambda fs: fs.glob("*"),
    "grep": lambda fs: fs.grep("a"),
    "statistics": lambda fs: fs.statistics(),
    "tree": lambda fs: fs.tree(),
    "write": lambda fs: fs.write("/a", "b"),
    "append": lambda fs: fs.append("/a", "b"),
    "splice": lambda fs: fs.splice("/a", [(0, 1, b"b")]),
    "mkdir": lambda fs: fs.mkdir("/e"),
    "delete": lambda fs: fs.delete("/a"),
    "move": lambda fs: fs.move("/a", "/b"),
    "copy": lambda fs: fs.copy("/a", "/b"),
    "chmod": lambda fs: fs.chmod("/a", 0o600),
    "symlink": lambda fs: fs.symlink("a", "/m"),
    "snapshot": lambda fs: fs.snapshot(),
    "export_bytes": lambda fs: fs.export_bytes(),
    "checkout": lambda fs: fs.checkout().__enter__(),
    "a snapshot of the session": lambda fs: fs.session.snapshot(),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "a").write_text("a\n")
    (root / "l").symlink_to("a")
    return root


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, session=Session(), store=tmp_path / "store")


def rename(root: Path) -> None:
    root.rename(root.parent / "elsewhere")


@pytest.mark.parametrize("vanish", [shutil.rmtree, rename])
@pytest.mark.parametrize("call", CALLS)
def test_every_method_names_a_vanished_root(
    fs: HostFilesystem, root: Path, call: str, vanish: Callable[[Path], None]
) -> None:
    vanish(root)
    with pytest.raises(FileNotFoundError, match="the directory that was opened is no longer there") as caught:
        CALLS[call](fs)
    assert str(root) in str(caught.value)


@pytest.mark.parametrize("vanish", [shutil.rmtree, rename])
def test_restoring_into_a_vanished_root_names_it(
    fs: HostFilesystem, root: Path, vanish: Callable[[Path], None]
) -> None:
    snapshot, archive = fs.snapshot(), fs.export_bytes()
    vanish(root)
    for call in (
        lambda: fs.restore(snapshot),
        lambda: fs.restore(snapshot, dry_run=True),
        lambda: fs.import_bytes(archive),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            call()
        assert str(root) in str(caught.value)


@pytest.mark.parametrize("vanish", [shutil.rmtree, rename])
def test_a_recreated_root_can_be_opened_with_the_same_session(
    fs: HostFilesystem, root: Path, tmp_path: Path, vanish: Callable[[Path], None]
) -> None:
    snapshot = fs.session.snapshot()
    vanish(root)
    root.mkdir()
    with pytest.raises(FileNotFoundError):
        fs.read("/a")
    again = HostFilesystem(root, session=fs.session, store=tmp_path / "store")
    again.write("/new", "text")
    assert (root / "new").read_text() == "text"
    fs.session.rollback(snapshot)
    assert again.read("/a").content == "a\n"
    assert not (root / "new").exists()


def test_a_renamed_root_can_be_opened_at_its_new_path_with_the_same_session(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    snapshot = fs.session.snapshot()
    moved = root.rename(tmp_path / "elsewhere")
    again = HostFilesystem(moved, session=fs.session, store=tmp_path / "store", filesystem_id=fs.filesystem_id)
    again.write("/a", "text")
    fs.session.rollback(snapshot)
    assert (moved / "a").read_text() == "a\n"


def test_work_continues_after_a_root_was_put_back(fs: HostFilesystem, root: Path, tmp_path: Path) -> None:
    moved = root.rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        fs.list()
    moved.rename(root)
    assert fs.read("/a").content == "a\n"
