"""The fast path for appends: it appends like `append`, or falls back to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.storage.folder.journals import STREAM, digest_of, newest_segment
from weakfs.platforms import fcntl
from weakfs.storage import LeaseLost, StorageError, StreamConflict
from weakfs.storage.folder import FolderEventStore
from weakfs.storage.folder.files import LOCK, open_root

FRAMES = [b"one", b"two", b"three" * 300]


def test_both_append_paths_write_the_same_records(tmp_path: Path) -> None:
    store, other = FolderEventStore(tmp_path / "a"), FolderEventStore(tmp_path / "b")
    for number, frame in enumerate(FRAMES):
        contents = {digest_of(data): data for data in (b"equal", b"own %d" % number)}
        if number:
            assert store.appender(STREAM)(number, frame, contents)
        else:
            store.append(STREAM, 0, [frame], contents=contents)
        other.append(STREAM, number, [frame], contents=contents)
    for one in (store, FolderEventStore(tmp_path / "a")):
        assert list(one.read(STREAM)) == list(other.read(STREAM))
        assert one.get_contents(STREAM, [digest_of(b"equal"), digest_of(b"own 2")]).keys() == {
            digest_of(b"equal"),
            digest_of(b"own 2"),
        }
    assert store.check(STREAM) == []
    assert newest_segment(tmp_path / "a").stat().st_size == newest_segment(tmp_path / "b").stat().st_size


def others_append(store: FolderEventStore) -> None:
    FolderEventStore(store.path).append(STREAM, 1, [b"of another process"])


def others_take_the_lease(store: FolderEventStore) -> None:
    FolderEventStore(store.path).lease(STREAM, "somebody", 60)


def others_delete_the_stream(store: FolderEventStore) -> None:
    FolderEventStore(store.path).delete(STREAM)


def the_folder_is_removed(store: FolderEventStore) -> None:
    shutil.rmtree(store.path)


def the_store_is_closed(store: FolderEventStore) -> None:
    store.close()


@pytest.mark.parametrize(
    "happens",
    [
        others_append,
        others_take_the_lease,
        others_delete_the_stream,
        the_folder_is_removed,
        the_store_is_closed,
    ],
)
def test_an_appender_falls_back_to_append_after_changes(
    tmp_path: Path, happens: Callable[[FolderEventStore], None]
) -> None:
    store = FolderEventStore(tmp_path / "a")
    store.append(STREAM, 0, [b"first"])
    append = store.appender(STREAM)
    happens(store)
    before = list(FolderEventStore(tmp_path / "a").read(STREAM))
    assert not append(1, b"second", None)
    assert list(FolderEventStore(tmp_path / "a").read(STREAM)) == before
    with pytest.raises(StorageError):
        store.append(STREAM, 1, [b"second"])


def test_nothing_is_appended_to_a_journal_that_an_older_copy_replaced(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path / "a")
    store.append(STREAM, 0, [b"first"])
    append, journal = store.appender(STREAM), newest_segment(tmp_path / "a")
    copy = shutil.copy(journal, tmp_path / "copy")
    assert append(1, b"second", None)
    os.replace(copy, journal)
    assert not append(2, b"third", None)
    with pytest.raises(StreamConflict):
        store.append(STREAM, 2, [b"third"])
    assert [frame.data for frame in FolderEventStore(tmp_path / "a").read(STREAM)] == [b"first"]


def test_an_appender_is_used_again_once_a_lease_is_over(tmp_path: Path) -> None:
    now = [1000.0]
    store, other = (FolderEventStore(tmp_path / "a", clock=lambda: now[0]) for _ in range(2))
    store.append(STREAM, 0, [b"first"])
    other.release(other.lease(STREAM, "released", 60))
    store.append(STREAM, 1, [b"second"])
    assert store.appender(STREAM)(2, b"third", None)
    lease = other.lease(STREAM, "expires", 60)
    append = store.appender(STREAM)
    assert not append(3, b"fourth", None)
    with pytest.raises(LeaseLost):
        store.append(STREAM, 3, [b"fourth"])
    assert not append(3, b"fourth", None)
    now[0] += 61
    assert not append(3, b"fourth", None)
    store.append(STREAM, 3, [b"fourth"])
    assert append(4, b"fifth", None)
    # Its number is still the newest one, but it learns that others have appended.
    with pytest.raises(StreamConflict):
        other.append(STREAM, 3, [b"of the holder"], fencing=lease.fencing)
    # A stream that is created again has leases of its own.
    other.delete(STREAM)
    for name in ("one", "two"):
        lease = other.lease(STREAM, name, 60)
        other.append(STREAM, other.head(STREAM), [b"anew"], fencing=lease.fencing)
        if name == "one":
            other.release(lease)
    assert not append(5, b"sixth", None)
    assert not append(2, b"third", None)
    with pytest.raises(LeaseLost):
        store.append(STREAM, 2, [b"third"])


def test_an_appender_does_not_wait_for_the_lock(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path)
    store.append(STREAM, 0, [b"first"])
    append, folder = store.appender(STREAM), open_root(str(newest_segment(tmp_path).parent))
    fcntl.flock(folder.number, LOCK)
    assert not append(1, b"second", None)
    fcntl.flock(folder.number, fcntl.LOCK_UN)
    assert append(1, b"second", None)


def test_an_appender_falls_back_to_append_for_full_segments_and_syncs(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path / "a", segment_size=200)
    store.append(STREAM, 0, [b"first" * 50])
    assert not store.appender(STREAM)(1, b"second", None)
    synced = FolderEventStore(tmp_path / "b", "power")
    synced.append(STREAM, 0, [b"first"])
    assert not synced.appender(STREAM)(1, b"second", None)


def test_an_appender_finds_contents_in_segments_that_others_have_folded(tmp_path: Path) -> None:
    blobs = [b"%d" % number * 200 for number in range(8)]
    store = FolderEventStore(tmp_path, segment_size=900)
    for number, data in enumerate(blobs):
        store.append(STREAM, number, [b"frame"], contents={digest_of(data): data})
    other = FolderEventStore(tmp_path, segment_size=900)
    other.trim(STREAM, 8, contents=[digest_of(data) for data in blobs[:5]])
    again = {digest_of(data): data for data in blobs}
    if not store.appender(STREAM)(8, b"frame", again):
        store.append(STREAM, 8, [b"frame"], contents=again)
    assert FolderEventStore(tmp_path).get_contents(STREAM, again) == again
    assert store.check(STREAM) == []
