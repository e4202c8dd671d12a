"""Stores in which something else has the name of a file or directory: it is named, nothing waits, nothing is read."""

from __future__ import annotations

import os
import struct
from hashlib import sha256
from pathlib import Path

import pytest

from tests.models.obstacles import OBSTACLES
from tests.snapshots.hosts import snapshot
from weakfs import HostFilesystem
from weakfs.backends.host.host_paths import root_folder_name
from weakfs.session.blobs.blob import digest_of
from weakfs.snapshots import Store, StoreDamaged, StoreUnwritable
from weakfs.snapshots.git.repository import FANOUT
from weakfs.snapshots.store import atomic_files, packs
from weakfs.snapshots.undo_journal.log import LOG


def put_in_place_of(path: Path, obstacle: str) -> None:
    path.unlink(missing_ok=True)
    OBSTACLES[obstacle](path)


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_an_obstacle_in_place_of_an_entry_is_named_and_can_be_dropped(folder: Path, root: Path, obstacle: str) -> None:
    (path,) = (folder / "snapshots").iterdir()
    put_in_place_of(path, obstacle)
    store = Store(folder)
    for work in (store.list, store.account, store.compact, lambda: store.get("s")):
        with pytest.raises(StoreDamaged, match=rf"cannot read the snapshot in '{path}': it .*; restore the file from"):
            work()
    store.drop("s")
    assert store.list() == ()
    snapshot(store, root, "s")


def test_a_directory_with_files_in_place_of_an_entry_is_not_removed(folder: Path) -> None:
    (path,) = (folder / "snapshots").iterdir()
    put_in_place_of(path, "a directory")
    (path / "file").touch()
    with pytest.raises(StoreUnwritable, match=rf"cannot drop snapshot 's': cannot remove '{path}'"):
        Store(folder).drop("s")
    assert (path / "file").exists()


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_an_obstacle_in_place_of_the_id_is_named(folder: Path, root: Path, obstacle: str) -> None:
    put_in_place_of(folder / "store.json", obstacle)
    with pytest.raises(StoreDamaged, match=r"store\.json has an unknown format .*; .* remove it to have a new one"):
        snapshot(Store(folder), root, "t")
    path = folder / "store.json"
    path.rmdir() if obstacle == "a directory" else path.unlink()
    snapshot(Store(folder), root, "t")


@pytest.mark.parametrize("obstacle", ["a directory", "a looping link"])
def test_an_obstacle_in_place_of_the_lock_is_named(folder: Path, root: Path, obstacle: str) -> None:
    put_in_place_of(folder / "lock", obstacle)
    with pytest.raises(StoreUnwritable, match=rf"cannot write to the store '{folder}': .*: '{folder}/lock'; remove"):
        snapshot(Store(folder), root, "t")


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_an_obstacle_in_place_of_a_pack_is_named(folder: Path, root: Path, obstacle: str) -> None:
    (path,) = (folder / "packs").iterdir()
    put_in_place_of(path, obstacle)
    with pytest.raises(StoreDamaged, match=rf"cannot read the pack '{path}': it .*; restore the file from a copy"):
        Store(folder).tree(Store(folder).get("s"))


@pytest.mark.parametrize("obstacle", ["a FIFO", "a looping link"])
def test_an_obstacle_that_replaces_an_indexed_pack_is_named(folder: Path, obstacle: str) -> None:
    store = Store(folder)
    (path,) = (folder / "packs").iterdir()
    # It has read the index, but opened no pack.
    store._index.refresh()
    put_in_place_of(path, obstacle)
    with pytest.raises(StoreDamaged, match=rf"cannot read the pack '{path}': it is not a regular file"):
        store.tree(store.get("s"))


@pytest.mark.parametrize("place", ["packs", "snapshots"])
@pytest.mark.parametrize("obstacle", ["a FIFO", "a looping link", "a huge sparse file"])
def test_an_obstacle_in_place_of_a_directory_is_named(folder: Path, root: Path, place: str, obstacle: str) -> None:
    (folder / place).rename(folder / "elsewhere")
    OBSTACLES[obstacle](folder / place)
    with pytest.raises(OSError, match=rf"cannot read '{folder / place}': .*; check the disk and the permissions"):
        Store(folder).account()
    with pytest.raises(StoreUnwritable, match=f"'{folder / place}'"):
        snapshot(Store(folder), root, "t")


@pytest.mark.parametrize(("offset", "length"), [(0, 1 << 62), (1 << 62, 7), ((1 << 64) - 1, (1 << 64) - 1)])
def test_a_pack_whose_index_points_past_its_end_is_named(folder: Path, offset: int, length: int) -> None:
    (path,) = (folder / "packs").iterdir()
    rows = b"".join(packs.ROW.pack(digest, offset, length) for digest, _, _ in packs.read_index(str(path)))
    count = len(rows) // packs.ROW.size
    data = path.read_bytes()[: -packs.TAIL.size - len(rows)]
    path.write_bytes(data + rows + packs.TAIL.pack(len(data), count, sha256(rows).digest(), packs.END))
    with pytest.raises(StoreDamaged, match=rf"from '{path}': the file is truncated"):
        Store(folder).tree(Store(folder).get("s"))


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_an_obstacle_in_place_of_the_log_of_unfinished_work_is_named(folder: Path, root: Path, obstacle: str) -> None:
    journal = folder / "journals" / f"{root_folder_name(str(root))}-0"
    journal.mkdir(parents=True)
    put_in_place_of(journal / os.fsdecode(LOG), obstacle)
    check_named(folder, root, journal)


