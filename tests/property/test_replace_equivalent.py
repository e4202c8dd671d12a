"""Matching that is not exact, compared with a slow search that tries every part of the text."""

from __future__ import annotations

import re
from itertools import groupby
from unicodedata import category, normalize

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs.editing import (
    AmbiguousIndentation,
    AmbiguousTarget,
    EditError,
    NoChange,
    Replacement,
    TargetNotFound,
    replace,
)
from weakfs.editing.normalization import Haystack, Needle, folded, is_inside_word

QUOTES = str.maketrans({"\u2019": "'", "\u201c": '"', "\u2014": "-", "\u2212": "-"})
BLANK = " \n\t\u00a0\r\u2028"
JAMO = "\u1161\u11a8"
PLAIN = "ae-'\"x\u2019\u201c\u2014\u2212"
JOINED = "\u0301\u0327\u0344\u0338\u200d\ufe0f\u093e\u00e9\u00c5\u212b\u0229\u1100\uac00\uac01\u0958\u0915" + JAMO
small = st.text(alphabet=BLANK + PLAIN + JOINED + "\ufeff", max_size=12)
tiny = st.text(alphabet=BLANK + "ae'\u2019\u0301\u00e9", max_size=14)


def form(text: str) -> str:
    """Return the form that equivalent texts share."""
    once = normalize("NFC", text).translate(QUOTES)
    return squeezed(once)


def squeezed(text: str) -> str:
    """Return a text with each run of white space as one blank, or as a line break if it holds one."""
    out: list[str] = []
    for is_blank, run in groupby(text, str.isspace):
        chars = "".join(run)
        out.append(chars if not is_blank else "\n" if "\n" in chars or "\r" in chars else " ")
    return "".join(out)


def joins(char: str) -> bool:
    return category(char)[0] == "M" or char in JAMO or char == "\u200d"


def places(text: str, old: str) -> list[tuple[int, int]]:
    """Return every part of the text that is equivalent to the old one, from left to right, without overlaps."""
    wanted = form(old)
    core = wanted.strip(" \n")
    mark = int(text.startswith("\ufeff"))
    found: list[tuple[int, int]] = []
    start = mark
    while core and start < len(text):
        stop = next((stop for stop in range(start + 1, len(text) + 1) if fits(text, start, stop, wanted, mark)), None)
        if stop is None:
            start += 1
        else:
            found.append((start, stop))
            start = stop
    return found


def fits(text: str, start: int, stop: int, wanted: str, mark: int) -> bool:
    if text[start].isspace() or text[stop - 1].isspace() or form(text[start:stop]) != wanted.strip(" \n"):
        return False
    if splits_word(text[mark:start], text[start:]) or splits_word(text[mark:stop], text[stop:]):
        return False
    if joins(text[start]) and start > mark and not text[start - 1].isspace():
        return False
    if stop < len(text) and joins(text[stop]):
        return False
    if wanted[:1].isspace() and start > mark and not text[start - 1].isspace():
        return False
    return not wanted[-1:].isspace() or stop == len(text) or text[stop].isspace()


def splits_word(before: str, after: str) -> bool:
    """Return whether a word, perhaps with hyphens, spans the border of two texts; characters with marks are letters."""
    left, right = form(before), form(after)
    if not left or not right:
        return False
    ends, begins = is_letter(left[-1]), is_letter(right[0]) or (not right[0].isspace() and any(map(joins, right[1:2])))
    if begins and (ends or (left[-1] == "-" and right[0].isalpha() and is_letter(left[-2:-1]))):
        return True
    return not begins and right[0] == "-" and (left[-1] == "-" or (ends and right[1:2].isalpha()))


def is_letter(char: str) -> bool:
    return char.isalnum() or (char != "" and joins(char))


@settings(max_examples=share(1500))
@given(small | tiny, st.text(alphabet=BLANK + PLAIN + JOINED, min_size=1, max_size=4) | tiny)
def test_matches_are_those_that_a_slow_search_finds(text: str, old: str) -> None:
    haystack, needle = Haystack(text), Needle.of(old)

    found = [(haystack.original(at), haystack.original(at + len(needle.core))) for at in haystack.find_all(needle)]

    assert found == places(text, old)
    assert haystack.count(needle) == len(found)


