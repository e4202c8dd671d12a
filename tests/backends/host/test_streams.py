"""Large files of a host directory read as streams, and searches and rollbacks without unnecessary work."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.filesystem import Filesystem
from weakfs.reducers.tree.leaf import Leaf
from weakfs.snapshots import Scan, scan

MIB = 1 << 20

READ_ALL = """
import resource, sys
from weakfs.backends import HostFilesystem
fs = HostFilesystem(sys.argv[1], store=sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]), int(sys.argv[3])))
with fs.open("/big", "rb") as stream:
    assert stream.read(10) == bytes(10)
    stream.seek(-10, 2)
    assert stream.read(20) == b"x" * 10
    stream.seek(0)
    size = sum(len(piece) for piece in iter(lambda: stream.read(1 << 16), b""))
with fs.open("/big") as stream:
    assert stream.read(10) == chr(0) * 10
print(size)
"""


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, session=Session(), store=tmp_path / "store")


@pytest.mark.slow
def test_a_stream_reads_a_large_file_in_bounded_memory(root: Path, tmp_path: Path) -> None:
    with open(root / "big", "wb") as stream:
        stream.seek(300 * MIB - 10)
        stream.write(b"x" * 10)
    limit = 280 * MIB
    ran = subprocess.run(
        [sys.executable, "-c", READ_ALL, root, tmp_path / "store", str(limit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) == 300 * MIB


def test_a_stream_reads_the_file_that_was_opened(fs: HostFilesystem) -> None:
    fs.write("/a", "before\n")
    with fs.open("/a") as stream:
        fs.write("/a", "after\n")
        assert stream.read() == "before\n"


def test_closing_a_stream_closes_its_descriptor(fs: HostFilesystem) -> None:
    fs.write("/a", "text")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        for _ in range(300):
            fs.open("/a").close()
            fs.open("/a", "rb").read()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    stream = fs.open("/a", "rb")
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        stream.read(1)


def test_a_stream_seeks_like_one_in_memory(fs: HostFilesystem) -> None:
    memory = InMemoryFilesystem()
    for one in (fs, memory):
        one.write_bytes("/a", bytes(range(100)))
    with fs.open("/a", "rb") as ours, memory.open("/a", "rb") as theirs:
        for offset, whence in ((5, io.SEEK_SET), (10, io.SEEK_CUR), (-7, io.SEEK_END), (300, io.SEEK_SET)):
            assert ours.seek(offset, whence) == theirs.seek(offset, whence)
            assert (ours.read(6), ours.tell()) == (theirs.read(6), theirs.tell())
        for stream in (ours, theirs):
            with pytest.raises(ValueError, match="seek"):
                stream.seek(-1)


@pytest.mark.parametrize("mode", ["w", "wb", "x", "a"])
def test_a_stream_creates_missing_parents_only_if_allowed(fs: HostFilesystem, root: Path, mode: str) -> None:
    with pytest.raises(FileNotFoundError, match="create '/d' first"):
        fs.open("/d/a", mode, create_parents=False)  # type: ignore[call-overload]  # one mode after the other
    assert not (root / "d").exists()
    fs.open("/d/a", mode).close()  # type: ignore[call-overload]  # one mode after the other
    assert (root / "d/a").exists()


@pytest.mark.parametrize("path", ["/a", "/missing"])
@pytest.mark.parametrize("backend", ["host", "memory"])
def test_negative_numbers_are_refused_whatever_is_at_the_path(fs: HostFilesystem, backend: str, path: str) -> None:
    files: Filesystem = fs if backend == "host" else InMemoryFilesystem()
    files.write("/a", "text")
    for call in (
        lambda: files.read(path, offset=-1),
        lambda: files.read(path, limit=-2),
        lambda: files.read_bytes(path, offset=-1),
        lambda: files.read_bytes(path, limit=-2),
        lambda: files.read_bytes(path, offset=-1, limit=1),
        lambda: files.grep("a", path=path, max_matches=-2),
        lambda: files.glob("a", path=path, max_results=-2),
    ):
        with pytest.raises(ValueError, match="of 0 or more"):
            call()


@pytest.mark.parametrize("backend", ["host", "memory"])
def test_a_search_stops_at_its_cap(fs: HostFilesystem, backend: str) -> None:
    files: Filesystem = fs if backend == "host" else InMemoryFilesystem()
    for number in range(100):
        files.write(f"/{number:02}", f"needle {number}\n" + "x" * 50_000)
        files.write_bytes(f"/{number:02}b", b"\0needle\n")
    found = files.grep("needle", max_matches=4)
    assert [match.path for match in found] == ["/00", "/01", "/02", "/03"]
    assert (found.truncated, found.files_searched, found.binary_skipped) == (True, 5, 4)


def test_a_search_reads_no_file_beyond_its_cap(fs: HostFilesystem, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(100):
        fs.write(f"/{number:02}", "needle\n" * 10_000)
    read: list[str] = []
    content = HostFilesystem.content

    def counted(fs: HostFilesystem, path: str, leaf: Leaf) -> bytes:
        read.append(path)
        return content(fs, path, leaf)

    monkeypatch.setattr(HostFilesystem, "content", counted)
    assert fs.grep("needle", max_matches=3).truncated
    assert len(read) < 5


def test_a_rollback_scans_the_files_once(fs: HostFilesystem, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs.write("/a", "before")
    snapshot = fs.session.snapshot()
    fs.write("/a", "after")
    (root / "b").write_text("new")
    scans: list[object] = []

    def counted(*given: Any, **named: Any) -> Scan:
        scans.append(given)
        return scan(*given, **named)

    monkeypatch.setattr("weakfs.backends.host.root.scan", counted)
    record = fs.session.rollback(snapshot)
    assert len(scans) == 1
    assert fs.read("/a").content == "before"
    assert not (root / "b").exists()
    fs.session.rollback(record.seq - 1)
    assert (fs.read("/a").content, (root / "b").read_text()) == ("after", "new")
