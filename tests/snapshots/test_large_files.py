"""Large files with holes: stored, saved and restored in bounded memory, without storing the holes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from errno import EFBIG
from hashlib import sha256
from pathlib import Path

import pytest

from tests.sampling import is_exhaustive
from weakfs import MissingBlob, Session
from weakfs.backends import HostFilesystem
from weakfs.session.blobs.sparse import BLOCK, PIECE, read_pieces, write_pieces
from weakfs.snapshots.store.atomic_files import size_of_files

MIB = 1 << 20
# The size of a file whose holes take longer to read than any test may.
HUGE = 4 << 40
# The memory that a process may use while it handles a file of four times that size.
BOUND = (100 if is_exhaustive() else 40) * MIB
FIXTURE = Path(__file__).parents[2] / "fixtures" / "stores" / "v1"

# Fails with MemoryError if a whole file is held in memory.
ROUND_TRIP = """
import resource, shutil, sys
from pathlib import Path
from weakfs import Session
from weakfs.backends import HostFilesystem
folder, kind, bound = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
fs = HostFilesystem(folder / "root", session=Session(), store=folder / "store", snapshots=kind)
# What is imported and mapped already does not count.
mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = mapped + bound
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
before = fs.tree().fingerprint
snapshot = fs.session.snapshot()
fs.delete("/big")
fs.session.rollback(snapshot)
assert fs.tree().fingerprint == before
fs.session.save(folder / "s.json")
shutil.rmtree(folder / "store")
(folder / "root/big").unlink()
loaded = Session.load(folder / "s.json")
again = HostFilesystem(folder / "root", session=loaded, store=folder / "again", snapshots=kind)
loaded.rollback(snapshot.snapshot_id)
assert again.tree().fingerprint == before
loaded.save(folder / "copy.json")
"""


def on_disk(path: Path) -> int:
    return path.stat().st_blocks * 512


def has_holes(folder: Path) -> bool:
    with open(folder / "probe", "wb") as stream:
        stream.truncate(MIB)
    return on_disk(folder / "probe") < MIB


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("kind", ["tree", "tar", "git"])
def test_a_large_file_passes_through_store_and_session_file_in_bounded_memory(tmp_path: Path, kind: str) -> None:
    if kind == "git" and shutil.which("git") is None:
        pytest.skip("there is no git")
    (tmp_path / "root").mkdir()
    with open(tmp_path / "root" / "big", "wb") as stream:
        stream.truncate(4 * BOUND)
        stream.seek(BOUND + 5)
        stream.write(b"data")
    ran = subprocess.run(
        [sys.executable, "-c", ROUND_TRIP, tmp_path, kind, str(BOUND)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    if has_holes(tmp_path):
        for folder in ("root", "again", "copy.json.blobs"):
            assert size_of_files(str(tmp_path / folder)) < 20 * MIB, folder


def test_zeros_that_were_written_are_stored_as_holes(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "zeros").write_bytes(bytes(8 * MIB) + b"end")
    if not has_holes(tmp_path):
        pytest.skip("the filesystem has no holes")
    fs = HostFilesystem(tmp_path / "root", session=Session(), store=tmp_path / "store")
    snapshot = fs.snapshot()
    assert fs.store.disk_size() < MIB
    fs.delete("/zeros")
    fs.restore(snapshot)
    assert (tmp_path / "root" / "zeros").read_bytes() == bytes(8 * MIB) + b"end"
    assert on_disk(tmp_path / "root" / "zeros") < MIB


def test_a_file_with_holes_has_the_digest_of_its_contents(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with open(tmp_path / "root" / "holes", "wb") as stream:
        stream.write(b"begin")
        stream.seek(20 * MIB)
        stream.write(b"end")
    content = b"begin" + bytes(20 * MIB - 5) + b"end"
    fs = HostFilesystem(tmp_path / "root", session=Session(), store=tmp_path / "store")
    fs.snapshot()
    assert fs.store.has(sha256(b"blob %d\0" % len(content) + content).digest())


@pytest.mark.parametrize("place", [0, 1, BLOCK - 1, BLOCK, PIECE - 1, PIECE, 3 * PIECE + BLOCK])
@pytest.mark.parametrize("size", [0, 1, BLOCK, 2 * PIECE, 4 * PIECE + 7])
def test_a_file_written_with_holes_reads_the_same(tmp_path: Path, place: int, size: int) -> None:
    content = bytearray(size)
    content[place : place + 3] = b"abc"[: max(0, min(3, size - place))]
    path = tmp_path / "file"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        written = write_pieces(descriptor, (bytes(content[at : at + PIECE]) for at in range(0, size, PIECE)))
        assert written == size
        assert path.read_bytes() == content
        for offset, length in ((0, size), (0, size + 10), (1, size), (place, 10), (size, 5)):
            assert b"".join(read_pieces(descriptor, offset, length)) == content[offset : offset + length]
    finally:
        os.close(descriptor)


def test_a_store_and_a_session_of_the_previous_release_are_read(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path / "v1")
    (tmp_path / "root").mkdir()
    for store in (tmp_path / "v1" / "store", tmp_path / "new"):
        session = Session.load(tmp_path / "v1" / "session.json")
        fs = HostFilesystem(tmp_path / "root", session=session, store=store, filesystem_id="host:fixture")
        fs.write("/zeros", "other")
        session.rollback("kept")
        assert (tmp_path / "root" / "zeros").read_bytes() == bytes(70_000) + b"end\n"
        assert fs.read("/d/text").content == "text\n"


def test_a_damaged_large_content_in_a_sidecar_is_named_when_it_is_restored(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "big").write_bytes(os.urandom(2 * MIB))
    fs = HostFilesystem(tmp_path / "root", session=Session(), store=tmp_path / "store")
    snapshot = fs.session.snapshot()
    fs.session.save(tmp_path / "s.json")
    shutil.rmtree(tmp_path / "store")
    blob = next(path for path in (tmp_path / "s.json.blobs").rglob("*") if path.is_file())
    with open(blob, "r+b") as stream:
        stream.write(b"damage")
    (tmp_path / "root" / "big").unlink()
    loaded = Session.load(tmp_path / "s.json")
    HostFilesystem(tmp_path / "root", session=loaded, store=tmp_path / "again")
    with pytest.raises(MissingBlob, match="damaged"):
        loaded.rollback(snapshot.snapshot_id)
    assert not (tmp_path / "root" / "big").exists()


# Fails with MemoryError if the whole old content is held in memory.
APPEND = """
import resource, sys
from pathlib import Path
from weakfs import Session, Toolset
from weakfs.backends import HostFilesystem
from weakfs.filesystem import Limits
folder, bound = Path(sys.argv[1]), int(sys.argv[2])
fs = HostFilesystem(folder / "root", session=Session(), store=folder / "store", limits=Limits(max_file_size=None))
tools = Toolset(fs.session, fs)
fs.append("/small", "warm")
tools.call("write_file", {"path": "/small", "content": "up", "mode": "append"})
mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + bound, mapped + bound))
fs.append("/big", "one")
with fs.open("/big", "ab") as stream:
    stream.write(b"two")
