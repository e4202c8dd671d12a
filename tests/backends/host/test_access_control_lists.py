"""POSIX access control lists of host files: edits, failed calls, undo and rollbacks give nobody more access."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.access_control_lists import ACCESS, DEFAULT, access_control_list
from weakfs import HostFilesystem, Session
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.undo_journal.tree_copy import TreeCopy

SOMEBODY = 1234


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory in which `SOMEBODY` may change new entries, but not the existing ones."""
    root = tmp_path / "root"
    (root / "private").mkdir(parents=True, mode=0o750)
    for name in ("private.txt", "private/a.txt"):
        (root / name).write_text("private\n")
        (root / name).chmod(0o640)
    try:
        os.setxattr(root, DEFAULT, access_control_list(0o775, {SOMEBODY: 7}))
    except OSError as error:
        pytest.skip(f"no access control lists here: {error}")
    (root / "shared").mkdir()
    (root / "shared.txt").write_text("shared\n")
    os.setxattr(root / "shared.txt", ACCESS, access_control_list(0o640, {SOMEBODY: 4, 99: 2}))
    return root


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, session=Session(), store=tmp_path / "store")


def rights(root: Path) -> dict[str, object]:
    """Return the permission bits, times and extended attributes of all entries."""
    found: dict[str, object] = {}
    for path in (root, *sorted(root.rglob("*"))):
        status = path.lstat()
        attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
        found[str(path.relative_to(root))] = status.st_mode, status.st_mtime_ns, attributes
    return found


def write(fs: HostFilesystem) -> None:
    for path in ("/private.txt", "/private/a.txt", "/shared.txt"):
        fs.write(path, "after\n")


def append(fs: HostFilesystem) -> None:
    for path in ("/private.txt", "/shared.txt"):
        fs.append(path, "more\n")


def copy_over(fs: HostFilesystem) -> None:
    fs.copy("/shared.txt", "/private.txt")


def change_bits(fs: HostFilesystem) -> None:
    for path in ("/private.txt", "/shared.txt", "/shared"):
        fs.chmod(path, 0o700)


def delete_and_move(fs: HostFilesystem) -> None:
    fs.delete("/private", recursive=True)
    fs.move("/shared.txt", "/shared/moved.txt")
    fs.move("/private.txt", "/shared.txt")


CHANGES = [write, append, copy_over, change_bits, delete_and_move]


@pytest.mark.parametrize("change", [write, append, copy_over])
def test_an_edit_changes_nobodys_access(
    fs: HostFilesystem, root: Path, change: Callable[[HostFilesystem], None]
) -> None:
    before = {path: os.listxattr(root / path) for path in rights(root)}
    change(fs)
    assert {path: os.listxattr(root / path) for path in rights(root)} == before
    assert os.getxattr(root / "shared.txt", ACCESS) == access_control_list(0o640, {SOMEBODY: 4, 99: 2})


@pytest.mark.parametrize("change", CHANGES)
def test_a_failed_transaction_restores_everybodys_access(
    fs: HostFilesystem, root: Path, change: Callable[[HostFilesystem], None]
) -> None:
    before = rights(root)
    with pytest.raises(KeyError), fs.session.transaction():
        change(fs)
        raise KeyError
    assert rights(root) == before


@pytest.mark.parametrize(("change", "operations"), [(write, 3), (append, 2), (copy_over, 1), (change_bits, 3)])
def test_undo_and_rollback_restore_everybodys_access(
    fs: HostFilesystem, root: Path, change: Callable[[HostFilesystem], None], operations: int
) -> None:
    before = rights(root)
    snapshot = fs.session.snapshot()
    change(fs)
    fs.session.undo(operations)
    assert rights(root) == before
    change(fs)
    fs.session.rollback(snapshot)
    assert rights(root) == before


def test_a_copy_in_the_same_directory_inherits_nothing(root: Path) -> None:
    disk = HostDirectory(str(root))
    assert TreeCopy(disk, disk).copy(("private",), ("copy",))
    assert {os.listxattr(root / name) == [] for name in ("copy", "copy/a.txt")} == {True}
    assert (root / "copy" / "a.txt").stat().st_mode & 0o777 == 0o640
