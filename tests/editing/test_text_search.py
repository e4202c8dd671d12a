"""Searching for lines in the text itself gives the same results as an index of all lines."""

from __future__ import annotations

from random import Random

import pytest

from weakfs import InMemoryFilesystem, Session
from weakfs.editing import apply_patch
from weakfs.editing.patches.document import MOST_TEXT_SEARCHES, Document
from weakfs.editing.patches.matching.equivalences import FOLDS
from weakfs.editing.patches.matching.line_index import LineIndex
from weakfs.editing.patches.matching.text_search import TextSearch

LINES = ("", "a", "a\r", "aa", "b", "\r", "b\r\r", "\u2028", "a\u0085b")


@pytest.mark.parametrize("seed", range(40))
def test_a_search_of_the_text_finds_what_the_index_of_lines_finds(seed: int) -> None:
    random = Random(seed)
    lines = random.choices(LINES[: random.randint(1, len(LINES))], k=random.randint(0, 30))
    text, index = TextSearch(lines), LineIndex(lines, FOLDS[0])

    for _ in range(60):
        wanted = random.choices(LINES, k=random.randint(1, 3))
        if lines and random.random() < 0.7:
            at = random.randrange(len(lines))
            wanted = lines[at : at + random.randint(1, 4)]
        start = random.randint(0, len(lines) + 2)
        assert text.find(wanted, start) == index.find(wanted, start)
        assert text.is_at(wanted, start - 1) == index.is_at(wanted, start - 1)
        if text.is_at(wanted, start):
            assert text.occurs_again(wanted, start) == index.occurs_again(wanted, start)


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "a\n\nb", "\n\n", "a\nb\na\nb\n", "a\u2028\n\x85"])
def test_a_search_of_a_text_finds_what_a_search_of_its_lines_finds(text: str) -> None:
    lines = text.removesuffix("\n").split("\n") if text else []
    from_text, from_lines = TextSearch(lines, text), TextSearch(lines)

    for first in range(len(lines)):
        for last in range(first + 1, len(lines) + 1):
            wanted = lines[first:last]
            for start in range(len(lines) + 1):
                at = from_text.find(wanted, start)
                assert at == from_lines.find(wanted, start)
                if at >= 0:
                    again = any(lines[later : later + len(wanted)] == wanted for later in range(at + 1, len(lines)))
                    assert from_text.occurs_again(wanted, at) == again
                    assert from_text.occurs_again([*wanted], at) == again


def test_matches_are_the_same_when_the_search_switches_from_text_to_index() -> None:
    many = MOST_TEXT_SEARCHES * 2
    document = Document("one\ntwo\n" * many)

    assert list(document.places(["two"], 0, 1)) == list(range(1, 2 * many, 2))
    assert list(document.places(["two"], 0, 1, 4)) == [1, 3]


def test_a_document_finds_lines_in_its_new_text_after_a_change() -> None:
    document = Document("one\ntwo\nthree\n")
    assert document.find(["two"], 0, 0) == 1

    document.replace([(0, 1, ["new", "lines"])])

    assert document.find(["two"], 0, 0) == 2
    assert document.find(["one"], 0, 0) == -1
    assert document.find(["lines", "two", "three"], 0, 0) == 1


def test_a_patch_with_more_hunks_than_text_searches_is_applied_completely() -> None:
    count = MOST_TEXT_SEARCHES * 2
    fs = InMemoryFilesystem(Session())
    fs.write("/a.txt", "".join(f"head {number}\r\nline\r\n" for number in range(count)))
    hunks = "".join(f"@@\n head {number}\n-line\n+new {number}\n" for number in range(count))

    report = apply_patch(fs, f"*** Begin Patch\n*** Update File: /a.txt\n{hunks}*** End Patch\n")

    assert [fit.fit for fit in report.hunks] == ["exact"] * count
    assert fs.read("/a.txt").content == "".join(f"head {number}\r\nnew {number}\r\n" for number in range(count))


def test_lines_with_carriage_returns_follow_an_added_one() -> None:
    document = Document("one\ntwo\n")
    assert not document.has_returns

    document.replace([(1, 1, ["new\r"])])

    assert document.has_returns
