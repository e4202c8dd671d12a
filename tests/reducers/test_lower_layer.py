"""What overlays remember of the layer below, where two forks remembered different things."""

from __future__ import annotations

import pytest

from weakfs.reducers.events import LowerEntry
from weakfs.reducers.remembered_lower_layer import merge_entries
from weakfs.session import Log


def seen(*paths: str) -> list[LowerEntry]:
    return [LowerEntry(path, "file", 0, 0, 0o644, None) for path in paths]


BASE = Log[LowerEntry]().extend(seen("/before"))


def test_both_sides_keep_what_either_saw() -> None:
    merged = merge_entries(BASE, BASE.extend(seen("/ours")), BASE.extend(seen("/theirs")))
    assert [*merged] == seen("/before", "/ours", "/theirs")


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("ours_dropped", [False, True])
def test_entries_seen_before_a_side_dropped_everything_are_dropped(ours_dropped: bool) -> None:
    kept, dropped = BASE.extend(seen("/kept")), Log[LowerEntry]().extend(seen("/after"))
    ours, theirs = (dropped, kept) if ours_dropped else (kept, dropped)
    assert [*merge_entries(BASE, ours, theirs)] == seen("/after", "/kept")


def test_if_both_sides_dropped_everything_only_what_they_saw_since_is_left() -> None:
    ours, theirs = (Log[LowerEntry]().extend(seen(path)) for path in ("/ours", "/theirs"))
    assert {entry.path for entry in merge_entries(BASE, ours, theirs)} == {"/ours", "/theirs"}
