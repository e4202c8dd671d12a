"""Listing a host directory: what it costs, and that every kind of entry and name is shown as by `stat`."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.models.host import NAMES
from weakfs import Session, Toolset
from weakfs.backends import HostFilesystem


class Unlooked:
    """An entry of a listing that must not be examined with `stat`."""

    def __init__(self, entry: os.DirEntry[str]) -> None:
        self.name = entry.name
        self.is_file, self.is_dir, self.is_symlink = entry.is_file, entry.is_dir, entry.is_symlink

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        raise AssertionError(f"{self.name} was looked at")


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, session=Session(), store=tmp_path / "store")


def test_a_listing_does_not_stat_its_entries(fs: HostFilesystem, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "d").mkdir()
    (root / "d" / "sub").mkdir()
    (root / "d" / "a").touch()
    (root / "d" / "l").symlink_to("a")
    scandir = os.scandir

    @contextmanager
    def watched(where: int) -> Iterator[Iterator[Unlooked]]:
        with scandir(where) as listing:
            yield (Unlooked(entry) for entry in listing)

    monkeypatch.setattr(os, "scandir", watched)
    assert [entry.path for entry in fs.list("/d")] == ["/d/a", "/d/l", "/d/sub"]
    assert Toolset(fs.session, fs).call("ls", {"path": "/d"}).message == "a\nl@\nsub/"


def test_a_listing_shows_every_entry_as_stat_does(fs: HostFilesystem, root: Path) -> None:
    for name in NAMES:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).touch()
    (root / "directory").mkdir()
    (root / "link").symlink_to("directory")
    (root / "broken").symlink_to("nowhere")
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(str(root / "socket"))
    entries = fs.list()
    assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
    assert len(entries) == len(os.listdir(root))
    for entry in entries:
        status = fs.stat(entry.path)
        assert (entry.is_file, entry.is_directory, entry.is_symlink) == (
            status.is_file,
            status.is_directory,
            status.is_symlink,
        )
