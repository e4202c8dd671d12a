"""What the host knows of a file besides its contents: it survives an edit and its undo where the system allows it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weakfs import Session
from weakfs.backends import HostFilesystem


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "root" / "a"
    file.parent.mkdir()
    file.write_text("before")
    return file


@pytest.fixture
def fs(file: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(file.parent, session=Session(), store=tmp_path / "store")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_an_edit_keeps_owner_group_and_special_bits(fs: HostFilesystem, file: Path) -> None:
    os.chown(file, 12_345, 23_456)
    file.chmod(0o4754)
    fs.write("/a", "after")
    fs.append("/a", "!")
    status = file.stat()
    assert file.read_text() == "after!"
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (12_345, 23_456, 0o4754)


def test_an_edit_keeps_extended_attributes(fs: HostFilesystem, file: Path) -> None:
    try:
        os.setxattr(file, "user.kind", b"draft")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")
    fs.write("/a", "after")
    assert os.getxattr(file, "user.kind") == b"draft"


def test_undoing_an_edit_brings_the_very_file_back(fs: HostFilesystem, file: Path) -> None:
    os.link(file, file.parent.parent / "other name")
    inode = file.stat().st_ino
    with pytest.raises(KeyError), fs.session.transaction():
        fs.write("/a", "after")
        raise KeyError
    assert (file.stat().st_ino, file.stat().st_nlink) == (inode, 2)


def test_a_new_file_in_the_place_of_a_link_takes_nothing_over(fs: HostFilesystem, file: Path) -> None:
    outside = file.parent.parent / "outside"
    outside.write_text("outside")
    (file.parent / "l").symlink_to(outside)
    fs.copy("/a", "/l")
    assert fs.read("/l").content == "before"
    assert outside.read_text() == "outside"
