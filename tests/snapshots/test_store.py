"""A store: contents are stored once; dropping snapshots frees the contents that only they needed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Thread

import pytest

from tests.snapshots.hosts import files_of, look, model, settle, snapshot
from weakfs import MissingBlob
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import find, walk
from weakfs.session import UnknownSnapshot
from weakfs.session.blobs.blob import Stored, digest_of
from weakfs.snapshots import HashOnlySink, Store, StoredSnapshot, StoreUnwritable
from weakfs.snapshots.scan.manifests import NO_DIGEST, NO_STATUS, encode, head, rows


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for folder in range(20):
        (root / f"d{folder}").mkdir(parents=True)
        for file in range(20):
            (root / f"d{folder}" / f"f{file}").write_bytes(b"%d in %d\n" % (file, folder) * 100)
    settle(root)
    return root


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "store")


def size_of_packs(store: Store) -> int:
    return sum(path.stat().st_size for path in Path(store.path, "packs").iterdir())


def is_whole(store: Store, entry: StoredSnapshot) -> bool:
    """Read everything that a snapshot needs."""
    for _, node in walk(Store(store.path).tree(entry)):
        if isinstance(node, tuple):
            leaf.content_of(node)
    return True


def test_nothing_is_created_until_something_is_stored(store: Store) -> None:
    assert store.list() == ()
    assert store.newest() is None
    assert store.disk_size() == 0
    assert not store.has(bytes(32))
    assert not Path(store.path).parent.exists()


def test_the_directory_is_accessible_only_to_its_owner(store: Store, root: Path) -> None:
    snapshot(store, root, "s")
    for path in [Path(store.path).parent, Path(store.path), *Path(store.path).rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_snapshot_of_ten_changed_files_writes_a_few_small_objects(store: Store, root: Path) -> None:
    _, known = snapshot(store, root, "first")
    before = store.disk_size()
    (root / "d3" / "f3").write_bytes(b"new")
    snapshot(store, root, "second", known)
    assert store.disk_size() - before < 6000


def test_equal_contents_are_stored_once(store: Store, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in "abc":
        (root / name).write_bytes(bytes(100_000))
    snapshot(store, root, "s")
    assert store.disk_size() < 110_000


def test_no_pack_is_written_without_new_contents(store: Store, root: Path) -> None:
    _, known = snapshot(store, root, "first")
    packs = os.listdir(Path(store.path, "packs"))
    snapshot(store, root, "second", known)
    snapshot(Store(store.path), root, "third")
    assert os.listdir(Path(store.path, "packs")) == packs


def test_contents_neither_finished_nor_committed_are_discarded(store: Store, root: Path) -> None:
    with store.writer() as writer:
        thrown = look(root, sink=writer)
    assert files_of(Path(store.path)) == []
    entry, seen = snapshot(store, root, "later", thrown)
    assert seen.files_read == 400
    assert is_whole(store, entry)


def test_finished_contents_can_be_read_without_a_snapshot(store: Store, root: Path) -> None:
    with store.writer() as writer:
        seen = look(root, sink=writer)
        writer.finish()
    assert seen.tree.fingerprint == model(root).fingerprint
    assert store.read(digest_of(b"3 in 3\n" * 100)) == b"3 in 3\n" * 100
    store.compact()
    with pytest.raises(MissingBlob):
        store.read(digest_of(b"3 in 3\n" * 100))


def test_contents_that_were_only_hashed_are_stored_on_request(store: Store, root: Path) -> None:
    entry, seen = snapshot(store, root, "s", look(root))
    assert is_whole(store, entry)
    content = find(seen.tree, ("d3", "f3"))
    assert isinstance(content, tuple)
    assert leaf.content_of(content) == b"3 in 3\n" * 100


def test_a_scan_of_another_store_is_refused(store: Store, root: Path, tmp_path: Path) -> None:
    _, other = snapshot(Store(tmp_path / "other"), root, "s")
    with store.writer() as writer, pytest.raises(ValueError, match="scan with its writer"):
        writer.commit(other, snapshot_id="s", created_ns=0)
    with store.writer() as writer, pytest.raises(ValueError, match="scan with its writer"):
        writer.commit(look(root, sink=HashOnlySink()), snapshot_id="s", created_ns=0)


def test_a_large_file_is_stored_and_read_in_pieces(store: Store, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    data = os.urandom(1 << 20) * 9 + b"end"
    for name in ("one", "two"):
        (root / name).write_bytes(data)
    _, seen = snapshot(store, root, "s")
    node = find(seen.tree, ("one",))
    assert isinstance(node, tuple)
    content = node[leaf.CONTENT]
    assert isinstance(content, Stored)
    pieces = list(store.read_pieces(content))
    assert b"".join(pieces) == data == content.join()
    assert max(map(len, pieces)) <= 1 << 20
    assert store.disk_size() < len(data) + 5000


def test_damage_in_a_large_file_is_reported_after_its_last_piece(store: Store, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "one").write_bytes(bytes(2 << 20) + b"the end")
    _, seen = snapshot(store, root, "s")
    node = find(seen.tree, ("one",))
    assert isinstance(node, tuple)
    content = node[leaf.CONTENT]
    assert isinstance(content, Stored)
    (pack,) = (path for path in Path(store.path).rglob("*") if path.is_file() and b"the end" in path.read_bytes())
    pack.write_bytes(pack.read_bytes().replace(b"the end", b"THE END"))
    pieces: list[bytes] = []
    with pytest.raises(MissingBlob, match="was damaged; restore the file from a copy"):
        pieces.extend(Store(store.path).read_pieces(content))
    assert b"".join(pieces).endswith(b"THE END")


def test_the_catalogue_keeps_its_entries_in_the_order_of_recording(store: Store, root: Path) -> None:
    with store.writer() as writer:
        seen = look(root, sink=writer)
        writer.commit(seen, snapshot_id="z", created_ns=9, tag="tagged", extra={"commit": "abc"})
    with store.writer() as writer:
        writer.commit(look(root, seen, writer), snapshot_id="../a/é", created_ns=3)
    first, second = Store(store.path).list()
    assert (first.snapshot_id, first.tag, first.created_ns, first.extra) == ("z", "tagged", 9, {"commit": "abc"})
    assert second.snapshot_id == "../a/é"
    assert second.created_at == datetime.fromtimestamp(0, UTC)
    assert store.newest() == store.get("../a/é") == second
    assert {path.parent for path in Path(store.path).rglob("*.json")} == {
        Path(store.path),
        Path(store.path, "snapshots"),
    }


def test_an_id_can_be_used_only_once(store: Store, root: Path) -> None:
    entry, _ = snapshot(store, root, "s")
    (root / "new").write_bytes(b"new")
    before = files_of(Path(store.path))
    with pytest.raises(FileExistsError, match="'s'"):
        snapshot(store, root, "s")
    assert files_of(Path(store.path)) == before
    assert store.get("s") == entry


@pytest.mark.parametrize("snapshot_id", ["", "x" * 300])
def test_ids_that_cannot_be_file_names_are_refused(store: Store, root: Path, snapshot_id: str) -> None:
    with pytest.raises(ValueError, match="as a snapshot's id"):
        snapshot(store, root, snapshot_id)


def test_a_dropped_snapshot_is_unknown(store: Store, root: Path) -> None:
    snapshot(store, root, "s")
    store.drop("s")
    with pytest.raises(UnknownSnapshot, match="'s'"):
        store.get("s")
    with pytest.raises(UnknownSnapshot, match="'s'"):
        store.drop("s")


def test_the_last_snapshots_are_kept(store: Store, root: Path) -> None:
    for name in "dcba":
        snapshot(store, root, name)
    assert [entry.snapshot_id for entry in store.keep_last(2)] == ["d", "c"]
    assert [entry.snapshot_id for entry in store.list()] == ["b", "a"]
    assert store.keep_last(5) == ()
    assert len(store.keep_last(0)) == 2
    assert store.list() == ()


def test_tagged_snapshots_are_kept_however_old_they_are(store: Store, root: Path) -> None:
    for name, tag in {"a": "release", "b": None, "c": "", "d": None, "e": None}.items():
        snapshot(store, root, name, tag=tag)

    assert [entry.snapshot_id for entry in store.keep_last(1)] == ["b", "d"]
    assert [entry.snapshot_id for entry in store.list()] == ["a", "c", "e"]
    assert [entry.snapshot_id for entry in store.keep_last(1, drop_tagged=True)] == ["a", "c"]
    assert [entry.snapshot_id for entry in store.list()] == ["e"]


def test_a_dry_run_of_keep_last_drops_nothing(store: Store, root: Path) -> None:
    for name in "ab":
        snapshot(store, root, name)

    assert [entry.snapshot_id for entry in store.keep_last(1, dry_run=True)] == ["a"]
    assert [entry.snapshot_id for entry in store.list()] == ["a", "b"]


def test_an_account_predicts_what_compaction_frees(store: Store, root: Path) -> None:
    known = None
    for number in range(4):
        (root / f"d{number}" / "big").write_bytes(os.urandom(50_000))
        _, known = snapshot(store, root, f"s{number}", known)
        (root / f"d{number}" / "big").unlink()
        (root / "d9" / f"stays{number}").write_bytes(os.urandom(10_000))
    for number in (2, 0, 3, 1):
        account = {entry.snapshot.snapshot_id: entry for entry in store.account()}[f"s{number}"]
        assert account.total_size == account.snapshot.total_size
        store.compact()
        before = size_of_packs(store)
        store.drop(f"s{number}")
        report = store.compact()
        assert (report.bytes_before, report.bytes_after) == (before, size_of_packs(store))
        # Its rows in the index are removed too, 48 bytes each.
        overhead = before - size_of_packs(store) - account.frees
        assert 0 <= overhead < 48 * 500
        assert account.frees >= 50_000
        assert all(is_whole(store, entry) for entry in store.list())
    assert files_of(Path(store.path)) == []


def test_compaction_merges_packs_and_keeps_every_snapshot(store: Store, root: Path) -> None:
    trees = {}
    known = None
    for number in range(6):
        (root / "d5" / "f5").write_bytes(os.urandom(100))
        entry, known = snapshot(store, root, f"s{number}", known)
        trees[entry.snapshot_id] = known.tree.fingerprint
    reader = Store(store.path)
    old = reader.tree(reader.get("s0"))
    report = store.compact()
    assert (report.packs_before, report.packs_after) == (6, 1)
    assert {entry.snapshot_id: store.tree(entry).fingerprint for entry in store.list()} == trees
    assert all(is_whole(store, entry) for entry in store.list())
    # A reader that had the store open before can continue.
    assert [leaf.content_of(node) for _, node in walk(old) if isinstance(node, tuple)]
    assert store.compact() == report.__class__(report.bytes_after, report.bytes_after, 1, 1)


def test_compaction_keeps_contents_on_request(store: Store, root: Path) -> None:
    kept, thrown = digest_of(b"1 in 1\n" * 100), digest_of(b"2 in 2\n" * 100)
    entry, _ = snapshot(store, root, "s")
    with store.writer() as writer:
        part = look(root / "d7", sink=writer)
        writer.finish()
    store.drop("s")
    assert part.ref is not None
    store.compact(keep=[kept], keep_trees=[part.ref])
    assert store.has(kept)
    assert not store.has(thrown)
    assert store.tree(part.ref).fingerprint == model(root / "d7").fingerprint
    assert not store.has(bytes.fromhex(entry.ref))


def test_a_scan_from_before_a_compaction_is_not_trusted(store: Store, root: Path) -> None:
    _, known = snapshot(store, root, "s")
    other = Store(store.path)
    other.drop("s")
    other.compact()
    entry, seen = snapshot(store, root, "again", known)
    assert seen.files_read == 400
    assert is_whole(store, entry)


def test_a_store_that_was_removed_is_filled_again(store: Store, root: Path) -> None:
    _, known = snapshot(store, root, "s")
    Path(store.path).rename(Path(store.path).parent / "away")
    entry, _ = snapshot(store, root, "again", known)
    assert [entry.snapshot_id for entry in store.list()] == ["again"]
    assert is_whole(store, entry)


def test_contents_kept_elsewhere_are_not_required(store: Store, root: Path) -> None:
    """The manifest of an archive's snapshot is in the store, but its files are not; compaction accepts that."""
    with store.writer() as writer:
        seen = look(root, sink=writer)
        archive = writer.add(b"an archive")
        writer.commit(seen, snapshot_id="tar", created_ns=0, kind="tar", contents=[archive.digest])
    content = digest_of(b"3 in 3\n" * 100)
    store.compact()
    assert not store.has(content)
    assert store.read(archive.digest) == b"an archive"
    assert store.as_scan(store.get("tar")).tree.fingerprint == model(root).fingerprint
    # The next writer that needs the contents stores them, whatever it starts from.
    for known in (seen, store.as_scan(store.get("tar"))):
        entry, _ = snapshot(store, root, f"tree{known is seen}", known)
        assert is_whole(store, entry)
    store.compact()
    assert all(is_whole(store, entry) for entry in store.list() if entry.kind == "tree")
    account = {entry.snapshot.snapshot_id: entry.frees for entry in store.account()}
    assert account["tar"] == len(b"an archive")


