"""Replaying sessions whose contents are stored elsewhere: errors name the missing content and the record."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.session.files.contents import (
    REGISTRY,
    Archive,
    Forgetful,
    Taken,
    blob_path,
    elsewhere,
    gone,
    holding,
    load,
    tree_with,
)
from weakfs import InMemoryFilesystem, MissingBlob, Session
from weakfs.reducers import FileTree, TreeRestored
from weakfs.session.blobs.blob import Held, Stored, digest_of
from weakfs.session.files.needed_blobs import check_contents


@frozen(eq=False)
class Holding:
    """An event with a list that may hold anything."""

    values: list[Any]


def new() -> Session:
    return Session(session_id="again", registry=REGISTRY, clock=count(1).__next__)


def digest(content: bytes) -> str:
    return digest_of(content).hex()


def saved(tmp_path: Path, session: Session) -> Path:
    path = tmp_path / "s.json"
    session.save(path)
    return path


def test_a_replay_does_not_read_contents_in_the_sidecar(tmp_path: Path) -> None:
    path = saved(tmp_path, elsewhere(b"one", b"two"))
    blob_path(path, b"one").write_bytes(b"damaged")

    again = load(path).replayed()

    assert InMemoryFilesystem(again).read("/f1").content == "two"
    with pytest.raises(MissingBlob, match="damaged"):
        InMemoryFilesystem(again).read("/f0")


def test_a_content_missing_from_the_sidecar_is_named_with_the_record_that_needs_it(tmp_path: Path) -> None:
    path = saved(tmp_path, elsewhere(b"one", b"two"))
    blob_path(path, b"two").unlink()
    session, again = load(path), new()

    with pytest.raises(
        MissingBlob, match=rf"{digest(b'two')} is missing.*record 1 \(fs/tree_restored\) needs it"
    ) as got:
        again.replay(session.records)

    assert got.value.digest == digest_of(b"two")
    assert again.seq == 0
    assert InMemoryFilesystem(again).list() == ()


def test_a_replay_succeeds_once_a_missing_content_is_restored(tmp_path: Path) -> None:
    path = saved(tmp_path, elsewhere(b"one"))
    place = blob_path(path, b"one")
    place.rename(tmp_path / "aside")
    session = load(path)
    with pytest.raises(MissingBlob):
        session.replayed()

    (tmp_path / "aside").rename(place)

    assert InMemoryFilesystem(session.replayed()).read("/f0").content == "one"


def test_embedded_contents_need_no_sidecar(tmp_path: Path) -> None:
    elsewhere(b"one").save(tmp_path / "s.json", embed=True)

    again = load(tmp_path / "s.json").replayed()

    assert InMemoryFilesystem(again).read("/f0").content == "one"


def test_an_overwritten_content_is_still_needed() -> None:
    session = holding(tree_with(a=gone(b"first")))
    InMemoryFilesystem(session).write("/a", "second")

    with pytest.raises(MissingBlob, match=digest(b"first")):
        new().replay(session.records)


def test_contents_anywhere_in_an_event_are_checked() -> None:
    held = Held()
    session = holding(tree_with(a=held.put(b"there")))
    session.dispatch(Taken(held.put(b"too"), b"inside"))
    new().replay(session.records)

    session.dispatch(Taken(held.put(b"too"), gone(b"lost")))

    with pytest.raises(MissingBlob, match=rf"{digest(b'lost')} is gone; record 3 \(test/taken\) needs it"):
        new().replay(session.records)


def test_contents_in_slice_values_are_checked() -> None:
    session = holding(tree_with())
    session[Archive].seed(Archive("a", data=gone(b"lost")))

    with pytest.raises(MissingBlob, match=r"record 2 \(session/slice_seeded\) needs it"):
        session.replayed()


def test_a_file_that_grew_from_a_missing_content_needs_it() -> None:
    session = holding(tree_with(a=gone(b"start")))
    InMemoryFilesystem(session).append("/a", " and more")
    grown = session[FileTree].latest()
    assert grown is not None
    other = new()
    other.dispatch(TreeRestored(grown, "test", 1))

    with pytest.raises(MissingBlob, match=digest(b"start")):
        Session(registry=REGISTRY).replay(other.records)


def test_the_state_before_the_first_record_needs_its_contents() -> None:
    session = holding(tree_with(a=gone(b"lost")))
    session.compact(keep=0)

    with pytest.raises(MissingBlob, match="the state before record 2 needs it"):
        session.replayed()


def test_a_snapshot_needs_its_contents() -> None:
    session = holding(tree_with(a=gone(b"lost")))
    session.snapshot("early")
    InMemoryFilesystem(session).delete("/a")
    session.compact(keep=0)

    with pytest.raises(MissingBlob, match="the snapshot 'early' needs it"):
        session.replayed()


class Counting(Held):
    """A source that counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = self.reads = 0

    def has(self, digest: bytes) -> bool:
        self.asked += 1
        return super().has(digest)

    def read(self, digest: bytes) -> bytes:
        self.reads += 1
        return super().read(digest)


def test_each_content_is_checked_once_and_read_only_if_its_source_cannot_tell() -> None:
    source = Counting()
    session = holding(tree_with(a=source.put(b"a"), b=source.put(b"b")))
    for number in range(50):
        InMemoryFilesystem(session).copy("/a", f"/c{number}")
        session.snapshot()
    tree = session[FileTree].latest()
    assert tree is not None
    session.dispatch(TreeRestored(tree, "again", 2))

    session.replayed()

    assert (source.asked, source.reads) == (2, 0)


def test_a_damaged_content_is_found_if_every_content_is_read(tmp_path: Path) -> None:
    path = saved(tmp_path, elsewhere(b"one", b"two"))
    rules, line, _ = load(path)._parts()
    check_contents(rules.registry, line, read_all=True)
    blob_path(path, b"two").write_bytes(b"2wo")

    check_contents(rules.registry, line)
    with pytest.raises(MissingBlob, match=rf"{digest(b'two')} of 3 bytes was damaged.*record 1 .* needs it"):
        check_contents(rules.registry, line, read_all=True)


def test_a_recursive_value_is_refused() -> None:
    ring: list[object] = [Stored(digest_of(b"lost"), 4, Forgetful())]
    ring.append(ring)

    with pytest.raises(TypeError, match="nested too deeply"):
        holding(tree_with()).dispatch(Holding(ring))
