"""Contents that are stored elsewhere: saved in the sidecar or the session file, and read on demand."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import orjson
import pytest
from attrs import evolve

from tests.session.files.contents import (
    Archive,
    Taken,
    blob_path,
    blobs,
    elsewhere,
    gone,
    holding,
    load,
    read,
    tree_with,
)
from weakfs import MissingBlob, Session, SessionError, SessionFileError
from weakfs.backends import InMemoryFilesystem
from weakfs.reducers import FileTree, TreeRestored
from weakfs.reducers.tree.leaf import CONTENT
from weakfs.reducers.tree.node import find
from weakfs.session import Missing
from weakfs.session.blobs.blob import LARGE, Held, Stored, content_found, digest_of
from weakfs.session.blobs.rope import Rope
from weakfs.session.codec import blob_table

ONE, TWO = b"the first content\n", b"\xff\x00the second"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.json"


def content_at(session: Session, *segments: str) -> object:
    node = find(session[FileTree].latest() or FileTree(), segments)
    assert type(node) is tuple
    return node[CONTENT]


def save_again(path: Path, **options: bool) -> bytes:
    """Load and save elsewhere; return the bytes."""
    again = path.with_name("again.json")
    load(path).save(again, **options)
    return again.read_bytes()


def test_contents_are_in_the_sidecar_under_their_digests(file: Path) -> None:
    elsewhere(ONE, TWO, ONE).save(file)
    assert blobs(file) == {digest_of(ONE).hex(): ONE, digest_of(TWO).hex(): TWO}
    assert blob_path(file, ONE).read_bytes() == ONE
    assert b"first" not in file.read_bytes()


def test_contents_are_loaded_as_references_and_read_on_demand(file: Path) -> None:
    elsewhere(ONE).save(file)
    session = load(file)
    assert content_at(session, "f0") == Stored(digest_of(ONE), len(ONE), Held())
    kept = blob_path(file, ONE).read_bytes()
    blob_path(file, ONE).unlink()
    with pytest.raises(MissingBlob):
        read(session, "/f0")
    blob_path(file, ONE).write_bytes(kept)
    assert read(session, "/f0") == ONE


def test_size_and_digest_of_a_content_are_known_without_reading_it() -> None:
    fs = InMemoryFilesystem(holding(tree_with(a=gone(ONE))))
    here = InMemoryFilesystem(holding(tree_with(a=ONE)))
    assert fs.stat("/a").size_bytes == len(ONE)
    assert fs.tree().digest == here.tree().digest
    assert fs.tree().fingerprint == here.tree().fingerprint


@pytest.mark.parametrize("embed", [False, True])
def test_the_same_state_gives_the_same_bytes_before_and_after_loading(embed: bool, file: Path) -> None:
    session = elsewhere(ONE, TWO)
    fs = InMemoryFilesystem(session)
    fs.append("/f0", "tail " * 20)
    session.snapshot()
    fs.append("/f0", "more")
    fs.write_bytes("/same", ONE)
    session[Archive].append(Archive("a", Held().put(TWO), Held().put(b"third")))
    session.save(file, embed=embed)
    first = file.read_bytes()
    session.save(file, embed=embed)
    assert file.read_bytes() == first
    assert save_again(file, embed=embed) == first
    assert blobs(file).keys() == blobs(file.with_name("again.json")).keys()
    assert load(file)[FileTree].latest().fingerprint == fs.tree().fingerprint  # type: ignore[union-attr]  # there is one


def test_reading_contents_changes_no_bytes(file: Path) -> None:
    session = elsewhere(ONE)
    fs = InMemoryFilesystem(session)
    fs.append("/f0", "tail")
    session.save(file)
    before = file.read_bytes()
    assert fs.read_bytes("/f0").content == ONE + b"tail"
    session.save(file)
    assert file.read_bytes() == before


def test_a_file_that_grew_is_saved_as_a_reference_and_a_tail(file: Path) -> None:
    session = elsewhere(ONE)
    InMemoryFilesystem(session).append("/f0", "tail")
    session.save(file)
    assert list(blobs(file).values()) == [ONE]
    back = load(file)
    assert isinstance(content_at(back, "f0"), Rope)
    assert read(back, "/f0") == ONE + b"tail"


def test_embedded_contents_are_in_the_file_and_still_references(file: Path) -> None:
    session = elsewhere(ONE, TWO)
    InMemoryFilesystem(session).write_bytes("/here", ONE)
    session.save(file, embed=True)
    assert not blobs(file)
    assert file.read_bytes().count(b"the first content") == 1
    back = load(file)
    assert [read(back, f"/{name}") for name in ("f0", "f1", "here")] == [ONE, TWO, ONE]
    assert isinstance(content_at(back, "f0"), Stored)
    assert not back.missing_blobs


def test_embedding_and_not_embedding_lead_to_one_another(file: Path) -> None:
    elsewhere(ONE, TWO).save(file)
    beside = file.read_bytes()
    load(file).save(file.with_name("inside.json"), embed=True)
    load(file.with_name("inside.json")).save(file.with_name("back.json"))
    assert file.with_name("back.json").read_bytes() == beside
    assert blobs(file.with_name("back.json")) == blobs(file)


def test_a_sidecar_that_a_session_reads_stays_when_its_file_embeds_contents(file: Path) -> None:
    elsewhere(ONE).save(file)
    session = load(file)
    session.save(file, embed=True)
    assert read(session, "/f0") == ONE
    load(file).save(file, embed=True)
    assert not blobs(file)


def test_values_and_events_hold_references(file: Path) -> None:
    held = Held()
    session = holding(tree_with())
    values = [Archive("bytes", b"x"), Archive("none"), Archive("stored", held.put(ONE), held.put(TWO))]
    for value in values:
        session[Archive].append(value)
    events = [Taken(held.put(ONE), b"here"), Taken(held.put(TWO), held.put(ONE), "both")]
    for event in events:
        session.dispatch(event)
    session.save(file)
    back = load(file)
    assert list(back[Archive].all()) == values
    assert [record.event for record in back.records][-2:] == events
    found = back[Archive].latest()
    assert found is not None
    assert isinstance(found.data, Stored)
    assert found.data.join() == ONE


def test_an_event_with_a_content_of_the_wrong_type_is_refused() -> None:
    session = holding(tree_with())
    with pytest.raises(TypeError, match=r"Taken\.data"):
        session.dispatch(Taken(b"bytes", b""))  # type: ignore[arg-type]  # the test


def test_a_missing_content_is_named_on_loading_and_fails_only_when_needed(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere(ONE, TWO).save(file)
    blob_path(file, ONE).unlink()
    with caplog.at_level(logging.WARNING, "weakfs.session"):
        session = load(file)
    assert [record.name for record in caplog.records] == ["weakfs.session"]
    assert digest_of(ONE).hex() in caplog.text
    assert str(blob_path(file, ONE)) in caplog.text
    assert session.missing_blobs == (digest_of(ONE).hex(),)
    assert read(session, "/f1") == TWO
    with pytest.raises(MissingBlob) as caught:
        read(session, "/f0")
    assert caught.value.digest == digest_of(ONE)
    assert caught.value.where == str(blob_path(file, ONE))
    assert digest_of(ONE).hex() in str(caught.value)
    blob_path(file, ONE).write_bytes(ONE)
    assert not session.missing_blobs
    assert read(session, "/f0") == ONE


def test_all_contents_of_a_missing_sidecar_are_named(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    elsewhere(ONE, TWO).save(file)
    file.rename(file.with_name("moved.json"))
    session = load(file.with_name("moved.json"))
    assert set(session.missing_blobs) == {digest_of(ONE).hex(), digest_of(TWO).hex()}
    assert len(caplog.records) == 2


def test_a_content_that_was_changed_is_refused_by_its_digest(file: Path) -> None:
    elsewhere(ONE).save(file)
    blob_path(file, ONE).write_bytes(ONE.upper())
    with pytest.raises(MissingBlob, match="damaged") as caught:
        read(load(file), "/f0")
    assert caught.value.digest == digest_of(ONE)
    assert caught.value.where == str(blob_path(file, ONE))


@pytest.mark.parametrize("embed", [False, True])
def test_a_session_is_saved_without_a_lost_content(file: Path, caplog: pytest.LogCaptureFixture, embed: bool) -> None:
    session = holding(tree_with(new=Held().put(TWO), lost=gone(b"lost")))
    report = session.save(file, embed=embed)
    assert digest_of(b"lost").hex() in caplog.text
    assert report.missing == (Missing("content", digest_of(b"lost").hex()),)

    loaded = load(file)
    assert loaded.missing_blobs == (digest_of(b"lost").hex(),)
    assert read(loaded, "/new") == TWO
    with pytest.raises(MissingBlob, match=digest_of(b"lost").hex()):
        read(loaded, "/lost")


def test_a_content_that_only_the_sidecar_has_is_kept_there(file: Path) -> None:
    elsewhere(ONE).save(file)
    report = holding(tree_with(f0=gone(ONE), more=b"x")).save(file)
    assert report.missing == ()
    assert read(load(file), "/f0") == ONE


def test_a_save_of_a_session_that_has_everything_reports_nothing_missing(file: Path) -> None:
    for embed in (False, True):
        assert elsewhere(ONE, TWO).save(file, embed=embed).missing == ()


def test_a_content_is_taken_from_whichever_source_has_it(file: Path) -> None:
    session = holding(tree_with(a=gone(ONE), b=Held().put(ONE)))
    session.save(file)
    assert blobs(file) == {digest_of(ONE).hex(): ONE}


def test_contents_that_the_new_file_does_not_need_are_removed(file: Path) -> None:
    session = elsewhere(ONE, TWO)
    session.save(file)
    InMemoryFilesystem(session).delete("/f0")
    session.compact(keep=0)
    session.save(file)
    assert blobs(file) == {digest_of(TWO).hex(): TWO}
    session.dispatch(TreeRestored(tree_with(a=b"x"), "test", 1))
    session.compact(keep=0)
    session.save(file)
    assert os.listdir(file.parent) == ["s.json"]


def test_other_files_in_the_folder_stay(file: Path) -> None:
    session = elsewhere(ONE)
    session.save(file)
    mine = file.with_name("s.json.blobs") / "README"
    mine.write_text("mine")
    holding(tree_with(a=b"x")).save(file)
    assert mine.read_text() == "mine"
    assert not blobs(file)


def test_a_private_session_file_keeps_its_contents_private(file: Path) -> None:
    elsewhere(ONE).save(file)
    file.chmod(0o600)
    session = elsewhere(ONE, TWO)
    session.save(file)
    assert blob_path(file, TWO).stat().st_mode & 0o777 == 0o600
    assert blob_path(file, TWO).parent.stat().st_mode & 0o777 == 0o700


def test_a_file_saved_through_a_link_has_its_sidecar_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.json").symlink_to("real/s.json")
    elsewhere(ONE).save(tmp_path / "link.json")
    assert blobs(tmp_path / "real" / "s.json")
    assert read(load(tmp_path / "link.json"), "/f0") == ONE


def test_a_session_file_with_the_longest_name_has_a_sidecar(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 255)
    elsewhere(ONE).save(file)
    assert read(load(file), "/f0") == ONE


def test_a_file_in_place_of_the_sidecar_is_an_error(file: Path) -> None:
    file.with_name("s.json.blobs").write_text("mine")
    with pytest.raises(OSError, match=r"cannot save to .*s\.json.*a file has the name of the sidecar directory"):
        elsewhere(ONE).save(file)
    assert not file.exists()
    holding(tree_with(a=b"x")).save(file)
    assert file.with_name("s.json.blobs").read_text() == "mine"


def test_snapshots_with_stored_contents_can_be_rolled_back_to(file: Path) -> None:
    session = elsewhere(ONE, TWO)
    kept = session.snapshot()
    InMemoryFilesystem(session).delete("/f0")
    session.save(file)
    back = load(file)
    back.rollback(kept.snapshot_id)
    assert read(back, "/f0") == ONE


DAMAGED = {
    "a short digest": {"stored": "ab", "size": 1},
    "a digest in capitals": {"stored": "AB" * 32, "size": 1},
    "a digest that leads out of the folder": {"stored": "../" + "a" * 61, "size": 1},
    "a negative size": {"stored": "ab" * 32, "size": -1},
    "a size that is not a number": {"stored": "ab" * 32, "size": True},
    "no size": {"stored": "ab" * 32},
    "more fields": {"stored": "ab" * 32, "size": 1, "x": 1},
    "a content in a later row": {"stored": "ab" * 32, "size": 1, "blob": 5},
    "a content of another size": {"stored": "ab" * 32, "size": 100, "blob": 0},
}


@pytest.mark.parametrize("row", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_reference_is_refused(row: object, file: Path) -> None:
    holding(tree_with(a=b"x", b=Held().put(ONE))).save(file)
    document = orjson.loads(file.read_bytes())
    assert "stored" in document["blobs"][1]
    document["blobs"][1] = row
    file.write_bytes(orjson.dumps(document))
    with pytest.raises(SessionFileError, match=r"\$\.blobs\[1\]"):
        load(file)


def test_bytes_in_place_of_a_stored_blob_are_refused() -> None:
    session = holding(tree_with())
    with pytest.raises(TypeError, match=r"\$\.item\.must: expected a blob stored outside the file"):
        session[Archive].append(evolve(Archive("a"), must=b"here"))  # type: ignore[arg-type]  # the test


def test_contents_that_are_too_large_are_not_embedded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = elsewhere(ONE, TWO)
    monkeypatch.setattr(blob_table, "MOST_EMBEDDED", len(ONE))
    session.save(file, embed=True)
    session.save(file)
    before = file.read_bytes()
    monkeypatch.setattr(blob_table, "MOST_EMBEDDED", len(ONE) - 1)

    with pytest.raises(SessionError, match=r"cannot put the contents \w+ into a session file.*save without embed"):
        session.save(file, embed=True)
    with pytest.raises(SessionError, match="cannot put the contents"):
        session.to_bytes()

    assert file.read_bytes() == before
    session.save(file)
    assert content_at(load(file), "f0") is not None


class Careless:
    """A source that returns whatever it holds, optionally in pieces."""

    def __init__(self, content: bytes, *, pieces: bool) -> None:
        self.content = content
        if pieces:
            self.read_pieces = lambda stored: iter((self.content,))

    def read(self, digest: bytes) -> bytes:
        return self.content


@pytest.mark.parametrize(("size", "pieces"), [(LARGE + 1, False), (9, True), (9, False)])
def test_contents_that_a_source_changed_silently_are_not_saved(size: int, pieces: bool) -> None:
    good, bad = bytes(size), b"x" * size
    digest = digest_of(good)
    changed = Stored(digest, size, Careless(bad, pieces=pieces))
    assert content_found(digest, [changed], []) is None
    assert content_found(digest, [changed, Held().put(good)], []) == good


@pytest.mark.parametrize(("mask", "bits"), [(0o022, 0o644), (0, 0o666)])
def test_contents_in_the_sidecar_have_the_mode_given_by_the_umask(file: Path, mask: int, bits: int) -> None:
    before = os.umask(mask)
    try:
        elsewhere(ONE).save(file)
    finally:
        os.umask(before)
    assert blob_path(file, ONE).stat().st_mode & 0o7777 == bits
