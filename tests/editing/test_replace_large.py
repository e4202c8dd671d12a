"""`replace` on texts that are large, repetitive or full of marks: the same answers, in linear time."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs.editing import AmbiguousTarget, TargetNotFound, normalization, replace
from weakfs.editing.normalization import Haystack, Needle

MILLION = 1_000_000


@settings(max_examples=share(300))
@given(
    st.text(alphabet="ab  \n\u00a0\u0301\u00e9\u2019'\uac00\u11a8\U0001f600\U0001d165", max_size=60), st.integers(1, 9)
)
def test_a_text_in_pieces_is_searched_as_a_whole(text: str, chunk: int) -> None:
    whole = found(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalization, "CHUNK", chunk)
        assert found(text) == whole


def found(text: str) -> list[list[tuple[int, int]]]:
    haystack = Haystack(text)
    needles = [Needle.of(old) for old in ("a", "a b", "'", " b ", "\u00e9", "\U0001f600")]
    return [
        [(haystack.original(at), haystack.original(at + len(needle.core))) for at in haystack.find_all(needle)]
        for needle in needles
    ]


def test_a_match_across_pieces_of_the_text_is_found() -> None:
    text = "word " * 50_000

    done = replace(f"x {text}y", text.replace(" ", "\t").strip() + "  y", "z")

    assert done.text == "x z"


def test_one_match_at_the_end_of_many_megabytes_is_found() -> None:
    text = "    value = other\n" * 300_000

    done = replace(f"{text}\tlast  = 1\n", "last = 1", "last = 2")

    assert done.text == f"{text}\tlast = 2\n"


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("a\n" * MILLION, "a\n" * (MILLION // 2) + "b"),
        ("a " * MILLION, "b" + "\ta" * (MILLION // 2)),
        (" " * MILLION + "a" + " " * MILLION, "b" + " " * MILLION),
        ("q\u0301" * MILLION, "q\u0301" * (MILLION // 2) + "\u0308"),
        ("\u0301\u0327" * MILLION, "\u0327\u0301" * 1000 + "x"),
        ("\u1100\u1161\u11a8" * (MILLION // 2), "\uac01" * 1000 + "\uac00"),
        ("\U0001d165\U0001d16d" * (MILLION // 2), "\U0001d16d\U0001d165x"),
        ("\u2019" * MILLION, "'" * (MILLION // 2) + '"'),
    ],
    ids=["lines", "words", "blanks", "letters with combining marks", "marks", "syllables", "high marks", "quotes"],
)
def test_millions_of_near_matches_take_linear_time(text: str, old: str) -> None:
    """Quadratic work here would take hours."""
    with pytest.raises(TargetNotFound) as caught:
        replace(text, old, "new")
    assert len(str(caught.value)) < 1500


@pytest.mark.slow
def test_hundreds_of_thousands_of_matches_are_counted_and_replaced() -> None:
    text = "if a:\n\tb  ()\n" * 100_000

    with pytest.raises(AmbiguousTarget) as caught:
        replace(text, "b ()", "c ()")
    assert caught.value.matches == 100_000
    assert caught.value.lines == tuple(range(2, 2002, 2))
    done = replace(text, "if a:\n    b ()\n", "if a:\n    c ()\n    d ()\n", replace_all=True)
    assert done.text == "if a:\n\tc ()\n\td ()\n" * 100_000


def test_combining_marks_in_any_order_are_equivalent_however_many_there_are() -> None:
    marks = "\u0301\u0327" * 20

    assert replace(f"q{marks} x\n", normalize("NFD", f"q{marks}") + "  x", "y").text == "y\n"


def test_places_inside_the_only_match_are_searched_within_the_same_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "ab " * 20 + "abc\n"
    old = "  ".join(["ab"] * 20)
    assert replace(text, old, "x").text == "x abc\n"
    monkeypatch.setattr(normalization, "MOST_WORK", 20)
    with pytest.raises(TargetNotFound, match="too many near matches to check each"):
        replace(text, old, "x")
