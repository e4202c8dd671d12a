"""The garbage collector is paused while many objects are created, and has little to do afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from weakfs.platforms import VERY_MANY, garbage_collection_paused


@pytest.fixture
def _nothing_frozen() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("_nothing_frozen")
def test_plain_tuples_that_are_created_in_a_pause_are_untracked_at_its_end() -> None:
    with garbage_collection_paused():
        made = [((number, b"content"), (number,)) for number in range(VERY_MANY)]
        assert not gc.isenabled()
    assert gc.isenabled()
    assert not any(gc.is_tracked(pair) or any(map(gc.is_tracked, pair)) for pair in made)


@pytest.mark.usefixtures("_nothing_frozen")
def test_what_was_created_in_a_pause_is_not_collected_again_soon_after_it() -> None:
    with garbage_collection_paused():
        made = [[] for _ in range(5 * VERY_MANY)]  # type: list[list[int]]
    before = gc.get_stats()[2]["collections"]
    # Enough for a full collection, if the collector took all these objects for new ones.
    more = [[] for _ in range(VERY_MANY)]  # type: list[list[int]]
    assert gc.get_stats()[2]["collections"] == before
    assert len(made) > len(more)


@pytest.mark.usefixtures("_nothing_frozen")
def test_old_objects_are_not_visited_because_of_a_few_new_ones() -> None:
    older = [[] for _ in range(9 * VERY_MANY)]  # type: list[list[int]]
    gc.collect()
    before = gc.get_stats()[2]["collections"]
    with garbage_collection_paused():
        made = [[] for _ in range(2 * VERY_MANY)]  # type: list[list[int]]
    assert gc.get_stats()[2]["collections"] == before
    assert len(older) > len(made)