@settings(max_examples=share(500))
@given(st.text(max_size=20), st.data())
def test_a_part_of_any_text_is_found_in_every_equivalent_form(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    composed, decomposed = normalize("NFC", text[start:stop]), normalize("NFD", text[start:stop])
    old = data.draw(st.sampled_from((composed, decomposed))).replace(" ", " \t")
    assume(old)

    for old_text in (old, f" {old}\n"):
        try:
            replace(text, old_text, "\ue000", replace_all=True)
        except AmbiguousIndentation:
            # The white space added before it makes its first line look indented further than in the text.
            assert old_text != old
        except TargetNotFound:
            edges = any(0 < at < len(text) and touches(text, at) for at in (start, stop))
            assert edges or not old.strip() or old_text != old


def touches(text: str, at: int) -> bool:
    """Return whether the text before and after a place may belong together."""
    if is_inside_word(folded(text[:at]) + folded(text[at:]), len(folded(text[:at]))):
        return True
    return len(normalize("NFC", text[:at]) + normalize("NFC", text[at:])) != len(normalize("NFC", text)) or (
        category(text[at])[0] == "M" or "\u1160" <= text[at] <= "\u11ff" or text[at] in "\u200c\u200d"
    )


@settings(max_examples=share(1000))
@given(small | tiny, tiny, tiny, st.booleans())
def test_only_the_match_changes(text: str, old: str, new: str, replace_all: bool) -> None:
    try:
        done = replace(text, old, new, replace_all=replace_all)
    except EditError:
        return

    parts: list[str] = []
    end = 0
    for (start, stop, inserted), span in zip(done.pieces, done.spans, strict=True):
        assert (start, stop) == span
        assert end <= start <= stop
        if done.how == "fuzzy":
            assert form(text[start:stop]).strip() == form(old.removeprefix("\ufeff")).strip()
        parts += (text[end:start], inserted)
        end = stop
    assert "".join((*parts, text[end:])) == done.text
    assert done.count == len(done.spans)
    assert done.text.startswith("\ufeff") or not text.startswith("\ufeff")


@given(small | tiny, st.text(max_size=8) | tiny, st.text(max_size=8) | tiny, st.booleans())
def test_any_replacement_is_made_or_refused(text: str, old: str, new: str, replace_all: bool) -> None:
    for content, wanted in ((text, old), (old, text), (text + "\udfff\ud800", old + "\udfff")):
        done = refused_or_done(content, wanted, new, replace_all)
        if isinstance(done, EditError):
            assert len(str(done)) < 2000
        else:
            assert done.text != content


def refused_or_done(text: str, old: str, new: str, replace_all: bool = False) -> EditError | Replacement:
    try:
        return replace(text, old, new, replace_all=replace_all)
    except EditError as error:
        return error


@given(
    st.text(alphabet="ab\n\t '\u2019", max_size=10),
    st.text(alphabet="ab\n\t '\u2019", min_size=1, max_size=4),
    st.text(alphabet="ab\n\t '\u2019", max_size=10),
)
def test_an_exact_match_always_takes_precedence(before: str, old: str, after: str) -> None:
    text = f"{before}{old}{after}"
    try:
        done = replace(text, old, "\ue000\n", replace_all=True)
    except NoChange:
        return
    assert done.how == "exact"
    assert done.text == text.replace(old, "\ue000\n")


@given(st.text(alphabet="ab\n\t ", max_size=20), st.text(alphabet="ab\n\t ", min_size=1, max_size=5))
def test_a_replacement_can_be_reversed(text: str, old: str) -> None:
    try:
        done = replace(text, old, "\ue000")
    except EditError:
        return
    ((start, stop),) = done.spans

    assert replace(done.text, "\ue000", text[start:stop]).text == text


@given(st.text(alphabet="a \n\t", min_size=8, max_size=20), st.sampled_from(("a", "a a", "a\n", " a")))
def test_all_of_several_matches_are_named(text: str, old: str) -> None:
    refused = refused_or_done(text, old, "\ue000")
    if not isinstance(refused, AmbiguousTarget):
        return
    assert refused.matches == len(refused.lines) > 1
    assert list(refused.lines) == sorted(refused.lines)
    assert all(1 <= line <= text.count("\n") + 1 for line in refused.lines)


@given(st.text(max_size=30))
def test_folding_is_idempotent(text: str) -> None:
    assert not re.search(r"\s\s", folded(text.replace("\udfff", "")))


ENDS = ("\n", "\r\n", "\r")
mixed = st.lists(st.sampled_from(("a", "b", " ", "\t", "\n", "\r", "\r\n")), max_size=8).map("".join)


@settings(max_examples=share(1500))
@given(st.lists(st.sampled_from("ab \t\n"), max_size=14), st.sampled_from(ENDS), mixed, mixed, st.booleans(), st.data())
def test_a_file_with_one_kind_of_line_ending_keeps_only_that_kind(
    chars: list[str], end: str, other: str, new: str, replace_all: bool, data: st.DataObject
) -> None:
    text = "".join(chars).replace("\n", end)
    start = data.draw(st.integers(0, len(text)))
    old = data.draw(st.sampled_from((other, text[start : data.draw(st.integers(start, len(text)))])))
    done = refused_or_done(text, old, new, replace_all)
    if isinstance(done, EditError) or end not in text:
        return

    left = done.text.replace(end, "")
    assert "\n" not in left
    assert "\r" not in left
