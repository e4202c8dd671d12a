"""The stored output of a background process: consecutive excerpts together are the whole, wherever they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.processes.background import OutputRing

PIECES = st.lists(st.binary(max_size=20) | st.text(max_size=8).map(str.encode), max_size=12)


def ring_of(pieces: list[bytes], limit: int) -> OutputRing:
    ring = OutputRing(limit)
    for piece in pieces:
        ring.add(piece)
    return ring


@given(PIECES, st.integers(1, 40))
def test_the_newest_bytes_are_kept_at_their_positions(pieces: list[bytes], limit: int) -> None:
    whole, ring = b"".join(pieces), ring_of(pieces, limit)

    assert (ring.total, ring.start) == (len(whole), max(len(whole) - limit, 0))
    assert ring.bytes_from(ring.start, ring.total) == whole[ring.start :]


@given(PIECES, st.integers(1, 40), st.integers(1, 12), st.data())
def test_consecutive_excerpts_cover_all_kept_output(
    pieces: list[bytes], limit: int, most: int, data: st.DataObject
) -> None:
    whole, ring = b"".join(pieces), ring_of(pieces, limit)
    since = data.draw(st.integers(0, len(whole)))

    first = found = ring.excerpt(since, most, is_complete=True)
    while found.end < ring.total:
        after = ring.excerpt(found.end, most, is_complete=True)
        assert (after.start, after.dropped) == (found.end, 0)
        assert after.end > found.end
        found = after

    assert first.start == since + first.dropped
    # Besides the output that is no longer stored, at most the rest of a character is left out.
    assert max(since, ring.start) <= first.start <= max(since, ring.start) + 3
    assert found.end == ring.total


@given(st.lists(st.text(max_size=8), max_size=12), st.integers(1, 9))
def test_text_is_read_as_it_was_printed(texts: list[str], most: int) -> None:
    ring = ring_of([text.encode() for text in texts], 1000)

    read, position = "", 0
    while position < ring.total:
        found = ring.excerpt(position, most, is_complete=False)
        read, position = read + found.text, found.end

    assert read == "".join(texts)


@given(st.text(min_size=1, max_size=30), st.integers(1, 40), st.integers(4, 40))
def test_no_excerpt_of_a_text_splits_a_character(text: str, limit: int, most: int) -> None:
    ring = ring_of([text.encode()], limit)

    found = ring.excerpt(None, most, is_complete=True)

    assert text.endswith(found.text)
    assert found.end == ring.total


def test_an_incomplete_character_at_the_end_waits_for_its_rest() -> None:
    ring = ring_of(["ab\u20ac".encode()[:-1]], 100)

    waiting = ring.excerpt(0, 100, is_complete=False)
    assert (waiting.text, waiting.end) == ("ab", 2)
    assert ring.excerpt(0, 100, is_complete=True).text == "ab\ufffd"
    ring.add("\u20ac".encode()[-1:])
    assert ring.excerpt(2, 100, is_complete=False).text == "\u20ac"


def test_a_dropped_position_is_reported() -> None:
    ring = ring_of([b"0123456789"], 4)

    assert ring.excerpt(2, 100, is_complete=True).dropped == 4
    assert (ring.excerpt(None, 2, is_complete=True).text, ring.excerpt(None, 2, is_complete=True).dropped) == (
        "6789",
        6,
    )


@pytest.mark.parametrize("since", [-1, 11])
def test_a_position_outside_the_output_is_refused(since: int) -> None:
    with pytest.raises(ValueError, match="there are 10 bytes of output"):
        ring_of([b"0123456789"], 4).excerpt(since, 100, is_complete=True)
