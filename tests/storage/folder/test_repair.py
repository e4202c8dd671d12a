"""`check` finds all damage, and `give_up` leaves a working stream with everything before it."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from tests.sampling import share
from tests.storage.folder.journals import STREAM, files_of
from tests.storage.folder.test_damage import SEGMENT, flipped, written
from weakfs.storage import StorageDamaged, StreamConflict
from weakfs.storage.folder import FolderEventStore


def test_an_intact_stream_has_nothing_to_repair(tmp_path: Path) -> None:
    written(tmp_path)
    store = FolderEventStore(tmp_path)
    assert store.check(STREAM) == store.check("missing") == []


def test_a_repaired_stream_has_everything_before_the_damage(tmp_path: Path) -> None:
    model, chance = written(tmp_path / "whole"), Random(3)
    for _ in range(share(400)):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(tmp_path / "whole", copy)
        segments = [path for path in files_of(copy) if path.suffix == ".journal"]
        path = chance.choice(segments)
        data = path.read_bytes()
        path.write_bytes(chance.choice([flipped(data, chance), data[: chance.randrange(len(data))]]))
        store = FolderEventStore(copy, segment_size=SEGMENT)
        problems = store.check(STREAM)
        for _ in range(9):
            if not problems:
                break
            try:
                assert any(name.endswith(".journal") for name in store.give_up(STREAM, problems[0]))
            except StorageDamaged:
                # Nothing before it is whole.
                assert path == segments[0]
                break
            problems = store.check(STREAM)
        else:
            pytest.fail(f"the repair does not end: {problems}")
        if problems:
            continue
        head, frames = store.head(STREAM), list(store.read(STREAM))
        assert head in model.ends
        assert frames == [frame for frame in model.kept() if frame[0] <= head]
        contents = store.get_contents(STREAM, model.contents)
        assert set(contents.items()) <= set(model.contents.items())
        checkpoint = store.get_checkpoint(STREAM)
        assert checkpoint is None or checkpoint.number <= max(head, 9)
        assert store.append(STREAM, head, [b"goes on"]) == head + 1
        assert FolderEventStore(copy).head(STREAM) == head + 1


def test_a_damaged_checkpoint_is_set_aside(tmp_path: Path) -> None:
    written(tmp_path)
    path = next(path for path in files_of(tmp_path) if path.suffix == ".checkpoint")
    path.write_bytes(path.read_bytes()[:-1])
    store = FolderEventStore(tmp_path)
    (problem,) = store.check(STREAM)
    assert store.give_up(STREAM, problem) == [path.name]
    assert store.check(STREAM) == []
    assert store.get_checkpoint(STREAM) is None
    assert path.with_name(path.name + ".damaged").exists()


@pytest.mark.parametrize("place", [0, -1], ids=["a sealed segment", "the active segment"])
def test_nobody_appends_to_a_file_that_was_given_up(tmp_path: Path, place: int) -> None:
    store = FolderEventStore(tmp_path, segment_size=SEGMENT)
    for number in range(12):
        store.append(STREAM, number, [b"frame" * 60])
    path = [path for path in files_of(tmp_path) if path.suffix == ".journal"][place]
    with path.open("r+b") as file:
        file.seek(-40, 2)
        file.write(b"\xff" * 9)
    repaired = FolderEventStore(tmp_path, segment_size=SEGMENT)
    while problems := repaired.check(STREAM):
        repaired.give_up(STREAM, problems[0])
    head = repaired.head(STREAM)
    with pytest.raises(StreamConflict) as caught:
        store.append(STREAM, 12, [b"a"])
    assert (caught.value.expected, caught.value.actual) == (12, head)
    assert store.append(STREAM, head, [b"b"]) == repaired.head(STREAM) == head + 1
