"""A store whose files were damaged: no wrong data is returned, and the error names the file and the remedy."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.sampling import stride
from tests.snapshots.hosts import model, snapshot
from weakfs import HostFilesystem, MissingBlob, Session
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import FileTree, walk
from weakfs.snapshots import Store, StoreDamaged


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    for number in range(5):
        (root / "d" / f"f{number}").write_bytes(b"content %d" % number)
    return root


def overwrite(packs: Path, manifest: bytes) -> None:
    """Overwrite a manifest in all packs of a store."""
    for pack in packs.iterdir():
        pack.write_bytes(pack.read_bytes().replace(manifest, bytes(len(manifest))))


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def read_all(folder: Path) -> tuple[str, list[bytes]]:
    store = Store(folder)
    tree = store.tree(store.get("s"))
    return tree.fingerprint, contents(tree)


def contents(tree: FileTree) -> list[bytes]:
    return [leaf.content_of(node) for _, node in walk(tree) if isinstance(node, tuple)]


def test_no_flipped_byte_of_a_pack_goes_unnoticed(folder: Path, root: Path) -> None:
    pack = only_file(folder / "packs")
    whole, right = pack.read_bytes(), (model(root).fingerprint, contents(model(root)))
    assert read_all(folder) == right
    for place in range(0, len(whole), stride()):
        pack.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with pytest.raises((StoreDamaged, MissingBlob)) as caught:
            read_all(folder)
        assert pack.name in str(caught.value)
        assert "copy" in str(caught.value)


@pytest.mark.parametrize("left", [0, 1, 20, 100, -1, -50])
def test_a_pack_that_was_cut_off_is_named(folder: Path, left: int) -> None:
    pack = only_file(folder / "packs")
    pack.write_bytes(pack.read_bytes()[:left])
    with pytest.raises(StoreDamaged, match=pack.name):
        read_all(folder)


def test_a_pack_truncated_while_a_store_is_open_is_named(folder: Path) -> None:
    store = Store(folder)
    tree = store.tree(store.get("s"))
    pack = only_file(folder / "packs")
    os.truncate(pack, 20)
    with pytest.raises(StoreDamaged, match=f"{pack.name}.*truncated"):
        contents(tree)


def test_a_missing_pack_is_a_missing_content_with_its_digest(folder: Path) -> None:
    store = Store(folder)
    entry = store.get("s")
    only_file(folder / "packs").unlink()
    with pytest.raises(MissingBlob, match=entry.ref) as caught:
        store.tree(entry)
    assert str(folder) in str(caught.value)


def test_no_flipped_byte_of_an_entry_goes_unnoticed(folder: Path) -> None:
    path = only_file(folder / "snapshots")
    whole = path.read_bytes()
    entry = Store(folder).get("s")
    for place in range(len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x01]) + whole[place + 1 :])
        with pytest.raises(StoreDamaged) as caught:
            Store(folder).get("s")
        assert str(path) in str(caught.value)
    path.write_bytes(whole)
    assert Store(folder).get("s") == entry


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b'{"format": 1}', b"\xff"])
def test_a_malformed_entry_is_named_and_can_be_dropped(folder: Path, root: Path, content: bytes) -> None:
    path = only_file(folder / "snapshots")
    path.write_bytes(content)
    store = Store(folder)
    for work in (store.list, store.newest, store.account, store.compact, lambda: store.keep_last(1)):
        with pytest.raises(StoreDamaged, match="drop the snapshot to give it up"):
            work()
    store.drop("s")
    entry, _ = snapshot(store, root, "s")
    assert store.list() == (entry,)


def test_a_damaged_store_is_not_compacted(folder: Path, root: Path) -> None:
    """What is left in its packs may be all that can be saved."""
    pack = only_file(folder / "packs")
    damaged = pack.read_bytes().replace(b"content 3", b"CONTENT 3")
    pack.write_bytes(damaged)
    (root / "more").write_bytes(b"more")
    store = Store(folder)
    snapshot(store, root, "more")
    with pytest.raises(StoreDamaged, match=pack.name):
        store.compact()
    assert pack.read_bytes() == damaged
    store.drop("s")
    store.drop("more")
    store.compact()
    assert os.listdir(folder / "packs") == []


@pytest.mark.parametrize("kind", ["tree", "git", "tar"])
def test_verifying_names_the_snapshots_that_cannot_be_restored(tmp_path: Path, root: Path, kind: SnapshotKind) -> None:
    fs = HostFilesystem(root, store=tmp_path / "store", snapshots=kind)
    (root / "large").write_bytes(os.urandom(1 << 20) + b"in the first")
    first = fs.snapshot()
    (root / "large").unlink()
    fs.snapshot()
    assert fs.store.verify() == {}
    for path in (tmp_path / "store").rglob("*.pack"):
        data = path.read_bytes()
        if len(data) > 1 << 20:
            path.chmod(0o600)
            # In the middle of the large content, whatever the format.
            path.write_bytes(data[: 1 << 19] + bytes([data[1 << 19] ^ 1]) + data[(1 << 19) + 1 :])
    store = Store(tmp_path / "store")
    assert [*store.verify()] == [first.snapshot_id]
    assert re.search("from a copy|with 'git fsck'", store.verify()[first.snapshot_id])
    store.drop(first.snapshot_id)
    assert store.verify() == {}


def test_a_snapshot_without_its_manifests_stops_a_compaction_by_name(folder: Path, root: Path) -> None:
    only_file(folder / "packs").unlink()
    store = Store(folder)
    with pytest.raises(StoreDamaged, match=r"snapshot 's' is incomplete.*drop it first"):
        store.compact()
    store.drop("s")
    store.compact()


def test_the_next_snapshot_stores_again_what_a_damaged_pack_has_lost(folder: Path, root: Path) -> None:
    pack = only_file(folder / "packs")
    pack.write_bytes(pack.read_bytes()[:-1])
    store = Store(folder)
    entry, _ = snapshot(store, root, "again")
    assert contents(store.tree(entry)) == contents(model(root))


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format":"weakfs-store","version":99,"id":"x"}', b"\xff"])
def test_a_store_of_another_format_is_refused(folder: Path, root: Path, content: bytes) -> None:
    (folder / "store.json").write_bytes(content)
    with pytest.raises(StoreDamaged, match=r"store\.json"):
        snapshot(Store(folder), root, "t")
    assert len(os.listdir(folder / "packs")) == 1


@pytest.mark.parametrize("place", ["packs", "snapshots"])
def test_a_fifo_in_the_place_of_a_file_is_named_without_waiting(folder: Path, place: str) -> None:
    path = only_file(folder / place)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreDamaged, match=f"{path.name}.*it is not a regular file"):
        Store(folder).list()
        read_all(folder)


def test_a_fifo_in_the_place_of_the_id_of_a_store_is_named_without_waiting(folder: Path, root: Path) -> None:
    (folder / "store.json").unlink()
    os.mkfifo(folder / "store.json")
    with pytest.raises(StoreDamaged, match=r"store\.json has an unknown format"):
        snapshot(Store(folder), root, "t")


def test_a_directory_in_the_place_of_a_pack_is_named(folder: Path) -> None:
    path = only_file(folder / "packs")
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreDamaged, match=f"{path.name}.*it is not a regular file"):
        read_all(folder)


def test_links_in_the_place_of_packs_are_not_followed(folder: Path, tmp_path: Path) -> None:
    pack = only_file(folder / "packs")
    pack.rename(tmp_path / "elsewhere")
    pack.symlink_to(tmp_path / "elsewhere")
    with pytest.raises((OSError, StoreDamaged), match=pack.name):
        read_all(folder)


@pytest.mark.parametrize("kind", ["tree", "git", "tar"])
@pytest.mark.parametrize("damaged", ["first entry", "newest entry", "newest manifest"])
def test_a_damaged_snapshot_stops_neither_snapshots_nor_rollbacks_of_others(
    tmp_path: Path, root: Path, kind: SnapshotKind, damaged: str
) -> None:
    session = Session()
    files = HostFilesystem(root, session=session, store=tmp_path / "store", snapshots=kind)
    session.snapshot("unrelated")
    files.write("/d/kept", "kept")
    session.snapshot("kept")
    session.save(tmp_path / "session.json")
    files.write("/newer", "newer")
    newest = files.snapshot().snapshot_id
    wanted = files.store.tree(files.store.list()[1]).fingerprint
    store = Store(tmp_path / "store")
    if damaged == "newest manifest":
        ref = bytes.fromhex(store.get(newest).ref)
        overwrite(tmp_path / "store" / "packs", store.read_manifest(ref))
    else:
        chosen = newest if damaged == "newest entry" else store.list()[0].snapshot_id
        Path(store.catalogue.path_of(chosen)).write_bytes(b"{}")

    later = Session.load(tmp_path / "session.json")
    again = HostFilesystem(
        root, session=later, store=tmp_path / "store", snapshots=kind, filesystem_id=files.filesystem_id
    )
    again.write("/d/f0", "changed")
    taken = again.snapshot()
    later.rollback("kept")

    assert again.tree().fingerprint == wanted
    assert (root / "d" / "kept").read_text() == "kept"
    assert not (root / "newer").exists()
    assert [*store.verify()] == ([newest] if "newest" in damaged else [store.catalogue.readable()[1].popitem()[0]])
    again.restore(taken)
    assert (root / "d" / "f0").read_text() == "changed"


def test_a_snapshot_does_not_rely_on_a_damaged_manifest_of_an_earlier_one(folder: Path, root: Path) -> None:
    first = Store(folder).get("s")
    overwrite(folder / "packs", Store(folder).read_manifest(bytes.fromhex(first.ref)))
    entry, _ = snapshot(Store(folder), root, "again")
    assert entry.ref == first.ref
    assert contents(Store(folder).tree(entry)) == contents(model(root))


def test_an_intact_copy_of_a_damaged_manifest_is_found_in_whichever_pack_it_is(folder: Path, root: Path) -> None:
    ref = bytes.fromhex(Store(folder).get("s").ref)
    manifest = Store(folder).read_manifest(ref)
    (pack,) = (folder / "packs").iterdir()
    overwrite(folder / "packs", manifest)
    for number in range(8):
        # The names of packs, and so the order in which they are read, depend on what else is in them.
        (root / f"more {number}").write_bytes(b"%d" % number)
        with Store(folder).writer() as writer:
            writer.add(b"%d" % number)
            writer.add_manifest(manifest)
            writer.finish()
        store = Store(folder)
        assert store.read_manifest(ref) == manifest
        added = [path for path in (folder / "packs").iterdir() if path != pack]
        if number == 7:
            store.compact()
            assert Store(folder).read_manifest(ref) == manifest
        else:
            for path in added:
                path.unlink()
