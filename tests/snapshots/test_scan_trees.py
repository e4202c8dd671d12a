"""Scans of random directories give the same tree as a simple walk: from memory, from a store, and repeatedly."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.trees import ODD_NAMES, PLAIN_NAMES, flatten, random_tree, write_out
from tests.sampling import share
from tests.snapshots.hosts import look, model, settle, snapshot
from weakfs.reducers import FileTree
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import find, tree_of, walk
from weakfs.snapshots import HashOnlySink, InMemorySink, Scan, Store, scan_entry

SEEDS = st.integers(0, 2**32)


def grown(random: Random, root: Path) -> None:
    """Write a random tree, with a FIFO here and there."""
    tree = random_tree(random, names=random.choice((ODD_NAMES, PLAIN_NAMES)), width=8)
    write_out(tree, root)
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]:
        if random.random() < 0.3:
            os.mkfifo(folder / "fifo", 0o640)
    if os.geteuid():
        # A plain walk reads only what the permission bits allow.
        subprocess.run(["chmod", "-R", "u+rwX", root], check=True)


def changed(random: Random, root: Path) -> None:
    """Change a few things below a directory."""
    paths = [path for path in root.rglob("*") if not path.is_symlink()]
    for path in random.sample(paths, min(4, len(paths))):
        if not path.exists():
            continue
        if path.is_dir():
            (path / f"new{random.random()}").write_bytes(b"new")
        elif path.is_file():
            path.write_bytes(random.randbytes(random.randrange(5)))
        elif random.random() < 0.5:
            path.unlink()
        else:
            path.chmod(0o600)


def same(one: FileTree, other: FileTree) -> bool:
    """Return whether two trees are identical, including times."""
    nodes = [[(path, *times(node)) for path, node in walk(tree)] for tree in (one, other)]
    return one.fingerprint == other.fingerprint and one.digest == other.digest and nodes[0] == nodes[1]


def times(node: object) -> tuple[int, int]:
    if isinstance(node, FileTree):
        return node.mode, node.modified_at
    assert isinstance(node, tuple)
    return node[leaf.MODE], node[leaf.MODIFIED_AT]


@settings(max_examples=share(40))
@given(SEEDS)
def test_a_scan_gives_the_tree_that_a_plain_walk_gives(seed: int) -> None:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        root, store = Path(folder, "root"), Store(Path(folder, "store"))
        root.mkdir()
        grown(random, root)
        known: Scan | None = None
        for number in range(3):
            expected = model(root)
            entry, known = snapshot(store, root, f"s{number}", known)
            assert same(known.tree, expected)
            assert same(Store(store.path).tree(entry), expected)
            assert same(look(root, known).tree, expected)
            assert same(look(root, sink=InMemorySink()).tree, expected)
            assert (entry.file_count, entry.total_size) == (expected.file_count, expected.total_size)
            changed(random, root)


@settings(max_examples=share(20))
@given(SEEDS)
def test_a_stored_tree_has_every_byte(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, store = Path(folder, "root"), Store(Path(folder, "store"))
        root.mkdir()
        grown(Random(seed), root)
        entry, _ = snapshot(store, root, "s")
        assert flatten_files(Store(store.path).tree(entry)) == flatten_files(model(root))


def flatten_files(tree: FileTree) -> dict[str, object]:
    return {path: entry[1] for path, entry in flatten(tree).items() if len(entry) == 3}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "one.txt").write_bytes(b"one")
    (root / "a" / "b" / "two.txt").write_bytes(b"two")
    (root / "c").mkdir()
    (root / "c" / "three.txt").write_bytes(b"three")
    settle(root)
    return root


def test_directories_that_did_not_change_are_the_same_objects(root: Path) -> None:
    first = look(root)
    again = look(root, first)
    assert again.tree is first.tree
    assert again.files_read == 0
    (root / "a" / "one.txt").write_bytes(b"ONE")
    third = look(root, again)
    assert find(third.tree, ("c",)) is find(first.tree, ("c",))
    assert find(third.tree, ("a", "b")) is find(first.tree, ("a", "b"))
    assert find(third.tree, ("a",)) is not find(first.tree, ("a",))
    assert third.files_read == 1


def test_a_change_of_only_the_mode_or_time_of_a_directory_is_found(root: Path) -> None:
    first = look(root)
    (root / "c").chmod(0o700)
    second = look(root, first)
    os.utime(root / "c", ns=(5, 5))
    third = look(root, second)
    found = [find(seen.tree, ("c",)) for seen in (second, third)]
    assert [(node.mode, node.modified_at == 5) for node in found if isinstance(node, FileTree)] == [
        (0o700, False),
        (0o700, True),
    ]
    assert (second.files_read, third.files_read) == (0, 0)


def test_a_new_process_reads_no_file_that_did_not_change(root: Path, tmp_path: Path) -> None:
    snapshot(Store(tmp_path / "store"), root, "first")
    (root / "c" / "three.txt").write_bytes(b"3")
    store = Store(tmp_path / "store")
    newest = store.newest()
    assert newest is not None
    entry, seen = snapshot(store, root, "second", store.as_scan(newest))
    assert seen.files_read == 1
    assert store.tree(entry).fingerprint == model(root).fingerprint


def test_a_socket_and_a_fifo_are_listed_and_never_opened(root: Path) -> None:
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        seen = look(root)
    found = dict(walk(seen.tree))
    assert found["/fifo"][0] is leaf.FIFO  # type: ignore[index]  # it is not a directory
    assert found["/socket"][0] is leaf.SOCKET  # type: ignore[index]  # it is not a directory


@pytest.mark.exhaustive
def test_a_tree_deeper_than_the_longest_path_is_scanned(tmp_path: Path) -> None:
    depth = 3000
    root = tmp_path / "root"
    root.mkdir()
    here = os.open(root, os.O_RDONLY)
    for number in range(depth):
        if number % 50 == 0:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
            os.mkdir("side", dir_fd=here)
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    store = Store(tmp_path / "store")
    entry, seen = snapshot(store, root, "deep")
    assert (seen.tree.directory_count, seen.tree.file_count) == (depth + depth // 50, depth // 50)
    assert store.tree(entry).fingerprint == seen.tree.fingerprint
    assert look(root, seen).tree.fingerprint == seen.tree.fingerprint
    # Too deep for the code that removes the directories of tests.
    subprocess.run(["rm", "-rf", str(root)], check=True)


def test_more_pending_directories_than_may_be_open_are_scanned(tmp_path: Path) -> None:
    """A comb: each directory has a second subdirectory besides the one that leads deeper, so that all are pending."""
    root = here = tmp_path / "root"
    for _ in range(300):
        (here / "a" / "x").mkdir(parents=True)
        (here / "z").mkdir()
        (here / "z" / "f").write_bytes(b"f")
        here = here / "a"
    assert look(root).tree.fingerprint == model(root).fingerprint


def test_a_single_entry_of_any_kind_can_be_scanned(root: Path) -> None:
    (root / "link").symlink_to("a")
    descriptor = os.open(root, os.O_RDONLY)
    whole = model(root)
    try:
        for name in ("a", "c", "link"):
            seen = scan_entry(descriptor, name, InMemorySink())
            assert same(seen.tree, only(whole, name))
        assert scan_entry(descriptor, "gone", HashOnlySink()).tree.node_count == 0
    finally:
        os.close(descriptor)


def only(tree: FileTree, name: str) -> FileTree:
    node = find(tree, (name,))
    assert node is not None
    return tree_of({name: node})


def test_a_known_entry_is_not_read_again(root: Path) -> None:
    known = look(root)
    descriptor = os.open(root, os.O_RDONLY)
    try:
        seen = scan_entry(descriptor, "a", HashOnlySink(), known.entry(("a",)))
        assert seen.files_read == 0
        assert find(seen.tree, ("a",)) is find(known.tree, ("a",))
        (root / "a" / "b" / "two.txt").write_bytes(b"2")
        assert scan_entry(descriptor, "a", HashOnlySink(), seen).files_read == 1
        assert scan_entry(descriptor, "gone", HashOnlySink(), known.entry(("gone", "too"))).files_read == 0
    finally:
        os.close(descriptor)
