"""Copying between files, and large contents that a save copies to the sidecar without reading them twice."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.session.files.contents import blob_path, elsewhere
from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.session.blobs.blob import digest_of
from weakfs.session.blobs.file_copy import copy_file, copy_range

MIB = 1 << 20
LARGE = bytes(range(256)) * (3 * MIB // 256) + b"tail"

WAYS = ("as the system can", "without reflinks", "without any help")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def refused(*given: object) -> int:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    if request.param != WAYS[0]:
        monkeypatch.setattr(fcntl, "ioctl", refused)
    if request.param == WAYS[2]:
        monkeypatch.setattr(os, "copy_file_range", refused)
    return str(request.param)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "target", os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"what was there before " * 100)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 10, LARGE], ids=["empty", "one byte", "zeros", "large"])
@pytest.mark.usefixtures("way")
def test_a_whole_file_is_copied(tmp_path: Path, target: int, content: bytes) -> None:
    (tmp_path / "source").write_bytes(content)
    with open(tmp_path / "source", "rb") as source:
        assert copy_file(source.fileno(), target) == len(content)
    assert (tmp_path / "target").read_bytes() == content


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("offset", "size"), [(0, 10), (5, 2 * MIB), (MIB, 4 * MIB), (len(LARGE), 1), (9 * MIB, 1)])
def test_a_range_of_a_file_is_copied_up_to_the_end_of_the_file(
    tmp_path: Path, target: int, offset: int, size: int
) -> None:
    (tmp_path / "source").write_bytes(LARGE)
    expected = LARGE[offset : offset + size]
    with open(tmp_path / "source", "rb") as source:
        assert copy_range(source.fileno(), offset, size, target) == len(expected)
    assert (tmp_path / "target").read_bytes() == expected


@pytest.mark.usefixtures("way")
def test_holes_stay_holes(tmp_path: Path, target: int) -> None:
    with open(tmp_path / "source", "wb") as source:
        source.write(b"begin")
        source.seek(32 * MIB)
        source.write(b"middle")
        source.truncate(64 * MIB)
    with open(tmp_path / "source", "rb") as source:
        copy_file(source.fileno(), target)
    assert os.fstat(target).st_size == 64 * MIB
    assert os.fstat(target).st_blocks * 512 <= MIB
    assert os.pread(target, 6, 32 * MIB) == b"middle"


def test_a_full_disk_is_an_error_and_not_retried_in_another_way(
    tmp_path: Path, target: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "copy_file_range", full)
    monkeypatch.setattr(fcntl, "ioctl", full)
    (tmp_path / "source").write_bytes(LARGE)
    with open(tmp_path / "source", "rb") as source, pytest.raises(OSError, match="No space left"):
        copy_file(source.fileno(), target)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A session file with a large content next to it."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "large").write_bytes(LARGE)
    session = Session()
    HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store").snapshot()
    session.save(tmp_path / "s.json")
    return tmp_path / "s.json"


@pytest.mark.usefixtures("way")
def test_a_large_content_is_a_separate_file_in_the_sidecar_of_each_session_file(tmp_path: Path, saved: Path) -> None:
    Session.load(saved).save(tmp_path / "t.json")
    first, second = blob_path(saved, LARGE), blob_path(tmp_path / "t.json", LARGE)
    assert first.read_bytes() == second.read_bytes() == LARGE
    # With a hard link, changing one would change the other.
    assert (first.stat().st_nlink, second.stat().st_nlink) == (1, 1)


def test_a_large_content_is_copied_by_the_kernel(tmp_path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = Session.load(saved)
    real, written = os.write, []

    def write(descriptor: int, data: bytes) -> int:
        written.append(len(data))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    loaded.save(tmp_path / "t.json")
    assert sum(written) < MIB
    assert blob_path(tmp_path / "t.json", LARGE).read_bytes() == LARGE


def test_a_large_content_damaged_in_one_sidecar_is_read_from_the_store(tmp_path: Path, saved: Path) -> None:
    loaded = Session.load(saved)
    HostFilesystem(tmp_path / "root", session=loaded, store=tmp_path / "store")
    damaged = bytearray(LARGE)
    damaged[MIB] ^= 1
    blob_path(saved, LARGE).write_bytes(damaged)
    loaded.save(tmp_path / "t.json")
    assert digest_of(blob_path(tmp_path / "t.json", LARGE).read_bytes()) == digest_of(LARGE)


def test_a_source_without_files_is_read(tmp_path: Path) -> None:
    elsewhere(LARGE).save(tmp_path / "s.json")
    assert blob_path(tmp_path / "s.json", LARGE).read_bytes() == LARGE
