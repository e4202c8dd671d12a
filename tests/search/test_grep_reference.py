"""Compare the scan of a whole text, and of many at once, with the answers of RE2 for each decoded line alone."""

from __future__ import annotations

from itertools import islice
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.models.grep import PATTERNS, TEXTS, line_by_line
from tests.sampling import share
from weakfs.search import compile_pattern


@settings(max_examples=share(1_000))
@given(PATTERNS, TEXTS, st.booleans())
@example("", b"a\n\n", False)
@example("a|b$", b"b\na\n", False)
@example("\\s*", b"\n\n a", False)
@example("\ufffd", b"a\xff", False)
@example("a\ufffd+b?", b"a\xff\xff", False)
@example("(?i)k", "\u212a".encode(), False)
@example("^*a", b"b\na", False)
@example("(a|\\z)+", b"b\n\n", False)
@example("\\B", "a\u00e9b\na\u00e9".encode(), False)
def test_the_scan_equals_a_search_of_each_line(pattern: str, data: bytes, case_insensitive: bool) -> None:
    hits = compile_pattern(pattern, case_insensitive=case_insensitive).search(data)

    assert hits == line_by_line(pattern, data, case_insensitive=case_insensitive)


@given(PATTERNS, TEXTS, st.integers(0, 4))
def test_a_limit_takes_the_first_hits(pattern: str, data: bytes, limit: int) -> None:
    compiled = compile_pattern(pattern)

    assert compiled.search(data, limit=limit) == compiled.search(data)[:limit]


@settings(max_examples=share(1_000))
@given(PATTERNS, st.lists(TEXTS, max_size=12), st.booleans(), st.none() | st.integers(0, 4))
@example("", [b"", b"\n", b"a"], False, None)
@example("", [], False, None)
@example("a$", [b"a", b"\na"], False, None)
@example("$", [b"", b"", b"a\n", b""], False, 1)
@example("\ufffd", [b"\xc3", b"\xa9"], False, None)
@example("xa\ufffd", [b"xa\xff"], False, None)
@example("axb_", [b"axb_"] * 7, False, None)
@example("axb_", [b"axb_\n"] * 4, False, 4)
@example("axb_$", [b"axb_ "] * 6 + [b"\xff"] * 2 + [b"axb_"], False, None)
@example("axb_", [b"\xffaxb_\n\xff"] * 6, False, None)
@example(".axb_", [b"a", b"a\n\xffaxb_\xff"], False, None)
def test_a_search_of_many_texts_equals_a_search_of_each_line(
    pattern: str, texts: list[bytes], case_insensitive: bool, limit: int | None
) -> None:
    compiled = compile_pattern(pattern, case_insensitive=case_insensitive)

    hits = list(islice(compiled.search_together(texts, b"\n".join(texts)), limit))

    assert (
        hits
        == [
            (index, hit)
            for index, data in enumerate(texts)
            for hit in line_by_line(pattern, data, case_insensitive=case_insensitive)
        ][:limit]
    )


@settings(max_examples=share(1_000))
@given(PATTERNS, TEXTS, st.booleans(), st.integers(1, 12), st.none() | st.integers(0, 4))
@example("^$", b"\n\n\n", False, 1, None)
@example("a$", b"aa\na", False, 2, None)
@example("axb_", b"axb_\n" * 6, False, 5, 3)
@example("\ufffd", b"\xc3\n\xa9\n", False, 2, None)
@example("a", b"\xff\na" * 4, False, 3, None)
def test_a_search_in_parts_equals_a_search_of_the_whole(
    pattern: str, data: bytes, case_insensitive: bool, part: int, limit: int | None
) -> None:
    compiled = compile_pattern(pattern, case_insensitive=case_insensitive)

    with mock.patch("weakfs.search.grep.PART", part):
        hits = compiled.search(data, limit=limit)

    assert hits == line_by_line(pattern, data, case_insensitive=case_insensitive)[:limit]
    assert hits == compiled.search(data, limit=limit)
