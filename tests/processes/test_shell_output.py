"""The beginning and the end of what was printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.processes.output import HeadAndTail


def kept(data: bytes, limit: int, chunk: int = 7) -> HeadAndTail:
    ends = HeadAndTail(limit)
    for start in range(0, len(data), chunk):
        ends.add(data[start : start + chunk])
    return ends


def test_short_output_is_kept_as_it_is() -> None:
    for text in ("", "a", "0123456789"):
        assert kept(text.encode(), 10).text() == text
        assert kept(text.encode(), 10).left_out == 0


def test_long_output_loses_its_middle() -> None:
    assert kept(b"0123456789abcdef", 10).text() == "01234\n[6 bytes are left out here]\nbcdef"
    assert kept(b"0123\n56789abcdef", 10).text() == "0123\n[6 bytes are left out here]\nbcdef"
    assert kept(b"0123456789abcdef", 0).text() == "[16 bytes are left out here]\n"
    assert kept(b"0123456789abcdef", 1).text() == "[15 bytes are left out here]\nf"


@pytest.mark.parametrize("character", ["é", "€", "🙂"])
def test_a_character_split_by_the_cut_is_omitted_entirely(character: str) -> None:
    data = (character * 40).encode()
    for limit in range(60):
        text = kept(data, limit).text()
        head, _, tail = text.partition("[")
        count, _, tail = tail.partition(" bytes are left out here]\n")
        assert set(head.strip("\n")) | set(tail) <= {character}
        assert len((head.strip("\n") + tail).encode()) + int(count) == len(data)


@given(st.binary(max_size=300), st.integers(0, 60), st.integers(1, 50))
def test_the_kept_output_does_not_depend_on_how_it_arrives(data: bytes, limit: int, chunk: int) -> None:
    assert kept(data, limit, chunk).text() == kept(data, limit, 1000).text()
    assert kept(data, limit, chunk).left_out == max(len(data) - limit, 0)


def test_memory_is_bounded_by_the_limit_and_not_by_the_output() -> None:
    ends = HeadAndTail(1000)
    chunk = bytes(1 << 16)
    for _ in range(1000):
        ends.add(chunk)

    assert ends.total == 1000 << 16
    assert len(ends._head) + len(ends._tail) <= 2000
