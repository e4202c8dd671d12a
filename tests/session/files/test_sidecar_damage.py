"""Sidecar directories in which something else has the name of a blob or a directory, and replaced session files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.models.obstacles import OBSTACLES
from tests.session.files.contents import blob_path, blobs, elsewhere, holding, load, read, tree_with
from weakfs import MissingBlob, Session
from weakfs.session.blobs.blob import LARGE, Stored, digest_of
from weakfs.session.files.sidecar import NEW, BlobFolder

ONE, TWO = b"the first content\n", b"\xff\x00the second"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.json"


def put_in_place_of(path: Path, obstacle: str) -> None:
    path.unlink()
    OBSTACLES[obstacle](path)


@pytest.mark.parametrize("content", [ONE, b"large" * LARGE], ids=["small", "large"])
@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_something_else_in_place_of_a_blob_counts_as_a_missing_blob(
    file: Path, tmp_path: Path, obstacle: str, content: bytes
) -> None:
    elsewhere(content, TWO).save(file)
    put_in_place_of(blob_path(file, content), obstacle)
    session = load(file)
    with pytest.raises(MissingBlob, match=digest_of(content).hex()):
        read(session, "/f0")
    assert read(session, "/f1") == TWO
    for path, embed in ((file, False), (tmp_path / "copy.json", False), (tmp_path / "embedded.json", True)):
        report = session.save(path, embed=embed)
        assert [one.id for one in report.missing] == [digest_of(content).hex()]
        assert read(load(path), "/f1") == TWO


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_something_else_in_place_of_a_blob_is_replaced_if_another_source_has_it(file: Path, obstacle: str) -> None:
    session = elsewhere(ONE)
    session.save(file)
    put_in_place_of(blob_path(file, ONE), obstacle)
    if obstacle == "a directory":
        with pytest.raises(OSError, match=rf"something else has the name of '{blob_path(file, ONE)}'; move it away"):
            session.save(file)
        blob_path(file, ONE).rmdir()
    assert session.save(file).missing == ()
    assert blobs(file) == {digest_of(ONE).hex(): ONE}


def test_a_directory_with_the_size_of_a_blob_is_not_taken_for_it(file: Path) -> None:
    path = file.with_name("directory")
    path.mkdir()
    content = b"x" * path.stat().st_size
    elsewhere(ONE).save(file)
    blob_path(file, content).mkdir(parents=True)
    with pytest.raises(OSError, match="something else has the name of"):
        elsewhere(content).save(file)


@pytest.mark.parametrize("kind", ["link", "file", "fifo"])
def test_something_else_in_place_of_the_directory_for_new_blobs_is_removed(
    file: Path, tmp_path: Path, kind: str
) -> None:
    session = elsewhere(ONE)
    session.save(file)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("precious")
    new = file.with_name("s.json.blobs") / NEW
    if kind == "link":
        new.symlink_to(tmp_path / "precious")
    elif kind == "file":
        new.touch()
    else:
        os.mkfifo(new)
    elsewhere(ONE, TWO).save(file)
    assert read(load(file), "/f1") == TWO
    assert not os.path.lexists(new)
    assert (tmp_path / "precious" / "file").read_text() == "precious"


def test_a_directory_for_new_blobs_that_cannot_be_emptied_is_named(file: Path) -> None:
    elsewhere(ONE).save(file)
    new = file.with_name("s.json.blobs") / NEW
    (new / "directory").mkdir(parents=True)
    with pytest.raises(OSError, match=rf"the directory '{new}' cannot be emptied; move it away"):
        elsewhere(ONE, TWO).save(file)
    assert read(load(file), "/f0") == ONE


@pytest.mark.parametrize("is_whole", [False, True])
def test_blobs_behind_a_link_stay_as_other_session_files_may_use_them(
    file: Path, tmp_path: Path, is_whole: bool
) -> None:
    elsewhere(ONE).save(file)
    other = tmp_path / "other.json"
    if is_whole:
        other.write_bytes(file.read_bytes())
        other.with_name("other.json.blobs").symlink_to("s.json.blobs")
    else:
        elsewhere(TWO).save(other)
        blob_path(other, ONE).parent.symlink_to(blob_path(file, ONE).parent)
    holding(tree_with(a=b"x")).save(other)
    assert read(load(file), "/f0") == ONE


def test_a_session_that_is_replaced_while_it_is_loaded_is_loaded_with_the_blobs_of_the_new_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(ONE).save(file)
    is_there = os.stat

    def stat(path: object, *arguments: object, **options: object) -> object:
        if path == str(file):
            # Another process saves once the file has been read.
            monkeypatch.undo()
            elsewhere(TWO).save(file)
        return is_there(path, *arguments, **options)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(os, "stat", stat)
    session = load(file)
    assert os.stat is is_there
    assert session.missing_blobs == ()
    assert read(session, "/f0") == TWO


def test_a_blob_is_read_only_if_its_file_has_its_size(file: Path) -> None:
    elsewhere(ONE).save(file)
    blob_path(file, ONE).write_bytes(ONE + b"more")
    folder = BlobFolder(str(file))
    read: Iterable[bytes] = folder.read_pieces(Stored(digest_of(ONE), len(ONE), folder))
    with pytest.raises(MissingBlob, match=f"the content {digest_of(ONE).hex()} of 18 bytes was damaged or changed"):
        next(iter(read))


def test_a_session_without_blobs_is_loaded_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Session(session_id="s").save(file)
    monkeypatch.setattr(os, "stat", lambda *_: pytest.fail("the file was looked at again"))
    assert Session.load(file).session_id == "s"
