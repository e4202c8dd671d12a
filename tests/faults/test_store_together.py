"""Compactions of a store, and drops of its snapshots, while other processes work with it."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.snapshots.hosts import snapshot
from weakfs import HostFilesystem
from weakfs.backends.host.root import HostRoot
from weakfs.reducers.events import FileWritten
from weakfs.reducers.tree.node import FileTree
from weakfs.snapshots import Store, snapshot_store
from weakfs.snapshots.scan.scan_limits import ScanLimits
from weakfs.snapshots.undo_journal.journal import Journal


def test_snapshots_that_others_drop_meanwhile_are_passed_over(tmp_path: Path, root: Path) -> None:
    store = Store(tmp_path / "store")
    for name in ("s", "t", "u"):
        snapshot(store, root, name)
    listed = store.list()

    class Stale(Store):
        def list(self) -> tuple[object, ...]:  # type: ignore[override]  # the list from before
            return listed

    store.drop("s")
    Stale(store.path).keep_last(1)
    assert [one.snapshot_id for one in store.list()] == ["u"]


def test_a_compaction_between_the_scan_and_the_first_change_of_a_command_keeps_what_the_undo_needs(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_tree = Journal.tree

    def compact_first(journal: Journal, ref: str) -> None:
        # As another process does.
        with pytest.raises(BlockingIOError):
            Store(tmp_path / "store").compact()
        log_tree(journal, ref)

    monkeypatch.setattr(snapshot_store, "PATIENCE", 0.0)
    monkeypatch.setattr(Journal, "tree", compact_first)
    fs = HostFilesystem(root, store=tmp_path / "store")
    with pytest.raises(KeyError), fs.checkout():
        Store(tmp_path / "store").compact()
        (root / "file").write_bytes(b"changed")
        raise KeyError
    assert (root / "file").read_bytes() == b"content"


@pytest.mark.parametrize("is_command", [True, False])
def test_a_compaction_between_a_scan_and_the_events_for_what_a_program_changed_waits(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, is_command: bool
) -> None:
    name = "read_back" if is_command else "scan"
    scan = getattr(HostRoot, name)

    def compact_afterwards(self: HostRoot, *arguments: object) -> FileTree:
        found: FileTree = scan(self, *arguments)
        # As another process does.
        with pytest.raises(BlockingIOError):
            Store(tmp_path / "store").compact()
        return found

    fs = HostFilesystem(root, store=tmp_path / "store")
    fs.snapshot()
    monkeypatch.setattr(snapshot_store, "PATIENCE", 0.0)
    monkeypatch.setattr(HostRoot, name, compact_afterwards)
    if is_command:
        with fs.checkout():
            (root / "new").write_bytes(b"made by a program")
    else:
        (root / "new").write_bytes(b"made by a program")
        assert fs._workplace.scan_changes("a program") == ("/new",)
    record = fs.session.records[-1].event
    assert isinstance(record, FileWritten)
    assert record.content == b"made by a program"


def test_a_compaction_and_a_command_do_not_wait_for_each_other(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs, other = (HostFilesystem(root, store=tmp_path / "store") for _ in range(2))
    has_waited = Event()
    reports: list[object] = []
    compaction = Thread(target=lambda: reports.append(other.compact()))
    read_back = HostRoot.read_back

    def read_back_after_an_attempt(self: HostRoot, bounds: ScanLimits) -> FileTree:
        # The store is locked here, and the directory is about to be locked.
        compaction.start()
        assert has_waited.wait(60)
        return read_back(self, bounds)

    class Clock:
        monotonic = staticmethod(time.monotonic)

        @staticmethod
        def sleep(seconds: float) -> None:
            has_waited.set()
            time.sleep(seconds)

    monkeypatch.setattr(snapshot_store, "time", Clock)
    monkeypatch.setattr(snapshot_store, "PATIENCE", 600.0)
    monkeypatch.setattr(HostRoot, "read_back", read_back_after_an_attempt)
    with fs.checkout():
        (root / "file").write_bytes(b"changed")
    compaction.join()
    assert len(reports) == 1
    assert isinstance(fs.session.records[-1].event, FileWritten)
