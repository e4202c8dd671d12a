"""Folders that were tampered with: links, FIFOs, foreign files, odd names; and systems without locks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.storage.folder.journals import STREAM, newest_segment
from weakfs.storage import StorageError
from weakfs.storage.folder import FolderEventStore, FolderStorage, store

NAMES = (
    "../x",
    "..",
    "a/../b",
    "/etc",
    "con",
    "A",
    "a",
    "\u00e4",
    "a\u0308",
    "a b",
    "%41",
    "a" * 199,
    "b" * 200,
    "\u20ac" * 85,
)


def made(folder: Path) -> Path:
    FolderEventStore(folder).append(STREAM, 0, [b"a"])
    return folder / "s.stream"


def test_no_name_leads_out_of_the_folder_or_collides_with_another(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    streams = FolderEventStore(folder)
    for name in NAMES:
        assert streams.append(name, 0, [name.encode()]) == 1
    assert streams.streams() == sorted(NAMES, key=str.encode)
    assert [next(streams.read(name)).data.decode() for name in NAMES] == list(NAMES)
    assert os.listdir(tmp_path) == ["store"]
    paths = [str(path.relative_to(folder)) for path in folder.rglob("*.stream")]
    assert len({path.lower() for path in paths}) == len(NAMES)
    assert all(path.isascii() and ".." not in path and len(part) < 255 for path in paths for part in path.split("/"))


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
@pytest.mark.parametrize("suffix", [".journal", ".index", "lease"])
def test_special_files_are_refused_without_blocking(tmp_path: Path, kind: str, suffix: str) -> None:
    kept = made(tmp_path)
    streams = FolderEventStore(tmp_path)
    streams.lease(STREAM, "me", 0)
    path = kept / "lease" if suffix == "lease" else newest_segment(tmp_path).with_suffix(suffix)
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    found = FolderEventStore(tmp_path)
    if suffix == ".index":
        # It only repeats what the journal says.
        assert found.append(STREAM, 1, [b"b"]) == 2
    else:
        with pytest.raises(StorageError, match="cannot"):
            found.append(STREAM, 1, [b"b"])
    assert target.read_bytes() == b"precious"


def test_a_stream_that_is_a_link_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "other")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "s.stream").symlink_to(tmp_path / "other" / "s.stream")
    streams = FolderEventStore(tmp_path / "store")
    with pytest.raises(StorageError, match=r"Not a directory|symbolic links"):
        streams.head(STREAM)
    with pytest.raises(StorageError, match=r"Not a directory|symbolic links"):
        streams.append(STREAM, 1, [b"b"])
    assert FolderEventStore(tmp_path / "other").head(STREAM) == 1


def test_a_segment_swapped_for_another_file_is_detected(tmp_path: Path) -> None:
    streams = FolderEventStore(tmp_path, segment_size=200)
    for number in range(8):
        streams.append(STREAM, number, [b"frame" * 20])
    first, second, *_ = sorted((tmp_path / "s.stream").glob("*.journal"))
    first.write_bytes(second.read_bytes())
    with pytest.raises(StorageError, match="it is segment 2, under the name of segment 1"):
        list(FolderEventStore(tmp_path).read(STREAM))


def test_files_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    kept = made(tmp_path)
    (tmp_path / "README").write_text("mine")
    (tmp_path / "UPPER.stream").mkdir()
    (kept / "notes.txt").write_text("mine")
    streams = FolderEventStore(tmp_path)
    assert streams.streams() == [STREAM]
    assert streams.append(STREAM, 1, [b"b"]) == 2
    assert (kept / "notes.txt").read_text() == (tmp_path / "README").read_text() == "mine"


@pytest.mark.parametrize("make", [FolderEventStore, FolderStorage])
def test_a_file_in_place_of_the_folder_is_reported(
    tmp_path: Path, make: type[FolderEventStore] | type[FolderStorage]
) -> None:
    (tmp_path / "file").write_text("")
    opened = make(tmp_path / "file")
    with pytest.raises(
        StorageError,
        match=r"cannot .* in '.*/file': Not a directory; name a folder, or sqlite:PATH$",
    ):
        if isinstance(opened, FolderEventStore):
            opened.append(STREAM, 0, [b"a"])
        else:
            opened.set("a", b"")


def test_a_read_only_folder_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    real = os.open

    def refuse(path: str, flags: int, *arguments: int, **options: int) -> int:
        if flags & (os.O_RDWR | os.O_CREAT):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    streams = FolderEventStore(tmp_path)
    assert list(streams.read(STREAM)) == [(1, b"a")]
    with pytest.raises(StorageError, match="cannot append"):
        streams.append(STREAM, 1, [b"b"])
    assert streams.head(STREAM) == 1


def test_without_file_locks_the_error_names_an_alternative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "HAS_FILE_LOCKS", False)
    with pytest.raises(StorageError, match=r"needs flock, which .* does not have; use a 'sqlite:' URL instead"):
        FolderEventStore(tmp_path)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    made(tmp_path)
    with FolderEventStore(tmp_path) as streams:
        frames = streams.read(STREAM)
        assert next(frames).number == 1
    for call in (lambda: streams.head(STREAM), streams.streams, lambda: streams.append(STREAM, 1, [b""])):
        with pytest.raises(StorageError, match="closed; open it again"):
            call()
    assert list(frames) == []


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="use 'process', 'power' or 'manual'"):
        FolderEventStore(tmp_path, "always")  # type: ignore[arg-type]  # what is tested
