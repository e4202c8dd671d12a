"""`replace`: exact matching, the table of cases, and texts that are large or repetitive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from weakfs.editing import AmbiguousTarget, EditError, EmptyOldString, NoChange, Replacement, TargetNotFound, replace

CASES = json.loads((Path(__file__).parents[2] / "fixtures" / "cases" / "edit.json").read_bytes())["cases"]
CATEGORIES = {"exact", "error", "not_found", "refuse", "unicode", "whitespace", "indent", "eol"}

# Only a few letters, so that there are many matches, and among them a byte order mark and a line break.
texts = st.text(alphabet="ab\n\ufeff", max_size=30)
needles = st.text(alphabet="ab\n\ufeff", min_size=1, max_size=4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_table_of_cases_is_answered(case: dict[str, Any]) -> None:
    old, new, replace_all = case["old"], case["new"], case["replace_all"]

    if case["status"] == "ok":
        done = replace(case["content"], old, new, replace_all=replace_all)
        assert done.text in [case["result"], *case.get("also_ok", ())]
        assert done.count == case["replacements"]
        assert done.how == ("exact" if case["old"] in case["content"] else "fuzzy")
        return

    with pytest.raises(EditError) as caught:
        replace(case["content"], old, new, replace_all=replace_all)
    assert caught.value.status == case["status"]
    assert caught.value.error_code == case["error_code"]
    assert caught.value.matches == case["replacements"]
    if "lines" in case:
        assert list(caught.value.lines) == case["lines"]
    if "hint" in case:
        assert caught.value.hint == case["hint"]


def test_the_table_has_cases_of_each_category() -> None:
    assert {case["category"] for case in CASES} == CATEGORIES


def test_an_ambiguous_match_names_every_line_and_what_to_do() -> None:
    with pytest.raises(AmbiguousTarget) as caught:
        replace("x = 1\ny\nx = 1\n\nx = 1", "x = 1", "x = 2")

    assert caught.value.lines == (1, 3, 5)
    assert caught.value.matches == 3
    assert str(caught.value) == (
        "cannot replace: the text to replace is in the file 3 times, on lines 1, 3 and 5; "
        "give more of the text around the intended place, or set replace_all to change all of them"
    )


def test_matches_on_one_line_are_reported_as_one_line() -> None:
    with pytest.raises(AmbiguousTarget, match="2 times, on line 2;") as caught:
        replace("\na, a\n", "a", "b")

    assert caught.value.lines == (2, 2)


def test_a_match_is_on_the_line_where_it_begins() -> None:
    with pytest.raises(AmbiguousTarget) as caught:
        replace("a\nb\nc\na\nb\n", "\nb", "-")

    assert caught.value.lines == (1, 4)


def test_the_message_of_very_many_matches_stays_short() -> None:
    with pytest.raises(AmbiguousTarget) as caught:
        replace("a\n" * 100_000, "a", "b")

    assert caught.value.matches == 100_000
    assert caught.value.lines == tuple(range(1, 1001))
    assert "19, 20 and more" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_matches_do_not_overlap() -> None:
    assert replace("aaa", "aa", "b").text == "ba"
    assert replace("aaaa", "aa", "b", replace_all=True).text == "bb"
    with pytest.raises(AmbiguousTarget):
        replace("aaaa", "aa", "b")


def test_spans_and_pieces_are_in_characters_of_the_old_text() -> None:
    done = replace("é\nx é", "é", "ee", replace_all=True)

    assert done.spans == ((0, 1), (4, 5))
    assert list(done.pieces) == [(0, 1, "ee"), (4, 5, "ee")]


def test_text_can_be_deleted() -> None:
    assert replace("keep drop", " drop", "").text == "keep"


def test_exact_line_endings_are_an_exact_match() -> None:
    assert replace("a\r\nb\r\n", "a\r\nb", "c").how == "exact"
    assert replace("a\r\nb\r\n", "a\nb", "c").how == "fuzzy"


def test_half_of_a_line_ending_is_not_a_match() -> None:
    assert replace("a\r\nb\r\n", "\nb", "\nB").text == "a\r\nB\r\n"
    assert replace("a\r\nb", "\nb", "").text == "a"
    assert replace("a\r\nb\r\n", "a\r", "A").text == "A\r\nb\r\n"
    assert replace("a\r\n\nb", "\nb", "B").text == "a\r\nB"
    assert replace("\r\n\na\n", "\n", "\n\n", replace_all=True).spans == ((2, 3), (4, 5))
    assert replace("a\r\n\r\nb\n\r\n", "\n\r\n", "").text == "a\r\n\r\nb"
    for old in ("\n", "\r", "\n\r"):
        with pytest.raises(TargetNotFound, match="only white space"):
            replace("a\r\n\r\nb\r\n", old, "x", replace_all=True)


def test_repeated_halves_of_line_endings_take_linear_time() -> None:
    """Quadratic work here would take hours."""
    text = "\r\n" * 500_000
    with pytest.raises(TargetNotFound):
        replace(text, "\n\r" * 100_000, "x")
    assert replace(text + "\n", "\n", "", replace_all=True).text == text


def test_letter_case_counts() -> None:
    with pytest.raises(TargetNotFound):
        replace("Alpha", "alpha", "beta")


def test_a_byte_order_mark_stays_where_the_replaced_text_began_with_it() -> None:
    assert replace("\ufeffimport os\n", "\ufeffimport os", "import re").text == "\ufeffimport re\n"
    assert replace("\ufeffimport os\n", "\ufeffimport os", "\ufeffimport re").text == "\ufeffimport re\n"
    assert replace("\ufeffimport os\n", "import os", "import re").text == "\ufeffimport re\n"


def test_removing_only_the_byte_order_mark_is_not_a_change() -> None:
    with pytest.raises(NoChange, match="byte order mark"):
        replace("\ufeffx", "\ufeffx", "x")


def test_a_file_never_gets_a_second_byte_order_mark() -> None:
    assert replace("\ufeffa\nb\n", "a", "\ufeffb").text == "\ufeffb\nb\n"
    assert replace("\ufeffa\na\n", "a", "\ufeffb", replace_all=True).text.startswith("\ufeffb\n")
    assert replace("\ufeffa  b\n", "a b", "\ufeffc").text == "\ufeffc\n"
    with pytest.raises(NoChange, match="byte order mark"):
        replace("\ufeffa\nb\n", "a", "\ufeffa")


def test_a_byte_order_mark_in_the_old_text_is_that_of_the_file() -> None:
    for replace_all in (False, True):
        with pytest.raises(TargetNotFound):
            replace("\ufeffa\nb\n", "\ufeffb", "c", replace_all=replace_all)
        assert replace("\ufeffa  b\na b\n", "\ufeffa b", "c", replace_all=replace_all).spans == ((1, 5),)


def test_a_mark_in_the_middle_is_text_like_any_other() -> None:
    assert replace("a\ufeffb", "\ufeffb", "c").text == "ac"


def test_an_empty_text_to_replace_is_refused_before_anything_else() -> None:
    with pytest.raises(EmptyOldString):
        replace("", "", "")


def test_equal_old_and_new_texts_are_refused_even_if_they_do_not_occur() -> None:
    with pytest.raises(NoChange):
        replace("a", "b", "b")


def test_a_refusal_is_a_value_error_with_a_remedy() -> None:
    for error in (EmptyOldString, NoChange, TargetNotFound, AmbiguousTarget):
        assert issubclass(error, ValueError)
    with pytest.raises(ValueError, match="copy the text exactly"):
        replace("alpha", "beta", "gamma")


@given(texts, needles, texts)
def test_replacing_all_is_what_str_replace_does(text: str, old: str, new: str) -> None:
    expected = {text.replace(old, new)}
    if text.startswith("\ufeff"):
        # The file's byte order mark is neither removed nor doubled; a text without one is replaced as it is.
        (plainly,) = expected
        expected |= {"\ufeff" + plainly, plainly.removeprefix("\ufeff")}
    assume(old in text)
    try:
        done = replace(text, old, new, replace_all=True)
    except NoChange:
        assert old == new or text in expected
        return
    assert done.text in expected
    assert done.text.startswith("\ufeff") or not text.startswith("\ufeff")
    assert done.count == text.count(old) == len(done.spans)


@given(texts, needles, texts)
def test_the_pieces_alone_produce_the_new_text(text: str, old: str, new: str) -> None:
    try:
        done = replace(text, old, new, replace_all=True)
    except EditError:
        return
    assert _pieced(text, done) == done.text


@given(texts, needles)
def test_text_that_occurs_once_is_replaced_and_text_that_occurs_more_often_is_refused(text: str, old: str) -> None:
    count = text.count(old)
    assume(count)
    if count == 1:
        assert replace(text, old, "X").count == 1
    else:
        with pytest.raises(AmbiguousTarget) as caught:
            replace(text, old, "X")
        assert len(caught.value.lines) == count == caught.value.matches


def test_millions_of_matches_and_near_matches_take_linear_time() -> None:
    """Quadratic work here would take hours."""
    text = "a" * 4_000_000

    with pytest.raises(AmbiguousTarget) as caught:
        replace(text, "a", "b")
    assert caught.value.matches == 4_000_000
    assert replace(text, "aa", "b", replace_all=True).text == "b" * 2_000_000
    for near in ("a" * 100_000 + "b", "b" + "a" * 100_000, "a" * 50_000 + "b" + "a" * 50_000):
        with pytest.raises(TargetNotFound):
            replace(text, near, "b")


def _pieced(text: str, done: Replacement) -> str:
    parts: list[str] = []
    end = 0
    for start, stop, inserted in done.pieces:
        parts += (text[end:start], inserted)
        end = stop
    return "".join(parts) + text[end:]
