"""A real directory, changed at random through the operating system, is exactly what it was after a restore."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.host import ROOT, Disorder, Record, assert_restored, exact, left_in_journals, record
from tests.sampling import share
from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.filesystem import FilesystemSnapshot

SNAPSHOT_KINDS: tuple[SnapshotKind, ...] = ("tree", "git", "tar")
EXAMPLES = 30

kinds = pytest.mark.parametrize("kind", SNAPSHOT_KINDS)
changes = st.lists(st.integers(0, 1 << 32), max_size=40)
some_changes = st.lists(st.integers(0, 1 << 32), min_size=1, max_size=25)


class Place:
    """A root with a secret next to it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.outside, self.store = folder / "root", folder / "outside", folder / "store"
        self.root.mkdir()
        self.outside.mkdir()
        (self.outside / "secret").write_text("the secret")
        os.utime(self.outside / "secret", ns=(5, 5))
        os.utime(self.outside, ns=(6, 6))
        self.disorder = Disorder(self.root, self.outside)

    def change(self, seeds: list[int]) -> Record:
        for seed in seeds:
            self.disorder.act(seed)
        return record(self.root)

    def open(self, kind: SnapshotKind = "tree", session: Session | None = None) -> HostFilesystem:
        return HostFilesystem(self.root, session=session, snapshots=kind, store=self.store)

    def assert_secret_is_untouched(self) -> None:
        assert os.listdir(self.outside) == ["secret"]
        assert (self.outside / "secret").read_text() == "the secret"
        assert (os.stat(self.outside).st_mtime_ns, os.stat(self.outside / "secret").st_mtime_ns) == (6, 5)
        assert os.stat(self.outside / "secret").st_mode & 0o7777 == 0o644


@contextmanager
def a_place() -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp())
    try:
        yield Place(folder)
    finally:
        # Too deep for `shutil.rmtree` to remove.
        subprocess.run(["rm", "-rf", folder], check=True)


def by_restore(place: Place, fs: HostFilesystem, snapshot: FilesystemSnapshot) -> None:
    expected = fs.restore(snapshot, dry_run=True)
    between = record(place.root)
    # Notes report what was lost, which is known only afterwards.
    assert attrs.evolve(fs.restore(snapshot), notes=()) == attrs.evolve(expected, dry_run=False)
    assert_report_is_right(expected.written, expected.removed, between, record(place.root))


def by_a_fresh_object(place: Place, fs: HostFilesystem, snapshot: FilesystemSnapshot) -> None:
    place.open().restore(attrs.evolve(snapshot, tree=None))


def assert_report_is_right(written: tuple[str, ...], removed: tuple[str, ...], old: Record, new: Record) -> None:
    """Check that the report lists what differs, apart from names that it writes in another form."""

    def is_plain(path: bytes) -> bool:
        return path.isascii() and b"\\" not in path and path != ROOT

    def plain(paths: tuple[str, ...]) -> set[bytes]:
        return {path[1:].encode() for path in paths if path.isascii() and path != "/"}

    both = old.keys() & new.keys()
    differs = {path for path in both if old[path].essence != new[path].essence and is_plain(path)}
    added = {path for path in new.keys() - old.keys() if is_plain(path)}
    gone = {path for path in old.keys() - new.keys() if is_plain(path)}
    assert differs | added <= plain(written)
    assert gone <= plain(removed)
    assert plain(removed) <= gone | differs
    assert plain(written) <= {path for path in new if old.get(path) is None or old[path].exact != new[path].exact}


@kinds
@pytest.mark.parametrize("way", [by_restore, by_a_fresh_object])
@settings(max_examples=share(EXAMPLES))
@given(first=changes, then=some_changes)
def test_a_restore_is_exact_after_random_changes(
    kind: SnapshotKind,
    way: Callable[[Place, HostFilesystem, FilesystemSnapshot], None],
    first: list[int],
    then: list[int],
) -> None:
    with a_place() as place:
        before = place.change(first)
        fs = place.open(kind)
        snapshot = fs.snapshot()
        assert record(place.root) == before
        between = place.change(then)

        way(place, fs, snapshot)

        after = record(place.root)
        assert_restored(before, between, after)
        place.assert_secret_is_untouched()
        assert fs.restore(snapshot).changed == 0
        assert record(place.root) == after
        assert not left_in_journals(place.store)


@kinds
@settings(max_examples=share(EXAMPLES // 2))
@given(first=changes, then=some_changes, last=some_changes)
def test_a_session_goes_back_and_forth_between_its_snapshots(
    kind: SnapshotKind, first: list[int], then: list[int], last: list[int]
) -> None:
    with a_place() as place:
        session = Session()
        place.open(kind, session)
        states = [place.change(first)]
        session.snapshot("one")
        states.append(place.change(then))
        session.snapshot("two")
        between = place.change(last)

        for tag, wanted in (("one", 0), ("two", 1), ("two", 1), ("one", 0)):
            session.rollback(tag)
            after = record(place.root)
            assert_restored(states[wanted], between, after)
            between = after
        place.assert_secret_is_untouched()


@kinds
@settings(max_examples=share(EXAMPLES // 4))
@given(first=changes, then=some_changes)
def test_a_saved_session_rolls_back_on_the_same_root(kind: SnapshotKind, first: list[int], then: list[int]) -> None:
    with a_place() as place:
        session = Session()
        place.open(kind, session)
        before = place.change(first)
        session.snapshot("kept")
        session.save(place.root.parent / "session.json")
        between = place.change(then)

        loaded = Session.load(place.root.parent / "session.json")
        place.open(kind, loaded)
        loaded.rollback("kept")

        assert_restored(before, between, record(place.root))


@kinds
def test_an_edit_of_an_old_file_that_keeps_its_size_and_time_is_found(kind: SnapshotKind) -> None:
    with a_place() as place:
        for number in range(4):
            (place.root / f"{number}").write_text("old content")
            os.utime(place.root / f"{number}", ns=(7, 1_600_000_000_000_000_000 + number))
        fs = place.open(kind)
        fs.snapshot()
        # So that no file is read again just because it changed right before the scan.
        time.sleep(0.1)
        before = record(place.root)
        snapshot = fs.snapshot()
        for number in range(3):
            status = os.stat(place.root / f"{number}")
            with open(place.root / f"{number}", "r+b") as stream:
                stream.write(b"new")
            os.utime(place.root / f"{number}", ns=(status.st_atime_ns, status.st_mtime_ns))
        between = record(place.root)

        assert fs.restore(snapshot).written == ("/0", "/1", "/2")

        assert_restored(before, between, record(place.root))


@settings(max_examples=share(EXAMPLES // 2))
@given(first=changes, then=some_changes)
def test_a_restore_that_fails_at_the_end_leaves_what_was_there(first: list[int], then: list[int]) -> None:
    with a_place() as place:
        place.change(first)
        fs = place.open()
        snapshot = fs.snapshot()
        between = place.change(then)

        with pytest.raises(RuntimeError, match="at the end"), fs.session.transaction():
            fs.restore(snapshot)
            raise RuntimeError("at the end")

        assert exact(record(place.root)) == exact(between)
        place.assert_secret_is_untouched()
