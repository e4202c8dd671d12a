"""Counting the lines by which two texts differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.editing.unified_hunks import count_changes, hunks
from weakfs.reducers.merging.line_merge import split_lines

TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=30).map(b"".join)


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        (b"", b"", (0, 0)),
        (b"", b"a\nb\n", (2, 0)),
        (b"a\nb\n", b"", (0, 2)),
        (b"a\nb\nc\n", b"a\nx\ny\nc\n", (2, 1)),
        (b"a", b"a\n", (1, 1)),
    ],
)
def test_lines_are_counted(old: bytes, new: bytes, counts: tuple[int, int]) -> None:
    assert count_changes(split_lines(old), split_lines(new)) == counts


@given(TEXTS, TEXTS)
def test_as_many_lines_are_counted_as_a_diff_shows(old: bytes, new: bytes) -> None:
    shown = [line[:1] for line in hunks(split_lines(old), split_lines(new))]
    assert count_changes(split_lines(old), split_lines(new)) == (shown.count(b"+"), shown.count(b"-"))


def test_beyond_the_bound_everything_between_equal_ends_counts_as_replaced() -> None:
    old = [b"%d\n" % (number % 7) for number in range(1, 99)]
    new = [b"%d\n" % ((number * 3 + 1) % 7) for number in range(1, 99)]
    head, tail = [b"head\n"], [b"tail\n"]
    both = [*head, *old, *tail], [*head, *new, *tail]
    assert count_changes(*both)[0] < 98
    assert count_changes(*both, work=-10_000) == (98, 98)
