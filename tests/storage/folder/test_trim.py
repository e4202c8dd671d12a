"""Trimming and folding: deleted contents free their space, and needed ones stay."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling import share
from tests.storage.folder.journals import STREAM, Model, apply, digest_of, files_of, is_as
from weakfs.storage.folder import FolderEventStore


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in files_of(folder))


def test_space_is_at_most_one_and_a_half_times_what_is_kept(tmp_path: Path) -> None:
    """Over a long life in which most contents are replaced and old frames are trimmed."""
    store, model, chance = FolderEventStore(tmp_path, segment_size=100_000), Model(), Random(1)
    for number in range(share(8000)):
        apply(store, model, [b"frame %06d " % number * 25], [chance.randbytes(1000)])
        if number % 250 == 249:
            dead = [digest for digest in model.contents if chance.random() < 0.5]
            before = len(model.frames) - 200
            store.trim(STREAM, before, contents=dead)
            model.trim(before, dead)
            needed = sum(map(len, model.contents.values())) + sum(len(data) for _, data in model.kept())
            # The active segment is folded when it is sealed, and small streams are left alone.
            assert size_of(tmp_path) <= 1.5 * needed + 200_000
    assert is_as(FolderEventStore(tmp_path), model, set(model.contents))


def test_a_fold_writes_no_more_than_its_budget(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path, segment_size=10_000, fold_budget=9_000)
    data = [b"%d" % number * 250 for number in range(200)]
    for number, content in enumerate(data):
        store.append(STREAM, number, [b"frame"], contents={digest_of(content): content})
    dead = [digest_of(content) for content in data[::2]]
    before = size_of(tmp_path)
    store.trim(STREAM, 0, contents=dead)
    marked = size_of(tmp_path)
    store.trim(STREAM, 0)
    # One segment, half of which is dead.
    assert marked - 6_000 < size_of(tmp_path) < marked
    for _ in range(30):
        store.trim(STREAM, 0)
    assert size_of(tmp_path) < 0.75 * before
    assert store.has_contents(STREAM, map(digest_of, data)) == set(map(digest_of, data[1::2]))


def test_a_content_that_was_deleted_and_stored_again_survives_folds(tmp_path: Path) -> None:
    store, model = FolderEventStore(tmp_path, segment_size=1), Model()
    for number in range(20):
        apply(store, model, [b"frame"], [b"same" * 100])
        if number % 3 == 0:
            store.trim(STREAM, number, contents=[digest_of(b"same" * 100)])
            model.trim(number, [digest_of(b"same" * 100)])
        assert is_as(FolderEventStore(tmp_path), model, {digest_of(b"same" * 100)})
    assert size_of(tmp_path) < 5_000


def test_a_reader_continues_while_its_segment_is_folded(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path, segment_size=1_000)
    for number in range(60):
        store.append(STREAM, number, [b"%d" % number], contents={digest_of(b"%d" % number): b"x" * 300})
    frames = store.read(STREAM)
    assert next(frames).number == 1
    FolderEventStore(tmp_path).trim(STREAM, 0, contents=[digest_of(b"%d" % number) for number in range(60)])
    assert [frame.number for frame in frames] == list(range(2, 61))


ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.lists(st.binary(max_size=40), max_size=3), st.lists(st.integers(0, 9), max_size=3)),
    st.tuples(st.just("trim"), st.integers(0, 30), st.lists(st.integers(0, 9), max_size=4)),
    st.tuples(st.just("reopen"), st.booleans(), st.none()),
    st.tuples(st.just("read"), st.integers(0, 30), st.integers(0, 9)),
)


@given(st.lists(ACTIONS, max_size=40), st.sampled_from([1, 200, 500, 10**6]))
def test_a_stream_behaves_like_a_list_of_frames_and_a_dict_of_contents(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, object, object]], segment_size: int
) -> None:
    folder = tmp_path_factory.mktemp("store")
    contents = [b"content %d " % number * 20 for number in range(10)]
    digests = [digest_of(content) for content in contents]
    stores = [FolderEventStore(folder, segment_size=segment_size) for _ in range(2)]
    model = Model()
    for turn, action in enumerate(actions):
        store = stores[turn % 2]
        match action:
            case ("append", list(frames), list(chosen)):
                apply(store, model, frames, [contents[at] for at in chosen])
            case ("trim", int(before), list(chosen)):
                store.trim(STREAM, before, contents=[digests[at] for at in chosen])
                model.trim(before, [digests[at] for at in chosen])
            case ("reopen", bool(is_indexless), _):
                stores = [FolderEventStore(folder, segment_size=segment_size) for _ in range(2)]
                for path in folder.rglob("*.index") if is_indexless else ():
                    path.unlink()
            case ("read", int(after), int(limit)):
                wanted = [frame for frame in model.kept() if frame[0] > after][:limit]
                assert list(store.read(STREAM, after=after, limit=limit)) == wanted
    for store in (*stores, FolderEventStore(folder)):
        assert is_as(store, model, set(digests))
