"""Metadata that the host stores with a file survives an edit and its undo if the system allows it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.snapshots.directory.birth_time import birth_time

AT_FDCWD = -100


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


def test_undoing_an_edit_restores_the_original_inode(fs: HostFilesystem, file: Path) -> None:
    os.link(file, file.parent.parent / "other name")
    inode = file.stat().st_ino
    with pytest.raises(KeyError), fs.session.transaction():
        fs.write("/a", "after")
        raise KeyError
    assert (file.stat().st_ino, file.stat().st_nlink) == (inode, 2)


def test_a_new_file_that_replaces_a_link_inherits_nothing(fs: HostFilesystem, file: Path) -> None:
    outside = file.parent.parent / "outside"
    outside.write_text("outside")
    (file.parent / "l").symlink_to(outside)
    fs.copy("/a", "/l")
    assert fs.read("/l").content == "before"
    assert outside.read_text() == "outside"


def test_the_creation_time_of_a_file_is_not_its_modification_time(fs: HostFilesystem, file: Path) -> None:
    made = birth_time(AT_FDCWD, os.fsencode(file))
    if made is None:
        pytest.skip("birth times are not recorded here")
    os.utime(file, ns=(made + 10**12, made + 10**12))
    assert fs.stat("/a").created_ns == made
    os.utime(file, ns=(5, 5))
    assert fs.stat("/a").created_ns == 5


@pytest.mark.parametrize("scanned", [True, False])
def test_edits_and_moves_keep_the_creation_time(fs: HostFilesystem, file: Path, scanned: bool) -> None:
    later = file.stat().st_mtime_ns + 10**9
    os.utime(file, ns=(later, later))
    if scanned:
        fs.session.snapshot()
    created = fs.stat("/a").created_ns
    fs.write("/a", "after")
    fs.append("/a", "!")
    assert (fs.stat("/a").created_ns, fs.read("/a").content) == (created, "after!")
    fs.move("/a", "/b")
    assert fs.stat("/b").created_ns == created


@pytest.mark.parametrize("how", ["transaction", "record"])
def test_undoing_an_edit_keeps_the_creation_time(fs: HostFilesystem, how: str) -> None:
    created = fs.stat("/a").created_ns
    # Going back to a moment creates a new file. After its first edit, the session knows when the original file was
    # created.
    fs.write("/a", "edited once")
    moment = fs.session.seq
    if how == "transaction":
        with pytest.raises(KeyError), fs.session.transaction():
            fs.write("/a", "after")
            raise KeyError
    else:
        fs.write("/a", "after")
        fs.session.rollback(moment)
    assert (fs.stat("/a").created_ns, fs.read("/a").content) == (created, "edited once")


def test_a_resumed_session_remembers_the_creation_time(fs: HostFilesystem, file: Path, tmp_path: Path) -> None:
    created = fs.stat("/a").created_ns
    fs.write("/a", "after")
    fs.session.save(tmp_path / "s.json")
    again = HostFilesystem(file.parent, session=Session.load(tmp_path / "s.json"), store=tmp_path / "store")
    assert again.stat("/a").created_ns == created


def test_a_file_put_there_by_others_has_their_creation_time(fs: HostFilesystem, file: Path) -> None:
    first = fs.stat("/a").created_ns
    fs.write("/a", "after")
    file.unlink()
    file.write_text("a new one")
    assert fs.stat("/a").created_ns > first
