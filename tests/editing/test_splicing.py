"""The pieces in which two contents differ: what a record holds of an edit."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from weakfs.editing.patches.change_order import pieces_between

# From a few letters, so that the ends have something in common.
texts = st.text("ab", max_size=12).map(str.encode)


@given(texts, texts, st.integers(0, 9), st.integers(0, 9))
@example(b"a", b"b", 0, 3)
@example(b"aab", b"ab", 5, 6)
def test_a_piece_begins_and_ends_where_the_contents_differ(old: bytes, new: bytes, before: int, behind: int) -> None:
    # Long enough in all that a record of the difference is smaller than the content.
    held, made = (b"x" * 100 + b"a" * before + text + b"b" * behind for text in (old, new))
    pieces = pieces_between(held, made)
    if held == made:
        assert pieces == ()
        return
    assert pieces is not None
    ((start, stop, inserted),) = pieces
    assert held[:start] + inserted + held[stop:] == made
    removed = held[start:stop]
    assert not removed or not inserted or (removed[0] != inserted[0] and removed[-1] != inserted[-1])