def test_a_snapshot_that_does_not_fit_is_refused_and_leaves_nothing_behind(store: Store, root: Path) -> None:
    entry, known = snapshot(store, root, "s")
    before = files_of(Path(store.path))
    small = Store(store.path, max_bytes=store.disk_size() + 100_000)
    (root / "huge").write_bytes(os.urandom(9 << 20))
    with pytest.raises(StoreUnwritable, match="drop snapshots and compact") as caught:
        snapshot(small, root, "too much", known)
    assert caught.value.errno == errno.EDQUOT
    assert files_of(Path(store.path)) == before
    (root / "huge").write_bytes(os.urandom(200_000))
    with pytest.raises(StoreUnwritable):
        snapshot(small, root, "too much", known)
    assert files_of(Path(store.path)) == before
    (root / "huge").write_bytes(os.urandom(50_000))
    entry, _ = snapshot(small, root, "fits", known)
    assert is_whole(store, entry)
    assert size_of_packs(store) <= (small.max_bytes or 0)


def test_directories_that_another_process_creates_meanwhile_are_used(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_directory = os.path.isdir

    def create_after_looking(path: str) -> bool:
        found = is_directory(path)
        if path == store.path and not os.path.lexists(path):
            os.makedirs(path)
        return found

    monkeypatch.setattr(os.path, "isdir", create_after_looking)
    entry, _ = snapshot(store, root, "s")
    assert is_whole(store, entry)


@pytest.mark.slow
def test_eight_threads_take_snapshots_concurrently(store: Store, root: Path) -> None:
    barrier = Barrier(8)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            barrier.wait()
            known = None
            for count in range(4):
                (root / f"d{number}" / "f0").write_bytes(b"%d of %d" % (count, number))
                _, known = snapshot(store, root, f"{number}-{count}", known)
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    entries = store.list()
    assert len(entries) == 32
    assert all(is_whole(store, entry) for entry in entries)
    store.compact()
    assert all(is_whole(store, entry) for entry in entries)
    assert len(files_of(Path(store.path))) == 33


@pytest.mark.parametrize("read", [head, lambda data: list(rows(data))])
def test_other_data_is_not_mistaken_for_a_manifest(read: Callable[[bytes], object]) -> None:
    with pytest.raises(ValueError, match="it is not a manifest"):
        read(b"some other content " * 10)


@pytest.mark.parametrize("read", [head, lambda data: list(rows(data))])
def test_a_manifest_with_another_mark_is_refused(read: Callable[[bytes], object]) -> None:
    manifest = encode(0o755, 5, [("a", NO_STATUS, NO_DIGEST, None)])
    read(manifest)
    with pytest.raises(ValueError, match="it is not a manifest"):
        read(bytes([manifest[0] ^ 1]) + manifest[1:])


def test_a_manifest_truncated_anywhere_is_refused() -> None:
    manifest = encode(0o755, 5, [("a", NO_STATUS, NO_DIGEST, None), ("b", NO_STATUS, NO_DIGEST, None)])
    for size in range(len(manifest)):
        with pytest.raises(ValueError, match="it is not a manifest"):
            list(rows(manifest[:size]))
