"""When a scan trusts a status: forged times, coarse clocks, files that others write to during the scan."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.snapshots.hosts import files_of, look, model, settle, snapshot
from weakfs.reducers import FileTree
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import find, walk
from weakfs.snapshots import HashOnlySink, InMemorySink, Store, scan
from weakfs.snapshots.scan import directory_stack as frames
from weakfs.snapshots.scan import stable_read as contents
from weakfs.snapshots.scan.manifests import Status
from weakfs.snapshots.scan.stat_cache import trusted

MS = 1_000_000
S = 1000 * MS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "d" / "file").write_bytes(b"before")
    (root / "d" / "other").write_bytes(b"other")
    settle(root)
    return root


def content(tree: FileTree, *path: str) -> bytes:
    node = find(tree, path)
    assert isinstance(node, tuple)
    return leaf.content_of(node)


def test_an_edit_of_the_same_size_under_a_forged_time_is_found(root: Path) -> None:
    path = root / "d" / "file"
    before = path.stat()
    known = look(root)
    path.write_bytes(b"BEFORE")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert look(root, known).tree.fingerprint == model(root).fingerprint != known.tree.fingerprint


def test_another_file_moved_there_with_the_same_times_is_found(root: Path) -> None:
    path = root / "d" / "file"
    times = path.stat()
    known = look(root)
    (root / "new").write_bytes(b"BEFORE")
    os.utime(root / "new", ns=(times.st_atime_ns, times.st_mtime_ns))
    (root / "new").rename(path)
    assert look(root, known).tree.fingerprint == model(root).fingerprint


@pytest.mark.parametrize("from_store", [False, True])
def test_a_file_written_just_before_the_scan_is_read_again_by_the_next(
    root: Path, tmp_path: Path, from_store: bool
) -> None:
    store = Store(tmp_path / "store")
    # A busy machine may take longer than a tick of the clock between the write and the scan, but not every time.
    for attempt in range(1000):
        (root / "d" / "file").write_bytes(b"BEFORE")
        entry, known = snapshot(store, root, f"racy{attempt}")
        if known.root.below["d"].statuses["file"] is None:
            break
    else:
        raise AssertionError("the scan never came within a tick of the write")
    again = look(root, store.as_scan(entry) if from_store else known)
    assert again.files_read == 1
    # It has not changed, and neither has the tree.
    assert from_store or again.tree is known.tree
    settle(root)
    settled = look(root, again)
    assert look(root, settled).files_read == 0


@pytest.mark.parametrize(
    ("mtime", "ctime", "is_trusted"),
    [
        (50 * S + 1, 50 * S + 1, True),
        (100 * S - 30 * MS + 1, 100 * S - 30 * MS + 1, True),
        (100 * S - 5 * MS, 50 * S + 1, False),
        (50 * S + 1, 100 * S - 5 * MS, False),
        (50 * S + 1, 100 * S + 1, False),
        (100 * S + 5 * MS, 50 * S + 1, False),
        # Whole seconds, or even seconds only: a filesystem that stores no others.
        (99 * S, 99 * S, False),
        (98 * S, 98 * S, False),
        (97 * S, 97 * S, True),
        # A time taken from an archive, on a filesystem that stores finer times.
        (99 * S, 99 * S + 7, True),
        # The mark of a file that kept changing.
        (50 * S, 0, False),
    ],
)
def test_a_status_is_trusted_if_a_later_change_would_be_visible(mtime: int, ctime: int, is_trusted: bool) -> None:
    status: Status = (0o100644, 5, mtime, ctime, 77)
    assert trusted(status, started_at=100 * S) is is_trusted


Read = Callable[[int, int], bytes]


def interfering(monkeypatch: pytest.MonkeyPatch, interfere: Callable[[int], None]) -> None:
    """Call a function after each read of a file, with the number of reads so far."""
    reads = 0

    def after(read: Callable[..., bytes]) -> Callable[..., bytes]:
        def reading(*arguments: int) -> bytes:
            nonlocal reads
            data = read(*arguments)
            reads += 1
            interfere(reads)
            return data

        return reading

    # One reads small files, the other large ones.
    monkeypatch.setattr(os, "read", after(os.read))
    monkeypatch.setattr(os, "pread", after(os.pread))


def test_a_file_that_changes_while_it_is_read_is_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "d" / "file"

    def interfere(reads: int) -> None:
        if reads == 1:
            (root / "d" / "file").write_bytes(b"longer than it was")
            (root / "d" / "other").write_bytes(b"longer than that was")

    interfering(monkeypatch, interfere)
    seen = look(root, sink=InMemorySink())
    monkeypatch.undo()
    assert seen.tree.fingerprint == model(root).fingerprint
    assert content(seen.tree, "d", "file") == path.read_bytes()


@pytest.mark.parametrize("size", [20, 5 * contents.SMALL // 4])
def test_a_file_that_keeps_changing_is_read_but_never_trusted(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    (root / "d" / "other").unlink()
    path = root / "d" / "file"
    path.write_bytes(b"x" * size)
    settle(root)

    def interfere(reads: int) -> None:
        with open(path, "ab") as stream:
            stream.write(b"+")

    interfering(monkeypatch, interfere)
    store = Store(tmp_path / "store")
    entry, seen = snapshot(store, root, "moving")
    monkeypatch.undo()
    taken = content(store.tree(entry), "d", "file")
    assert taken.rstrip(b"+") == b"x" * size
    assert len(taken) == entry.total_size
    settle(root)
    for known in (seen, store.as_scan(entry)):
        again = look(root, known)
        assert again.files_read == 1
        assert again.tree.fingerprint == model(root).fingerprint


def test_a_large_file_that_shrinks_on_every_read_is_refused_by_name(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = root / "d" / "file"
    path.write_bytes(b"x" * (3 * contents.SMALL))
    read = os.pread

    def reading(descriptor: int, size: int, offset: int) -> bytes:
        data = read(descriptor, size, offset)
        if not offset and path.stat().st_size > contents.SMALL:
            os.truncate(path, path.stat().st_size - contents.SMALL // 4)
        return data

    monkeypatch.setattr(os, "pread", reading)
    store = Store(tmp_path / "store")
    with pytest.raises(OSError, match="cannot scan '/d/file': it becomes shorter every time it is read"):
        snapshot(store, root, "shrinking")
    monkeypatch.undo()
    assert files_of(tmp_path / "store") == []
    entry, _ = snapshot(store, root, "still")
    assert store.tree(entry).fingerprint == model(root).fingerprint


def meanwhile(root: Path, happen: Callable[[], object]) -> FileTree:
    """Scan, and call a function after the first file."""
    done = False

    def on_file(path: str, size: int) -> None:
        nonlocal done
        if not done:
            done = True
            happen()

    descriptor = os.open(root, os.O_RDONLY)
    try:
        return scan(descriptor, InMemorySink(), on_file=on_file).tree
    finally:
        os.close(descriptor)


def test_an_entry_that_vanishes_during_the_scan_is_left_out(root: Path) -> None:
    for name in ("gone", "link"):
        (root / name).mkdir()
    (root / "first").write_bytes(b"first")
    (root / "fleeting").symlink_to("a")

    def vanish() -> None:
        for path in (root / "d" / "file", root / "d" / "other", root / "first"):
            path.unlink()
        (root / "d").rmdir()
        (root / "gone").rmdir()
        (root / "fleeting").unlink()

    tree = meanwhile(root, vanish)
    left = {name for name in ("d", "gone", "fleeting", "link", "first") if find(tree, (name,)) is not None}
    assert "link" in left
    assert left <= {"link", "first", "fleeting"}
    assert not {"d", "gone"} & left


def test_a_directory_that_is_swapped_for_a_link_is_recorded_as_the_link(root: Path, tmp_path: Path) -> None:
    (root / "first").write_bytes(b"first")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")

    def swap() -> None:
        (root / "d").rename(tmp_path / "away")
        (root / "d").symlink_to(outside)

    tree = meanwhile(root, swap)
    node = find(tree, ("d",))
    assert isinstance(node, tuple)
    assert node[leaf.CONTENT] == str(outside)


def test_a_known_directory_that_is_swapped_for_a_link_is_recorded_as_the_link(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = look(root)
    opened = os.open

    def opening(path: str, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if path == "d" and (root / "d").is_dir() and not (root / "d").is_symlink():
            (root / "d").rename(tmp_path / "away")
            (root / "d").symlink_to(tmp_path)
        return opened(path, flags, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", opening)
    tree = look(root, known).tree
    node = find(tree, ("d",))
    assert isinstance(node, tuple)
    assert node[leaf.CONTENT] == str(tmp_path)
    assert tree.directory_count == 0


def test_a_file_that_is_swapped_for_a_fifo_does_not_block(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def opening(path: str, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if path == "file":
            (root / "d" / "file").unlink(missing_ok=True)
            os.mkfifo(root / "d" / "file")
        return opened(path, flags, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", opening)
    node = find(look(root, sink=HashOnlySink()).tree, ("d", "file"))
    assert isinstance(node, tuple)
    assert node[leaf.CONTENT] is leaf.FIFO


def test_a_file_that_is_swapped_for_a_directory_is_recorded_as_the_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def opening(path: str, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if path == "file" and (root / "d" / "file").is_file():
            (root / "d" / "file").unlink()
            (root / "d" / "file" / "inner").mkdir(parents=True)
        return opened(path, flags, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", opening)
    tree = look(root, sink=HashOnlySink()).tree
    assert isinstance(find(tree, ("d", "file", "inner")), FileTree)


def test_a_file_that_is_swapped_for_a_fifo_with_a_writer_is_recorded_as_the_fifo(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, writers = os.open, list[int]()

    def opening(path: str, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if path == "file" and (root / "d" / "file").is_file():
            (root / "d" / "file").unlink()
            os.mkfifo(root / "d" / "file")
            writers.append(opened(root / "d" / "file", os.O_RDWR))
        return opened(path, flags, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", opening)
    node = find(look(root, sink=HashOnlySink()).tree, ("d", "file"))
    os.close(writers.pop())
    assert isinstance(node, tuple)
    assert node[leaf.CONTENT] is leaf.FIFO


def test_directories_moved_away_while_their_contents_are_read_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distant ancestors are closed meanwhile; when they are reopened, they must be the same directories."""
    monkeypatch.setattr(frames, "MAX_HELD", 2)
    root = here = tmp_path / "root"
    for _ in range(6):
        (here / "a" / "x").mkdir(parents=True)
        (here / "z" / "y").mkdir(parents=True)
        here = here / "a"
    (here / "deepest").write_bytes(b"deepest")

    def swap() -> None:
        (root / "a").rename(tmp_path / "away")
        for name in ("a/a/z", "a/x", "a/z"):
            (root / name).mkdir(parents=True)
            (root / name / "planted").write_bytes(b"planted")

    tree = meanwhile(root, swap)
    assert not [path for path, _ in walk(tree) if path.endswith("planted") and path.count("/") > 3]
    # What was not moved is complete; of what was moved, the part that had been scanned is there.
    assert find(tree, ("z", "y")) is not None
    assert find(tree, ("a",) * 6 + ("deepest",)) is not None
    assert find(tree, ("a", "z", "planted")) is None
    monkeypatch.undo()
    assert look(root, sink=InMemorySink()).tree.fingerprint == model(root).fingerprint


def test_directories_closed_during_the_descent_are_reopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_HELD", 2)
    root = here = tmp_path / "root"
    for number in range(9):
        (here / "z").mkdir(parents=True)
        (here / "z" / "f").write_bytes(b"%d" % number)
        here = here / "a"
    assert look(root, sink=InMemorySink()).tree.fingerprint == model(root).fingerprint
