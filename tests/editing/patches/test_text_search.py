"""Searching for lines in the text itself gives the same results as an index of all lines."""

from __future__ import annotations

from random import Random

import pytest

from weakfs import InMemoryFilesystem, Session
from weakfs.editing import apply_patch
from weakfs.editing.patches.document import MOST_TEXT_SEARCHES, Document
from weakfs.editing.patches.line_search.equivalences import FOLDS
from weakfs.editing.patches.line_search.line_index import LineIndex
from weakfs.editing.patches.line_search.text_search import TextSearch, text_of

LINES = ("", "a", "a\r", "aa", "b", "\r", "b\r\r", "\u2028", "a\u0085b")


@pytest.mark.parametrize("seed", range(40))
def test_a_search_of_the_text_finds_what_the_index_of_lines_finds(seed: int) -> None:
    random = Random(seed)
    lines = random.choices(LINES[: random.randint(1, len(LINES))], k=random.randint(0, 30))
    text, index = TextSearch(text_of(lines)), LineIndex(lines, FOLDS[0])

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


@pytest.mark.parametrize("text", ["", "\n", "a\n", "a\n\nb\n", "\n\n", "a\nb\na\nb\n", "a\u2028\n\x85\n"])
def test_a_search_finds_the_first_match_from_a_line_and_whether_there_is_another(text: str) -> None:
    lines = text.removesuffix("\n").split("\n") if text else []
    search = TextSearch(text)

    for first in range(len(lines)):
        for last in range(first + 1, len(lines) + 1):
            wanted = lines[first:last]
            places = [at for at in range(len(lines)) if lines[at : at + len(wanted)] == wanted]
            for start in range(len(lines) + 1):
                at = search.find(wanted, start)
                assert at == next((place for place in places if place >= start), -1)
                if at >= 0:
                    assert search.occurs_again(wanted, at) == (places[-1] > at)
                    assert search.occurs_again([*wanted], at) == (places[-1] > at)


@pytest.mark.parametrize("text", ["", "a\n", "a\n\nb\n", "\n\nab\n\xe4\n"])
def test_a_search_knows_where_each_line_begins(text: str) -> None:
    lines = text.splitlines(keepends=True)
    starts = [len("".join(lines[:at])) for at in range(len(lines) + 1)]
    search = TextSearch(text)

    for line in (*range(len(starts)), *reversed(range(len(starts)))):
        assert search.offset_of(line) == TextSearch(text).offset_of(line) == starts[line]
    assert search.offset_of(len(starts)) == -1


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


def test_a_patch_that_matches_exactly_does_not_split_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(document: Document) -> list[str]:
        raise AssertionError("the text was split")

    monkeypatch.setattr(Document, "lines", property(refuse))
    fs = InMemoryFilesystem(Session())
    fs.write("/a.txt", "one\ntwo\nthr\xe4\nfour\nfive")
    hunks = "@@\n one\n-two\n+2\n@@\n four\n+4.5\n five\n"

    report = apply_patch(fs, f"*** Begin Patch\n*** Update File: /a.txt\n{hunks}*** End Patch\n")

    assert [fit.fit for fit in report.hunks] == ["exact", "exact"]
    assert fs.read("/a.txt").content == "one\n2\nthr\xe4\nfour\n4.5\nfive"


@pytest.mark.parametrize("seed", range(40))
def test_lines_are_replaced_in_a_text_as_in_its_lines(seed: int) -> None:
    random = Random(seed)
    lines = random.choices(("", "a", "\xe4", "b" * 9, "a\r"), k=random.randint(0, 12))
    text = "\ufeff" * (seed % 2) + "\n".join(lines) + "\n" * random.randint(0, 1)
    unsplit, split = Document(text), Document(text)
    for _ in range(3):
        count = len(split.lines)
        cuts = sorted(random.choices(range(count + 1), k=4))
        runs = [
            (cuts[0], cuts[1], random.choices(("new", "\xf6"), k=random.randint(0, 2))),
            (cuts[2], cuts[3], random.choices(("new\r", "x"), k=random.randint(0, 2))),
        ]
        runs = runs[: 1 if cuts[1] == cuts[2] else 2]
        unsplit.replace([(start, stop, [*added]) for start, stop, added in runs])
        split.replace(runs)

        assert unsplit.text() == split.text()
        assert unsplit.has_returns == split.has_returns
    assert unsplit.lines == split.lines
