"""Commits to a host directory with hard links: afterwards it holds what the overlay showed, under every name."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from weakfs import Session
from weakfs.backends import HostFilesystem, OverlayFilesystem


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "a").write_text("before\n")
    os.link(root / "a", root / "d" / "b")
    return root


def over(root: Path) -> OverlayFilesystem:
    return OverlayFilesystem(HostFilesystem(root, store=root.parent / "store"), Session())


def commit(layer: OverlayFilesystem) -> None:
    shown = layer.tree().fingerprint
    layer.commit()
    assert layer.tree().fingerprint == shown


def inode(path: Path) -> int:
    return path.stat().st_ino


def write(layer: OverlayFilesystem, path: str) -> None:
    layer.write(path, f"written as {path}\n")


def chmod(layer: OverlayFilesystem, path: str) -> None:
    layer.chmod(path, 0o600 if path == "/a" else 0o640)


@pytest.mark.parametrize("change", [write, chmod])
@pytest.mark.parametrize("path", ["/a", "/d/b"])
def test_the_other_name_of_a_changed_file_stays_as_the_overlay_showed_it(
    root: Path, change: Callable[[OverlayFilesystem, str], None], path: str
) -> None:
    layer = over(root)
    change(layer, path)
    commit(layer)
    assert inode(root / "a") != inode(root / "d" / "b")


@pytest.mark.parametrize("changes", [*itertools.permutations([(write, "/a"), (write, "/d/b"), (chmod, "/a")], 2)])
def test_changes_of_two_names_of_a_file_are_both_kept(
    root: Path, changes: tuple[tuple[Callable[[OverlayFilesystem, str], None], str], ...]
) -> None:
    layer = over(root)
    for change, path in changes:
        change(layer, path)
    commit(layer)


def test_names_that_change_alike_stay_one_file(root: Path) -> None:
    before = inode(root / "a")
    layer = over(root)
    for path in ("/a", "/d/b"):
        layer.write(path, "after\n")
        layer.chmod(path, 0o600)
    commit(layer)
    assert inode(root / "a") == inode(root / "d" / "b") == before


@pytest.mark.parametrize("gone", [OverlayFilesystem.delete, lambda layer, path: layer.move(path, "/moved")])
def test_a_file_whose_other_name_goes_is_changed_in_place(
    root: Path, gone: Callable[[OverlayFilesystem, str], object]
) -> None:
    before = inode(root / "a")
    layer = over(root)
    gone(layer, "/d/b")
    layer.write("/a", "after\n")
    commit(layer)
    assert inode(root / "a") == before


def test_a_file_that_is_made_separate_keeps_its_attributes(root: Path) -> None:
    os.setxattr(root / "a", "user.note", b"kept")
    layer = over(root)
    layer.write("/a", "after\n")
    commit(layer)
    assert os.getxattr(root / "a", "user.note") == b"kept"


@pytest.mark.parametrize("is_outside", [False, True])
def test_a_commit_logs_that_a_file_is_no_longer_a_hard_link(
    root: Path, is_outside: bool, caplog: pytest.LogCaptureFixture
) -> None:
    if is_outside:
        os.rename(root / "d" / "b", root.parent / "b")
    layer = over(root)
    layer.write("/a", "after\n")
    with caplog.at_level(logging.WARNING, "weakfs.backends"):
        commit(layer)
    assert "/a: it was a hard link to a file" in caplog.text
    assert "is now a separate file" in caplog.text


def test_a_failed_commit_makes_the_names_one_file_again(root: Path) -> None:
    layer = over(root)
    layer.write("/a", "after\n")
    layer.write("/z", "x" * 100)
    lower = layer.lower
    assert isinstance(lower, HostFilesystem)
    lower.limits = type(lower.limits)(max_file_size=50)
    before = inode(root / "a")
    with pytest.raises(OSError, match="50"):
        layer.commit()
    assert inode(root / "a") == inode(root / "d" / "b") == before
    assert (root / "a").read_text() == "before\n"