assert tools.call("write_file", {"path": "/big", "content": "three", "mode": "append"}).success
"""


def test_appending_to_a_large_file_takes_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with open(tmp_path / "root" / "big", "wb") as stream:
        stream.truncate(4 * BOUND)
    os.link(tmp_path / "root" / "big", tmp_path / "root" / "other")
    ran = subprocess.run(
        [sys.executable, "-c", APPEND, tmp_path, str(BOUND)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    for name in ("big", "other"):
        assert (tmp_path / "root" / name).stat().st_size == 4 * BOUND + 11
        with open(tmp_path / "root" / name, "rb") as stream:
            stream.seek(-11, os.SEEK_END)
            assert stream.read() == b"onetwothree"
    if has_holes(tmp_path):
        assert on_disk(tmp_path / "root" / "big") < 20 * MIB


@pytest.mark.usefixtures("never_hung")
@pytest.mark.parametrize("kind", ["tree", "tar", "git"])
def test_a_sparse_file_that_takes_hours_to_read_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    if kind == "git" and shutil.which("git") is None:
        pytest.skip("there is no git")
    if not has_holes(tmp_path):
        pytest.skip("the filesystem has no holes")
    root = tmp_path / "root"
    root.mkdir()
    (root / "small").write_text("before")
    fs = HostFilesystem(root, session=Session(), store=tmp_path / "store", snapshots=kind)  # type: ignore[arg-type]
    snapshot = fs.session.snapshot()
    fs.write("/small", "after")
    with open(root / "big", "wb") as stream:
        stream.write(b"data")
        stream.truncate(HUGE)

    for step in (fs.snapshot, fs.session.snapshot, fs.tree, lambda: fs.session.rollback(snapshot)):
        with pytest.raises(OSError, match=f"cannot scan '/big': it is a sparse file of {HUGE} bytes") as caught:
            step()
        assert caught.value.errno == EFBIG

    assert (root / "small").read_text() == "after"
    (root / "big").unlink()
    fs.session.rollback(snapshot)
    assert (root / "small").read_text() == "before"
