"""The stretch of a text that is most like another: only ever told of, never edited.

The work is bounded: lines are compared by a loose form that the whole text is brought to at once, and where none
is the same, a limited number of lines that share a word with the other text are compared more closely.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise
from unicodedata import category

from attrs import frozen

from weakfs.editing.normalization import folded, plain

WORD = re.compile(r"\w{3,}")
MOST_LINES = 1000
MOST_HITS = 100_000
MOST_WORDS = 12
MOST_OF_A_WORD = 100
# Where not even a word is the same, all lines are compared with one, in texts of at most so many characters.
SMALL = 100_000
MOST_COMPARED = 300
ENOUGH = 0.5


@frozen
class Region:
    """Lines of a text, counted from 0, `stop` not included."""

    start: int
    stop: int


def is_invisible(char: str) -> bool:
    """Tell whether nothing can be seen of a character: format and control characters, private use, unassigned."""
    return (category(char) in ("Cf", "Co", "Cn", "Cc") and not char.isspace()) or "\ufe00" <= char <= "\ufe0f"


def visible(text: str) -> str:
    """Give `text` without the characters of which nothing can be seen. O(text)."""
    if text.isascii() and text.isprintable():
        return text
    gone = {ord(char): None for char in set(text) if is_invisible(char)}
    return text.translate(gone) if gone else text


def spaceless(text: str) -> str:
    """Give `text` without white space, line breaks apart. O(text)."""
    for char in {char for char in set(text) if char.isspace()} - {"\n"}:
        text = text.replace(char, "")
    return text


def unrepeated(text: str) -> str:
    """Give `text` with runs of what rules are drawn with as one such character. O(text)."""
    for char in "-=_*#~":
        while char * 2 in text:
            text = text.replace(char * 8, char).replace(char * 2, char)
    return text


def loose(text: str) -> str:
    """Give what is left of a text where letter case, white space and the like do not count; lines stay. O(text)."""
    return unrepeated(spaceless(plain(visible(text))).lower())


def nearest(text: str, old: str) -> Region | None:
    """Give the lines of `text` that are most like `old`, `None` if none are. O(text)."""
    wanted = loose(old).strip("\n").split("\n")[:MOST_LINES]
    rows = loose(text).split("\n")
    return _same_lines(rows, wanted) or _same_words(text, rows, old.strip().split("\n")[:MOST_LINES])


def _same_lines(rows: list[str], wanted: list[str]) -> Region | None:
    places: dict[str, list[int]] = {}
    for number, key in enumerate(wanted):
        if key and len(places.setdefault(key, [])) < 8:
            places[key].append(number)
    hits = [*islice(((number, key) for number, key in enumerate(rows) if key in places), MOST_HITS)]
    often = Counter(key for _, key in hits)
    votes: Counter[int] = Counter()
    for number, key in hits:
        for place in places[key]:
            votes[number - place] += max(1, 1000 * min(len(key), 40) // often[key])
    if not votes:
        return None
    best = max(votes, key=lambda shift: (votes[shift], -shift))
    slack = len(wanted) // 4 + 2
    same = [(number, place) for number, key in hits for place in places[key] if abs(number - place - best) <= slack]
    told = sum(len(key) for key in {rows[number] for number, _ in same})
    if told < 10 and told * 3 < sum(map(len, wanted)):
        return None
    (first, before), (last, place) = min(same), max(same)
    return _region(rows, first - before, last + len(wanted) - place)


def _region(rows: list[str], start: int, stop: int) -> Region:
    """Give lines as far as there are any, without blank ones around."""
    start, stop = max(0, start), min(len(rows), stop)
    while start < stop - 1 and not rows[start]:
        start += 1
    while stop > start + 1 and not rows[stop - 1]:
        stop -= 1
    return Region(start, stop)


def _same_words(text: str, rows: list[str], old: list[str]) -> Region | None:
    best, found = ENOUGH, None
    for at, place in _candidates(text, old):
        start = text.rfind("\n", max(0, at - MOST_COMPARED), at) + 1 or max(0, at - MOST_COMPARED)
        stop = text.find("\n", at, at + MOST_COMPARED)
        line = text[start : at + MOST_COMPARED if stop < 0 else stop]
        likeness = alike(line, old[place])
        if likeness > best:
            best, found = likeness, (at, place)
    if found is None:
        return None
    number = text.count("\n", 0, found[0])
    return _region(rows, number - found[1], number - found[1] + len(old))


def _candidates(text: str, old: list[str]) -> Iterator[tuple[int, int]]:
    """Go through offsets in the text that may be on the line that a line of the old text is like."""
    words = {word: place for place, line in enumerate(old) for word in WORD.findall(line[:MOST_COMPARED])}
    none = True
    for word in sorted(words, key=lambda word: (-len(word), word))[:MOST_WORDS]:
        at = text.find(word)
        for _ in range(MOST_OF_A_WORD):
            if at < 0:
                break
            none = False
            yield at, words[word]
            at = text.find(word, at + len(word))
    if none and len(text) <= SMALL:
        longest = max(range(len(old)), key=lambda place: len(old[place]))
        at = 0
        for line in islice(text.split("\n"), 2000):
            yield at, longest
            at += len(line) + 1


def alike(one: str, other: str) -> float:
    """Give how many of their pairs of neighbouring characters two lines share, from 0 to 1."""
    first, second = (Counter(pairwise(loose(line[:MOST_COMPARED]))) for line in (one, other))
    both = (first & second).total()
    return 2 * both / max(1, first.total() + second.total())


def first_difference(there: list[str], old: list[str]) -> tuple[int, str] | None:
    """Give the first line that is not the same: its place in `there`, and the line of `old`; blank lines pass."""
    wanted = iter([line for line in old if line.strip()])
    for place, line in enumerate(there):
        if not line.strip():
            continue
        other = next(wanted, None)
        if other is None:
            return None
        if folded(line).strip() != folded(other).strip():
            return place, other
    rest = next(wanted, None)
    return None if rest is None else (len(there), rest)
