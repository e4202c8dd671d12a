"""Combining characters, and normalization of texts of any length to NFC."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from unicodedata import category, normalize

# The ranges of marks and characters with another canonical form; between them are ideographs and syllables, which are
# neither.
LOOKED_AT = (
    range(0x0300, 0x3400),
    range(0xA000, 0xAC00),
    range(0xD7A4, 0xD800),
    range(0xF900, 0x1F000),
    range(0x2F800, 0x2FA20),
    range(0xE0000, 0xE0200),
)
# Vowels and finals of Hangul, which combine with the preceding letter into a syllable, and the two joiners.
JOINING = {*map(chr, range(0x1161, 0x1176)), *map(chr, range(0x11A8, 0x11C3)), "\u200c", "\u200d"}
# For characters above U+FFFF, a regular expression tries the ranges of a set one by one, so the range in which all of
# them lie is tested first. It does not include pictographs.
HIGH = "\U00010000-\U0001efff\U0002f800-\U0002fa1f\U000e0000-\U000e01ff"
FIRST_HIGH = "\U00010000"

# CPython sorts the marks after a letter by insertion: a million of them would take hours. A grapheme joiner after this
# many marks keeps it linear, like the one that the Stream-Safe Text Format (UAX 15, section 13) inserts after 30.
MOST_MARKS = 64
GRAPHEME_JOINER = "\u034f"


@cache
def _marks() -> frozenset[str]:
    chars = (chr(code) for codes in LOOKED_AT for code in codes)
    return frozenset(char for char in chars if category(char)[0] == "M") | JOINING


@cache
def _unusual() -> frozenset[str]:
    """Return the marks and the characters that have another canonical form."""
    chars = (chr(code) for codes in LOOKED_AT for code in codes)
    return _marks().union(char for char in chars if normalize("NFC", char) != char)


def _split(chars: Iterable[str]) -> tuple[str, str]:
    """Return characters up to U+FFFF, and those above, each in the form for a bracketed set."""
    ordered = sorted(chars)
    low = (char for char in ordered if char < FIRST_HIGH)
    return _ranges(low), _ranges(char for char in ordered if char >= FIRST_HIGH)


def _ranges(ordered: Iterable[str]) -> str:
    runs: list[list[str]] = []
    for char in ordered:
        if runs and ord(char) == ord(runs[-1][1]) + 1:
            runs[-1][1] = char
        else:
            runs.append([char, char])
    return "".join(f"{first}-{last}" for first, last in runs)


def _marks_pattern(*, at_least: str) -> str:
    low, high = _split(_marks())
    return f"(?:[{low}]+|(?=[{HIGH}])[{high}]+){at_least}"


@cache
def _perhaps_unusual() -> re.Pattern[str]:
    return re.compile(f"[{_split(_unusual())[0]}{HIGH}]")


@cache
def unusual() -> re.Pattern[str]:
    """Match a character that has another canonical form or is a mark, with the marks that follow it."""
    low, high = _split(_unusual())
    return re.compile(f"(?:[{low}]|(?=[{HIGH}])[{high}]){_marks_pattern(at_least='*')}")


def is_mark(char: str) -> bool:
    """Return whether a character combines with the one before it."""
    return char in _marks()


def may_change(text: str) -> bool:
    """Return quickly whether `composed` might return another text."""
    return not text.isascii() and _perhaps_unusual().search(text) is not None


@cache
def _sequence() -> re.Pattern[str]:
    """Match marks together with the character that they follow; white space carries none."""
    low, high = _split(_marks())
    return re.compile(rf"(?:[^\s{low}{HIGH}]|(?=[{HIGH}])[^{high}])?{_marks_pattern(at_least='+')}")


@cache
def _too_many() -> re.Pattern[str]:
    low, high = _split(_marks())
    return re.compile(f"(?:[{low}]|(?=[{HIGH}])[{high}]){{{MOST_MARKS}}}")


def composed(text: str, before: str, after: str) -> str:
    """Return `text` in NFC, with every letter that still has marks put between `before` and `after`.

    This prevents a search from finding the letter alone, or with only some of its marks. O(text).
    """
    if not may_change(text):
        return text
    text = normalize("NFC", _too_many().sub(lambda marks: marks[0] + GRAPHEME_JOINER, text))
    return _sequence().sub(lambda sequence: f"{before}{sequence[0]}{after}", text)
