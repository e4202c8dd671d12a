"""A disk that is really full: the store stays as it was, and can be used again once there is space."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.faults.test_store_crash import make_root, read_whole
from tests.snapshots.hosts import files_of, snapshot
from weakfs.snapshots import Store, StoreUnwritable


def test_a_full_disk_refuses_the_snapshot_and_leaves_the_old_ones_intact(small_disk: Path, tmp_path: Path) -> None:
    root, store = make_root(tmp_path / "root"), Store(small_disk / "store")
    first, known = snapshot(store, root, "first")
    before = files_of(small_disk / "store")
    (root / "d0" / "huge").write_bytes(os.urandom(3 << 20))
    with pytest.raises(StoreUnwritable, match="free some space") as caught:
        snapshot(store, root, "too much", known)
    assert caught.value.errno == errno.ENOSPC
    assert str(small_disk) in str(caught.value)
    assert files_of(small_disk / "store") == before
    assert store.list() == (first,)
    read_whole(store.tree(first))
    (root / "d0" / "huge").write_bytes(os.urandom(1 << 20))
    second, _ = snapshot(store, root, "fits", known)
    read_whole(Store(store.path).tree(second))


def test_a_disk_that_is_full_at_any_moment_leaves_the_old_state_intact(small_disk: Path, tmp_path: Path) -> None:
    """The disk is filled page by page beforehand, so that each step of a snapshot fails once."""
    root, store = make_root(tmp_path / "root"), Store(small_disk / "store")
    first, known = snapshot(store, root, "first")
    before = files_of(small_disk / "store")
    (root / "d0" / "new").write_bytes(os.urandom(20_000))
    free = os.statvfs(small_disk).f_bavail
    refusals: list[int | None] = []
    for left in range(12):
        (small_disk / "ballast").write_bytes(bytes(4096 * (free - left)))
        try:
            snapshot(Store(store.path), root, f"s{left}", known)
        except StoreUnwritable as error:
            refusals.append(error.errno)
            assert files_of(small_disk / "store") == before
        else:
            read_whole(store.tree(store.get(f"s{left}")))
            store.drop(f"s{left}")
        (small_disk / "ballast").unlink()
        read_whole(store.tree(first))
        store.compact()
        before = files_of(small_disk / "store")
    assert 0 < len(refusals) < 12
    assert set(refusals) == {errno.ENOSPC}


def test_a_compaction_on_a_full_disk_deletes_nothing(small_disk: Path, tmp_path: Path) -> None:
    root, store = make_root(tmp_path / "root"), Store(small_disk / "store")
    (root / "d0" / "large").write_bytes(os.urandom(900_000))
    _, known = snapshot(store, root, "first")
    (root / "d0" / "new").write_bytes(os.urandom(20_000))
    snapshot(store, root, "second", known)
    before = files_of(small_disk / "store")
    (small_disk / "ballast").write_bytes(bytes(500_000))
    with pytest.raises(StoreUnwritable, match="nothing was removed") as caught:
        store.compact()
    assert caught.value.errno == errno.ENOSPC
    assert files_of(small_disk / "store") == before
    for entry in store.list():
        read_whole(Store(store.path).tree(entry))
