"""Damaged journals: an error with the place, or the state of the last complete commit, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.sampling import share, stride
from tests.storage.folder.journals import STREAM, Model, apply, files_of, is_as, newest_segment
from weakfs.storage import Checkpoint, StorageDamaged, StorageError
from weakfs.storage.folder import FolderEventStore, JournalDamaged

SEGMENT = 900


def written(folder: Path) -> Model:
    """Write a stream of several segments, with indexes, a checkpoint and a lease."""
    store, model = FolderEventStore(folder, segment_size=SEGMENT), Model()
    for number in range(14):
        frames = [b"frame %d.%d " % (number, part) * (number % 4) for part in range(number % 3 + 1)]
        apply(store, model, frames, [b"content %d " % number * (number % 5 + 1)] * (number % 2))
    model.checkpoint = Checkpoint(9, b"state" * 20)
    store.put_checkpoint(STREAM, model.checkpoint)
    store.release(store.lease(STREAM, "owner", 60))
    store.trim(STREAM, 6, contents=[])
    model.trim(6, [])
    for number in range(3):
        apply(store, model, [b"last %d" % number], [b"last content %d" % number])
    store.close()
    return model


def judged(folder: Path, model: Model, changed: Path) -> str:
    """Use a damaged stream in every way. Return the outcome; an unexpected one fails."""
    store = FolderEventStore(folder, segment_size=SEGMENT)
    try:
        frames, head = list(store.read(STREAM)), store.head(STREAM)
        contents = store.get_contents(STREAM, sorted(model.contents))
        store.get_checkpoint(STREAM)
        number = store.append(STREAM, head, [b"more"])
    except StorageError as error:
        check_message(error, changed)
        return "refused"
    finally:
        store.close()
    assert head in model.ends
    assert frames == [frame for frame in model.kept() if frame[0] <= head]
    assert number == head + 1
    if head == len(model.frames):
        assert contents == model.contents
        return "whole"
    assert set(contents.items()) <= set(model.contents.items())
    # The contents of whole commits exist, except for those of the commits that were cut.
    assert len(contents) >= len(model.contents) - (len(model.ends) - 1 - model.ends.index(head))
    return "cut"


def check_message(error: StorageError, changed: Path) -> None:
    """Check that an error names the place and the remedy."""
    if isinstance(error, StorageDamaged):
        assert isinstance(error, JournalDamaged)
        assert str(error.path) == str(changed) or "missing" in str(error) or "long" in str(error)
        assert f"byte {error.offset}" in str(error)
        assert "fsck" in str(error)
    assert str(changed.parent) in str(error)


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return written(tmp_path / "whole")


def damaged(tmp_path: Path, source: Path, data: bytes) -> tuple[Path, Path]:
    """Copy the stream with other data in one file."""
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(tmp_path / "whole", copy)
    changed = copy / source.relative_to(tmp_path / "whole")
    changed.write_bytes(data)
    return copy, changed


def test_the_stream_of_these_tests_has_all_kinds_of_files(tmp_path: Path, model: Model) -> None:
    suffixes = [path.suffix for path in files_of(tmp_path / "whole")]
    assert suffixes.count(".journal") >= 3
    assert suffixes.count(".index") == suffixes.count(".journal") - 1
    assert {".checkpoint", ""} <= set(suffixes)
    assert is_as(FolderEventStore(tmp_path / "whole"), model, set(model.contents))


def test_every_truncation_of_the_newest_segment_is_cut_at_a_commit(tmp_path: Path, model: Model) -> None:
    newest = newest_segment(tmp_path / "whole")
    seen = set[str]()
    for size in range(0, newest.stat().st_size, stride()):
        copy, changed = damaged(tmp_path, newest, newest.read_bytes()[:size])
        seen.add(judged(copy, model, changed))
    assert seen == {"refused", "cut"}


def test_every_truncation_of_another_file_is_refused_or_repaired(tmp_path: Path, model: Model) -> None:
    newest = newest_segment(tmp_path / "whole")
    for path in files_of(tmp_path / "whole"):
        if path == newest:
            continue
        for size in range(0, path.stat().st_size, 7 * stride()):
            copy, changed = damaged(tmp_path, path, path.read_bytes()[:size])
            outcome = judged(copy, model, changed)
            # The frames that were trimmed are not read, nor is a lease that was released.
            assert outcome in ("refused", "whole")
            if path.suffix == ".index":
                assert outcome == "whole"


def flipped(data: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def zeroed(data: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(data))
    end = min(len(data), at + chance.choice([1, 8, 100, 512]))
    return data[:at] + bytes(end - at) + data[end:]


def swapped(data: bytes, chance: Random) -> bytes:
    first, second = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + data[second:] + data[first:second]


def doubled(data: bytes, chance: Random) -> bytes:
    first, second = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:second] + data[first:second] + data[second:]


def replaced(data: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(data))
    size = chance.choice([1, 4, 8, 64])
    return data[:at] + chance.choice([b"\xff" * size, chance.randbytes(size)]) + data[at + size :]


DAMAGES = (flipped, zeroed, swapped, doubled, replaced)


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_random_damage_is_reported_or_leaves_an_intact_state(
    tmp_path: Path, model: Model, damage: Callable[[bytes, Random], bytes]
) -> None:
    chance = Random(damage.__name__)
    files = files_of(tmp_path / "whole")
    newest = newest_segment(tmp_path / "whole")
    for _ in range(share(400)):
        path = chance.choice(files)
        whole = path.read_bytes()
        now = damage(whole, chance)
        copy, changed = damaged(tmp_path, path, now)
        outcome = judged(copy, model, changed)
        if path != newest:
            assert outcome != "cut"
        elif outcome == "cut":
            # Frames are dropped silently only if the last commit is missing: the write may never have been finished.
            same = next((at for at, (a, b) in enumerate(zip(whole, now, strict=False)) if a != b), len(whole))
            assert whole[-33:] not in now[same:]


def test_a_length_as_large_as_the_address_space_is_not_read(tmp_path: Path, model: Model) -> None:
    newest = newest_segment(tmp_path / "whole")
    for source in files_of(tmp_path / "whole"):
        data = source.read_bytes()
        for at in range(0, min(len(data), 400), 3 * stride()):
            copy, changed = damaged(tmp_path, source, data[:at] + (2**60).to_bytes(8, "little") + data[at + 8 :])
            allowed = ("refused", "whole", "cut") if source == newest else ("refused", "whole")
            assert judged(copy, model, changed) in allowed


def test_a_missing_segment_is_reported(tmp_path: Path, model: Model) -> None:
    whole = tmp_path / "whole"
    for path in files_of(whole):
        if path.suffix == ".journal":
            copy = tmp_path / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(whole, copy)
            gone = copy / path.relative_to(whole)
            gone.unlink()
            store = FolderEventStore(copy)
            with pytest.raises(JournalDamaged, match="missing"):
                store.head(STREAM)


def test_a_segment_of_another_stream_is_reported(tmp_path: Path, model: Model) -> None:
    other = FolderEventStore(tmp_path / "whole", segment_size=SEGMENT)
    for number in range(30):
        other.append("t", number, [b"other" * 20])
    for path in files_of(tmp_path / "whole", "t"):
        target = tmp_path / "whole" / "s.stream" / path.name
        if path.suffix == ".journal" and target.exists():
            copy, changed = damaged(tmp_path, target, path.read_bytes())
            assert judged(copy, model, changed) in ("refused", "whole")
            with pytest.raises(JournalDamaged, match=r"belongs to another stream|missing"):
                store = FolderEventStore(copy)
                list(store.read(STREAM))
                store.has_contents(STREAM, ["00"])


def test_the_error_for_damage_says_what_is_intact(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path)
    for number in range(10):
        store.append(STREAM, number, [b"frame %d" % number])
    path = newest_segment(tmp_path)
    data = path.read_bytes()
    at = data.index(b"frame 6")
    path.write_bytes(data[:at] + b"X" + data[at + 1 :])
    with pytest.raises(JournalDamaged, match="everything up to frame 6 is intact") as caught:
        FolderEventStore(tmp_path).append(STREAM, 10, [b"more"])
    assert caught.value.number == 6
    assert at - 20 < caught.value.offset < at
    assert path.read_bytes() == data[:at] + b"X" + data[at + 1 :]


def test_a_newer_version_of_the_format_is_reported(tmp_path: Path) -> None:
    FolderEventStore(tmp_path).append(STREAM, 0, [b"a"])
    path = newest_segment(tmp_path)
    data = bytearray(path.read_bytes())
    data[8] = 7
    path.write_bytes(data)
    with pytest.raises(JournalDamaged, match="version 7 of the format, but this weakfs reads version 1; upgrade"):
        FolderEventStore(tmp_path).head(STREAM)
