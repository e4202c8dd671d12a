"""Matches that span lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.search import Hit, compile_multiline
from weakfs.search.grep import MOST_MULTILINE


def hits(pattern: str, text: str | bytes, *, case_insensitive: bool = False) -> list[Hit]:
    data = text if isinstance(text, bytes) else text.encode()
    compiled = compile_multiline(pattern, case_insensitive=case_insensitive)
    return [hit for _, hit in compiled.search_together([data], data)]


def test_a_match_includes_all_of_its_lines() -> None:
    text = "one\ndef f(\n    a,\n):\ntwo\n"

    assert hits(r"def f\(.*?\)", text) == [Hit(2, "def f(\n    a,\n):", 0, 15)]
    assert hits("one\ndef", text) == [Hit(1, "one\ndef f(", 0, 7)]


def test_line_anchors_match_at_every_line() -> None:
    assert [hit.line_number for hit in hits("^t.o$", "one\ntwo\nt\no\n")] == [2, 3]


def test_a_match_that_ends_with_a_line_break_excludes_the_next_line() -> None:
    assert hits("one\n", "one\none\n") == [Hit(1, "one", 0, 3), Hit(2, "one", 0, 3)]


def test_an_empty_match_selects_every_line() -> None:
    assert [hit.line_number for hit in hits("x*", "a\n\nb")] == [1, 2, 3]
    assert hits("x*", "") == []


def test_offsets_count_characters_and_case_is_ignored_when_asked() -> None:
    assert hits("B.C", "\u00fc\u00e4b\nc", case_insensitive=True) == [Hit(1, "\u00fc\u00e4b\nc", 2, 5)]
    assert hits("b.c", b"\xffb\nc") == [Hit(1, "\ufffdb\nc", 1, 4)]


def test_texts_are_searched_one_by_one() -> None:
    texts = [b"a", b"b\n", b"a\nb"]
    found = compile_multiline("a.b").search_together(texts, b"\n".join(texts))

    assert list(found) == [(2, Hit(1, "a\nb", 0, 3))]


def test_a_text_has_a_bounded_number_of_matches() -> None:
    assert len(hits("x(.*y)?", "x\n" * (MOST_MULTILINE + 5))) == MOST_MULTILINE


def test_unsupported_patterns_are_refused_as_in_a_search_by_lines() -> None:
    with pytest.raises(ValueError, match="is not supported by the linear-time engine"):
        compile_multiline("(?<=a)b")


@given(st.sampled_from(["a.b", "a\nb", "^a", "b$", "a*b", "a.*?b"]), st.text("ab\n", max_size=12))
def test_matches_are_those_of_pythons_engine(pattern: str, text: str) -> None:
    expected: list[tuple[int, str]] = []
    position = 0
    while position < len(text) and (match := re.compile(pattern, re.M | re.S).search(text, position)):
        if match.start() == len(text):
            break
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", max(match.start(), match.end() - 1))
        end = len(text) if end < 0 else end
        expected.append((text.count("\n", 0, start) + 1, text[start:end]))
        position = end + 1

    assert [(hit.line_number, hit.line) for hit in hits(pattern, text)] == expected