@pytest.mark.parametrize(
    "log",
    [
        b"\xff\n",
        b"5\n",
        b"{}\n",
        b'{"op": "unknown", "path": ["file"]}\n',
        b'{"op": ["unknown"]}\n',
        b'{"op": "absent"}\n',
        b'{"op": "tree", "ref": "no digits"}\n',
        b'{"op": "tree", "ref": 5}\n',
    ],
)
def test_a_damaged_log_of_unfinished_work_is_named(folder: Path, root: Path, log: bytes) -> None:
    journal = folder / "journals" / f"{root_folder_name(str(root))}-0"
    journal.mkdir(parents=True)
    (journal / os.fsdecode(LOG)).write_bytes(log)
    check_named(folder, root, journal)


def check_named(folder: Path, root: Path, journal: Path) -> None:
    named = rf"the log of the unfinished work in '{journal}' is damaged: .*; move that directory away"
    with pytest.raises(OSError, match=rf"cannot open '{root}': .*{named}"):
        HostFilesystem(root, store=folder)
    with pytest.raises(OSError, match=named):
        Store(folder).compact()
    assert HostFilesystem(root, store=folder, read_only=True).read("/file").content == "content"
    journal.rename(folder / "moved")
    assert HostFilesystem(root, store=folder).read("/file").content == "content"
    Store(folder).compact()


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_an_obstacle_in_place_of_the_index_of_a_repository_is_named(tmp_path: Path, root: Path, obstacle: str) -> None:
    path = git_index(tmp_path, root)
    put_in_place_of(path, obstacle)
    if obstacle == "a huge sparse file":
        # It has no header, so git would not read it either.
        assert Store(tmp_path / "git").git.ids() == frozenset()
        return
    with pytest.raises(StoreDamaged, match=rf"cannot read the index '{path}': it is not a regular file"):
        Store(tmp_path / "git").git.ids()


def test_an_index_of_a_repository_that_claims_too_many_objects_is_named(tmp_path: Path, root: Path) -> None:
    path = git_index(tmp_path, root)
    data = bytearray(path.read_bytes())
    data[FANOUT : FANOUT + 4] = struct.pack(">I", (1 << 32) - 1)
    path.chmod(0o600)
    path.write_bytes(data)
    with pytest.raises(StoreDamaged, match=rf"cannot read the index '{path}': it is truncated"):
        Store(tmp_path / "git").git.ids()


PASSED_OVER = {"a directory": ("refs", "objects"), "a huge sparse file": ("objects",)}


@pytest.mark.usefixtures("never_hung")
@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize(
    "place", ["HEAD", "packed-refs", "refs/weakfs/t", "refs", "objects/pack/pack-0.pack", "objects/00"]
)
def test_an_obstacle_in_place_of_a_file_of_a_repository_is_named(
    tmp_path: Path, root: Path, place: str, obstacle: str
) -> None:
    fs = HostFilesystem(root, store=tmp_path / "git", snapshots="git")
    snapshot = fs.snapshot()
    path = tmp_path / "git" / "git" / place
    if path.is_dir():
        path.rename(tmp_path / "elsewhere")
    put_in_place_of(path, obstacle)
    store = Store(tmp_path / "git")
    named = rf"cannot use the repository '{store.git.path}': cannot use '{path}': it .*; restore it from a copy"
    # Git passes over empty directories, and reads objects piece by piece, whatever their size.
    if place.startswith(PASSED_OVER.get(obstacle, ())):
        store.drop(snapshot.snapshot_id)
        return
    with pytest.raises(StoreDamaged, match=named):
        store.drop(snapshot.snapshot_id)
    with pytest.raises(StoreDamaged, match=named):
        HostFilesystem(root, store=store, snapshots="git").snapshot()
    if place.startswith("objects"):
        with pytest.raises(StoreDamaged, match=named):
            store.read(digest_of(b"content"))


def test_a_repository_that_names_objects_elsewhere_is_refused(tmp_path: Path, root: Path) -> None:
    HostFilesystem(root, store=tmp_path / "git", snapshots="git").snapshot()
    alternates = tmp_path / "git" / "git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{tmp_path}\n")
    with pytest.raises(
        StoreDamaged, match=rf"cannot use '{alternates}': it names objects outside the store; .* remove"
    ):
        Store(tmp_path / "git").read(digest_of(b"content"))


def git_index(tmp_path: Path, root: Path) -> Path:
    HostFilesystem(root, store=tmp_path / "git", snapshots="git").snapshot()
    (path,) = (tmp_path / "git" / "git" / "objects" / "pack").glob("*.idx")
    return path


def test_a_file_in_place_of_the_store_is_named(tmp_path: Path, root: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        StoreUnwritable, match=f"cannot write to the store '{tmp_path / 'file'}': .* is not a directory"
    ):
        snapshot(Store(tmp_path / "file"), root, "s")


def test_a_file_of_a_store_is_read_up_to_a_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = (folder / "snapshots").iterdir()
    monkeypatch.setattr(atomic_files, "SMALL", path.stat().st_size)
    assert Store(folder).get("s").snapshot_id == "s"
    monkeypatch.setattr(atomic_files, "SMALL", path.stat().st_size - 1)
    with pytest.raises(StoreDamaged, match=f"it has {path.stat().st_size} bytes"):
        Store(folder).get("s")
