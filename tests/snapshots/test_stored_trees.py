"""Trees of stored snapshots: their entries are created when they are read, and equal those of a scan."""

from __future__ import annotations

import copy
import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread

import pytest

from tests.snapshots.hosts import look, model, settle, snapshot
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.directory import UNREAD
from weakfs.reducers.tree.node import FileTree, walk
from weakfs.snapshots import Store
from weakfs.snapshots.scan.manifests import NO_DIGEST, Status, encode, manifest_digest
from weakfs.snapshots.scan.stat_cache import Directory
from weakfs.snapshots.store.manifest_reader import load

FILE: Status = (stat.S_IFREG | 0o644, 1, 1, 1, 1)
LINK: Status = (stat.S_IFLNK | 0o777, 1, 1, 1, 1)
UNKNOWN: Status = (0o030644, 1, 1, 1, 1)

Row = tuple[str, Status, bytes, "str | None"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with every kind of entry, names that are not ASCII or not text, and a wide directory."""
    root = tmp_path / "root"
    for folder in ("few", "wide", "empty", "few/below"):
        (root / folder).mkdir(parents=True)
    (root / "few" / "below").chmod(0o750)
    for name in ("a", "ü", "back\\slash", os.fsdecode(b"byte\xff")):
        (root / "few" / name).write_text(f"in {name!r}")
    (root / "few" / "a").chmod(0o600)
    (root / "few" / "below" / "x").write_text("x")
    (root / "link").symlink_to("few/ü")
    (root / "other link").symlink_to("nowhere")
    os.mkfifo(root / "fifo")
    for number in range(100):
        (root / "wide" / f"f{number}").write_bytes(bytes(number))
    settle(root)
    return root


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def content(tree: FileTree) -> list[object]:
    """Return everything about a tree."""
    found: list[object] = [tree.fingerprint, tree.modified_at, tree.file_count, tree.directory_count, tree.total_size]
    for path, node in walk(tree):
        if type(node) is FileTree:
            attributes = node.mode, node.modified_at, node.created_at
            found.append((path, *attributes, node.file_count, node.directory_count, node.total_size))
        elif isinstance(node, tuple):
            found.append((path, leaf.kind_of(node), *node[1:4], leaf.content_of(node)))
    return found


def unread(directory: Directory) -> list[str]:
    """Return the names of the subdirectories whose entries were not read."""
    return sorted(name for name, below in directory.below.items() if below.tree._places is UNREAD)


@pytest.mark.parametrize("read", [lambda tree: tree, copy.copy])
def test_a_stored_tree_equals_a_scan(store: Store, root: Path, read: Callable[[FileTree], FileTree]) -> None:
    entry, _ = snapshot(store, root, "s")
    assert content(read(Store(store.path).tree(entry))) == content(model(root))


def test_totals_of_a_stored_tree_are_known_without_its_entries(store: Store, root: Path) -> None:
    entry, seen = snapshot(store, root, "s")
    tree = Store(store.path).tree(entry)
    counts = tree.file_count, tree.directory_count, tree.total_size
    assert counts == (seen.tree.file_count, seen.tree.directory_count, seen.tree.total_size)
    assert tree._places is UNREAD


def test_a_scan_reads_the_stored_entries_of_changed_directories_only(store: Store, root: Path) -> None:
    entry, _ = snapshot(store, root, "s")
    again = Store(store.path)
    known = again.as_scan(entry)
    with again.writer() as writer:
        seen = look(root, known, writer)
        assert seen.files_read == 0
        assert all(seen.root.below[name] is known.root.below[name] for name in ("empty", "few", "wide"))
        assert unread(known.root) == ["empty", "few", "wide"]
    (root / "wide" / "f7").write_text("changed")
    with again.writer() as writer:
        seen = look(root, known, writer)
        writer.commit(seen, snapshot_id="t", created_ns=0)
    assert seen.files_read == 1
    assert unread(known.root) == ["empty", "few"]
    assert content(seen.tree) == content(model(root))


def test_threads_may_read_a_stored_directory_at_once(store: Store, root: Path) -> None:
    entry, _ = snapshot(store, root, "s")
    expected = content(model(root))
    for _ in range(20):
        tree = Store(store.path).tree(entry)
        together = Barrier(4)
        found: list[list[object]] = []

        def read(tree: FileTree = tree, together: Barrier = together, found: list[list[object]] = found) -> None:
            together.wait()
            found.append(content(tree))

        threads = [Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 4


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", FILE, NO_DIGEST, None)] * 2, "a name occurs twice"),
        ([("a\0b", FILE, NO_DIGEST, None)], "1 rows, but 2 names"),
        ([("a", LINK, NO_DIGEST, None), ("b", LINK, NO_DIGEST, None)], "more links than targets"),
        ([("a", UNKNOWN, NO_DIGEST, None)], "unknown kind 30000"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused_before_it_is_read(rows: list[Row], message: str) -> None:
    manifest = encode(0o755, 5, rows)
    ref = manifest_digest(manifest)
    with pytest.raises(ValueError, match=message):
        load(ref, {ref: manifest}.__getitem__, Store("unused"), scanned_at=0, token=None)


def test_a_manifest_whose_superfluous_targets_are_not_text_is_refused() -> None:
    manifest = encode(0o755, 5, [("a", FILE, NO_DIGEST, None)]) + b"\xff"
    ref = manifest_digest(manifest)
    with pytest.raises(ValueError, match="is not a manifest: 'utf-8' codec can't decode"):
        load(ref, {ref: manifest}.__getitem__, Store("unused"), scanned_at=0, token=None)
