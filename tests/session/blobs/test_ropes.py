"""Ropes: bytes that are joined when they are read."""

from __future__ import annotations

from random import Random

import pytest

from weakfs.session.blobs.blob import digest_of
from weakfs.session.blobs.rope import Rope, joined


@pytest.mark.parametrize("seed", range(20))
def test_a_rope_has_the_bytes_that_result_from_its_changes(seed: int) -> None:
    dice = Random(seed)
    expected = dice.randbytes(50)
    rope: bytes | Rope = expected
    for _ in range(30):
        new = dice.randbytes(dice.randrange(8))
        if dice.random() < 0.3:
            rope, expected = Rope(rope, new), expected + new
        else:
            first, second, third, fourth = sorted(dice.randrange(len(expected) + 1) for _ in range(4))
            inner: bytes | Rope = Rope(b"inner ", new) if dice.random() < 0.3 else new
            rope = Rope.spliced(rope, ((first, second, inner), (third, fourth, b"-")))
            expected = expected[:first] + joined(inner) + expected[second:third] + b"-" + expected[fourth:]
        assert len(rope) == len(expected)
        if dice.random() < 0.1:
            assert joined(rope) == expected
    assert isinstance(rope, Rope)
    assert rope.digest() == digest_of(expected)
    assert rope.join() == expected
    assert rope.is_joined


def test_a_rope_with_thousands_of_alternating_changes_can_be_read() -> None:
    rope: bytes | Rope = b"begin "
    for _ in range(5_000):
        rope = Rope(Rope.spliced(rope, ((0, 1, b"B"),)), b"x")
    for _ in range(5_000):
        rope = Rope.spliced(rope, ((0, 1, b"b"),))
    assert joined(rope) == b"begin " + b"x" * 5_000


@pytest.mark.parametrize("pieces", [((2, 1, b""),), ((3, 4, b""), (2, 3, b"")), ((0, 6, b""),), ((-1, 2, b""),)])
def test_pieces_outside_the_contents_are_refused(pieces: tuple[tuple[int, int, bytes], ...]) -> None:
    with pytest.raises(ValueError, match="pieces"):
        Rope.spliced(b"short", pieces)
