"""Snapshots of kind tar: one self-contained archive, written and read in pieces."""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from errno import EDQUOT, EFBIG, ENAMETOOLONG
from pathlib import Path
from random import Random

import pytest

from tests.backends.host.gits import damage, fill_with_what_git_refuses, state
from tests.models.trees import ODD_NAMES, random_tree
from tests.snapshots.hosts import model
from weakfs import MissingBlob, Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.filesystem import FilesystemSnapshot, Limits
from weakfs.reducers import ExternalFsSnapshot
from weakfs.session import UnknownSnapshot
from weakfs.session.blobs.blob import Held, Stored
from weakfs.session.files.sidecar import BlobFolder
from weakfs.snapshots import Store
from weakfs.snapshots.archive.archived_blob import Archived
from weakfs.snapshots.archive.tar import from_tar, packed, packed_size, to_tar, unpack_in_place

NONE = Limits(max_file_size=None, max_path_depth=None, max_segment_length=None)

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="the files hold a repository")


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, store=tmp_path / "store", snapshots="tar")


def archive_of(snapshot: FilesystemSnapshot | ExternalFsSnapshot) -> bytes:
    assert snapshot.data is not None
    return snapshot.data.join() if isinstance(snapshot.data, Stored) else snapshot.data


@needs_git
def test_a_restore_is_exact(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    snapshot = fs.snapshot("before")
    assert (snapshot.kind, snapshot.tree, snapshot.git_dir) == ("tar", None, None)
    damage(root)
    fs.snapshot()
    fs.restore(snapshot)
    assert state(root) == before


@needs_git
def test_a_restore_needs_only_the_archive(fs: HostFilesystem, root: Path, tmp_path: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    snapshot = fs.snapshot()
    data = archive_of(snapshot)
    shutil.rmtree(fs.store.path)
    damage(root)
    alone = ExternalFsSnapshot(
        snapshot.snapshot_id, snapshot.filesystem_id, snapshot.created_ns, "tar", snapshot.ref, str(root), data=data
    )
    other = HostFilesystem(root, store=tmp_path / "other", snapshots="tar")
    assert other.restore(alone, dry_run=True).changed > 10
    other.restore(alone)
    assert state(root) == before


@pytest.mark.parametrize("embed", [False, True])
@needs_git
def test_a_saved_session_contains_the_archive(root: Path, tmp_path: Path, embed: bool) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    session = Session()
    HostFilesystem(root, session=session, store=tmp_path / "store", snapshots="tar").snapshot("tagged")
    session.save(tmp_path / "session.json", embed=embed)
    shutil.rmtree(tmp_path / "store")
    damage(root)
    loaded = Session.load(tmp_path / "session.json")
    taken = loaded[ExternalFsSnapshot].latest()
    assert taken is not None
    assert (taken.kind, taken.tag) == ("tar", "tagged")
    HostFilesystem(root, session=loaded, store=tmp_path / "store").restore(taken)
    assert state(root) == before


@needs_git
@pytest.mark.parametrize("size", [100, 3 << 20])
@pytest.mark.parametrize("is_in_memory", [False, True])
def test_an_archive_beside_a_session_that_has_other_bytes_of_the_same_size_is_not_restored(
    root: Path, tmp_path: Path, size: int, is_in_memory: bool
) -> None:
    (root / "file").write_bytes(b"right" * (size // 5))
    fs = HostFilesystem(root, session=Session(), store=tmp_path / "store", snapshots="tar")
    snapshot = fs.snapshot()
    fs.session.save(tmp_path / "s.json")
    assert isinstance(snapshot.data, Stored)
    archive = BlobFolder(str(tmp_path / "s.json")).place(snapshot.data.digest)
    data = Path(archive).read_bytes()
    Path(archive).write_bytes(data.replace(b"right", b"wrong", 1))

    session = Session.load(tmp_path / "s.json")
    (recorded,) = session[ExternalFsSnapshot].all()
    (tmp_path / "empty").mkdir()
    target = (
        InMemoryFilesystem()
        if is_in_memory
        else HostFilesystem(tmp_path / "empty", session=Session(), store=tmp_path / "another store")
    )
    with pytest.raises(MissingBlob, match=f"{snapshot.data.digest.hex()}.*damaged"):
        target.restore(recorded, foreign=True)
    assert target.list() == ()


def test_an_archive_is_restored_into_memory(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    snapshot = fs.snapshot()
    taken = fs.session[ExternalFsSnapshot].latest()
    assert taken is not None
    for one in (snapshot, taken):
        memory = InMemoryFilesystem()
        memory.restore(one, foreign=True)
        assert memory.tree().fingerprint == model(root).fingerprint
        assert memory.read("/src/c.py").content == "y = 2\n"


def test_a_session_rolls_the_files_back(fs: HostFilesystem, root: Path) -> None:
    fs.write("/a.txt", "one")
    fs.session.snapshot("one")
    fs.write("/a.txt", "two")
    fs.write("/b.txt", "new")
    fs.session.rollback("one")
    assert [path.name for path in root.iterdir()] == ["a.txt"]
    assert (root / "a.txt").read_text() == "one"


def test_the_same_files_give_the_same_archive(fs: HostFilesystem, root: Path) -> None:
    fs.write("/b.txt", "b")
    fs.write("/a/c.txt", "c")
    one = fs.snapshot()
    size = fs.store.disk_size()
    other = fs.snapshot()
    assert one.ref == other.ref
    assert fs.store.disk_size() < size + 10_000
    assert archive_of(one) == fs.export_bytes() == to_tar(model(root))
    with tarfile.open(fileobj=io.BytesIO(archive_of(one))) as archive:
        assert archive.getnames() == [".", "a", "a/c.txt", "b.txt"]


def test_the_tar_command_reads_it(fs: HostFilesystem, root: Path, tmp_path: Path) -> None:
    for name in ("plain", "n" * 120, "d" * 90 + "/" + "e" * 90, "né", "new\nline", "caf\udce9"):
        place = os.path.join(os.fsencode(root), os.fsencode(name))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        Path(os.fsdecode(place)).write_text(name.encode("utf-8", "replace").decode())
    (root / "link").symlink_to("t" * 150)
    os.utime(root / "plain", ns=(0, -5 * 10**9 + 250_000_000))
    os.mkfifo(root / "fifo")
    snapshot = fs.snapshot()
    (tmp_path / "out").mkdir()
    (tmp_path / "a.tar").write_bytes(archive_of(snapshot))
    subprocess.run(["tar", "-xpf", str(tmp_path / "a.tar"), "-C", str(tmp_path / "out")], check=True)
    assert model(tmp_path / "out").fingerprint == model(root).fingerprint
    assert (tmp_path / "out/plain").stat().st_mtime_ns == -5 * 10**9 + 250_000_000


def test_compaction_keeps_the_archives_and_drops_the_rest(fs: HostFilesystem, root: Path) -> None:
    (root / "a.bin").write_bytes(os.urandom(1 << 20))
    before = state(root)
    kept = fs.snapshot()
    (root / "b.bin").write_bytes(os.urandom(2 << 20))
    dropped = fs.snapshot()
    frees = {one.snapshot.snapshot_id: one.frees for one in fs.store.account()}
    assert 1 << 20 < frees[kept.snapshot_id] < (1 << 20) + 20_000
    assert 3 << 20 < frees[dropped.snapshot_id] < (3 << 20) + 20_000
    fs.store.drop(dropped.snapshot_id)
    fs.store.compact()
    assert fs.store.disk_size() < (1 << 20) + 20_000
    damage(root)
    again = HostFilesystem(root, store=fs.store.path, snapshots="tar")
    again.restore(kept)
    assert state(root) == before
    assert again.snapshot().ref == kept.ref


def test_a_dropped_archive_is_named_in_the_error(fs: HostFilesystem, root: Path) -> None:
    fs.write("/a.txt", "a")
    snapshot = fs.snapshot()
    fs.store.drop(snapshot.snapshot_id)
    fs.store.compact()
    # Another session has not seen the files itself.
    other = HostFilesystem(root, store=fs.store.path)
    with pytest.raises(MissingBlob, match=snapshot.ref):
        other.restore(snapshot)
    assert fs.read("/a.txt").content == "a"
    gone = ExternalFsSnapshot(snapshot.snapshot_id, snapshot.filesystem_id, 0, "tar", snapshot.ref, str(root))
    with pytest.raises(UnknownSnapshot, match="dropped or never taken"):
        other.restore(gone)


def test_sockets_are_restored_if_the_store_knows_of_them(fs: HostFilesystem, root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(root / "socket"))
    snapshot = fs.snapshot()
    (root / "socket").unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.path.relpath(root / "later"))
    fs.restore(snapshot)
    assert [path.name for path in root.iterdir()] == ["socket"]


def test_sockets_are_left_alone_by_an_archive_that_does_not_record_them(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    fs.write("/kept/a.txt", "a")
    snapshot = fs.snapshot()
    for folder in ("kept", "new"):
        (root / folder).mkdir(exist_ok=True)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.relpath(root / folder / "socket"))
    HostFilesystem(root, store=tmp_path / "other", snapshots="tar").restore(snapshot)
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == ["kept", "kept/a.txt", "kept/socket"]


def test_the_filesystems_own_archive_is_never_refused_by_its_limits(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    fs.write("/d/e/f/large.txt", "x" * 1000)
    snapshot = fs.snapshot()
    tight = Limits(max_file_size=10, max_path_depth=1, max_segment_length=3, max_total_size=10, max_node_count=1)
    for store in (fs.store.path, str(tmp_path / "other")):
        shutil.rmtree(root / "d")
        HostFilesystem(root, store=store, limits=tight).restore(snapshot)
        assert (root / "d/e/f/large.txt").read_text() == "x" * 1000


@pytest.mark.parametrize(
    ("limits", "number"),
    [
        (Limits(max_file_size=10), EFBIG),
        (Limits(max_path_depth=1), ENAMETOOLONG),
        (Limits(max_segment_length=3), ENAMETOOLONG),
        (Limits(max_total_size=10), EDQUOT),
        (Limits(max_node_count=1), EDQUOT),
    ],
)
def test_a_foreign_archive_beyond_the_limits_is_refused(
    fs: HostFilesystem, tmp_path: Path, limits: Limits, number: int
) -> None:
    fs.write("/d/large.txt", "x" * 1000)
    snapshot = fs.snapshot()
    (tmp_path / "there").mkdir()
    for other in (
        HostFilesystem(tmp_path / "there", store=tmp_path / "other", limits=limits),
        InMemoryFilesystem(limits=limits),
    ):
        with pytest.raises(OSError, match=r"large\.txt|/d") as caught:
            other.restore(snapshot, foreign=True)
        assert caught.value.errno == number
        assert other.list() == ()


def hostile(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", content: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = kind, target, len(content)
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def through_a_link() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, "/tmp"
        archive.addfile(link)
        info = tarfile.TarInfo("out/escaped")
        archive.addfile(info)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        hostile("/etc/escaped"),
        hostile("../escaped"),
        hostile("a/../../escaped"),
        hostile("dev", tarfile.CHRTYPE),
        hostile("dev", tarfile.BLKTYPE),
        hostile("hard", tarfile.LNKTYPE, "/etc/passwd"),
        hostile("hard", tarfile.LNKTYPE, "../secret"),
        hostile("link", tarfile.SYMTYPE),
        through_a_link(),
        b"no archive",
        hostile("a", content=b"x" * 600)[:1024],
    ],
)
def test_a_hostile_archive_is_refused_and_nothing_changes(fs: HostFilesystem, root: Path, data: bytes) -> None:
    fs.write("/a.txt", "a")
    before = state(root.parent)
    taken = ExternalFsSnapshot("other/files1", "host:/other", 0, "tar", "0" * 64, "/other", data=data)
    with pytest.raises(ValueError, match="cannot import the archive"):
        fs.restore(taken, foreign=True)
    memory = InMemoryFilesystem()
    with pytest.raises(ValueError, match="cannot import the archive"):
        memory.restore(taken, foreign=True)
    assert {path: found for path, found in state(root.parent)[1].items() if b"/store" not in path} == {
        path: found for path, found in before[1].items() if b"/store" not in path
    }


@pytest.mark.parametrize("seed", range(20))
def test_unpacking_in_place_gives_the_same_tree_as_extracting(seed: int) -> None:
    tree = random_tree(Random(seed), names=ODD_NAMES, width=10)
    data = to_tar(tree)
    assert packed_size(tree) == len(data) == sum(map(len, packed(tree)))
    for source in (data, Held().put(data)):
        again = unpack_in_place(Archived(source), limits=NONE, at=0)
        assert again.fingerprint == from_tar(data, limits=NONE, at=0).fingerprint == tree.fingerprint
        assert to_tar(again) == data


def test_an_archive_that_was_changed_is_detected(fs: HostFilesystem, root: Path) -> None:
    fs.write("/a.txt", "content of a")
    snapshot = fs.snapshot()
    data = archive_of(snapshot)
    (root / "a.txt").unlink()
    fs.store.keep_last(0)
    changed = bytearray(data)
    archived = Archived(Held().hold(bytes.fromhex(snapshot.ref), bytes(data)))
    tree = unpack_in_place(archived, limits=NONE, at=0)
    changed[data.index(b"content of a")] ^= 1
    spoiled = Archived(bytes(changed))
    leaf = tree.children["a.txt"]
    assert isinstance(leaf, tuple)
    content = leaf[0]
    assert isinstance(content, Stored)
    spoiled.hold(content.digest, data.index(b"content of a"), content.size)
    with pytest.raises(MissingBlob, match=content.digest.hex()):
        spoiled.read(content.digest)
    with pytest.raises(MissingBlob, match=content.digest.hex()):
        list(spoiled.read_pieces(content))


LARGE = """
import os, resource, sys
from weakfs.backends import HostFilesystem
root, store = sys.argv[1:]
fs = HostFilesystem(root, store=store, snapshots="tar")
fs.write("/warm.txt", "x")
fs.restore(fs.snapshot())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open(root + "/large.bin", "wb") as stream:
    for number in range(96):
        stream.write(bytes((number,)) * (1 << 20))
snapshot = fs.snapshot()
os.unlink(root + "/large.bin")
fs.restore(snapshot)
other = HostFilesystem(root, store=store + "2", snapshots="tar")
os.unlink(root + "/large.bin")
other.restore(snapshot)
print(os.path.getsize(root + "/large.bin"), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_a_large_file_is_never_entirely_in_memory(root: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(root), str(tmp_path / "store")], capture_output=True, text=True, check=True
    )
    size, grown = map(int, done.stdout.split())
    assert size == 96 << 20
    assert grown < 40 << 10


def test_eight_threads_take_snapshots_concurrently(tmp_path: Path) -> None:
    filesystems = []
    for number in range(8):
        root = tmp_path / f"root{number}"
        root.mkdir()
        filesystems.append(HostFilesystem(root, store=tmp_path / "store", snapshots="tar"))
        filesystems[-1].write("/own.txt", str(number))
        filesystems[-1].write("/same.txt", "same")
    with ThreadPoolExecutor(8) as pool:
        snapshots = list(pool.map(lambda fs: [fs.snapshot() for _ in range(3)][-1], filesystems))
    assert len(Store(tmp_path / "store").list()) == 24
    for number, (fs, snapshot) in enumerate(zip(filesystems, snapshots, strict=True)):
        fs.delete("/own.txt")
        fs.restore(snapshot)
        assert fs.read("/own.txt").content == str(number)
