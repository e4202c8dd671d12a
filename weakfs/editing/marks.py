"""Characters that join the one before them, and texts in one Unicode form (NFC) whatever their length."""

from __future__ import annotations

import re
from functools import cache
from unicodedata import category, normalize

# Where marks and characters with another canonical form are; between lie ideographs and syllables, which are neither.
LOOKED_AT = (
    range(0x0300, 0x3400),
    range(0xA000, 0xAC00),
    range(0xD7A4, 0xD800),
    range(0xF900, 0x20000),
    range(0x2F800, 0x2FA20),
    range(0xE0000, 0xE0200),
)
# Vowels and finals of Hangul, which join the letter before them to a syllable, and the two joiners.
JOINING = "\u1161-\u1175\u11a8-\u11c2\u200c\u200d"

# CPython sorts the marks behind a letter by insertion: a million of them would take hours. A grapheme joiner after
# so many, as the Stream-Safe Text Format (UAX 15, section 13) puts one after 30, keeps that linear.
MOST_MARKS = 64
GRAPHEME_JOINER = "\u034f"


@cache
def _marks() -> str:
    """Give the marks as what stands between the brackets of a regular expression."""
    return "".join(chr(code) for codes in LOOKED_AT for code in codes if category(chr(code))[0] == "M") + JOINING


@cache
def special() -> re.Pattern[str]:
    """Match a character that has another canonical form or is a mark, with the marks that follow it."""
    others = (chr(code) for codes in LOOKED_AT for code in codes)
    changed = "".join(char for char in others if normalize("NFC", char) != char)
    return re.compile(f"[{_marks()}{changed}][{_marks()}]*")


@cache
def mark() -> re.Pattern[str]:
    """Match a character that joins the one before it."""
    return re.compile(f"[{_marks()}]")


@cache
def _sequence() -> re.Pattern[str]:
    """Match marks together with the character that they join; white space carries none."""
    return re.compile(rf"[^\s{_marks()}]?[{_marks()}]+")


@cache
def _too_many() -> re.Pattern[str]:
    return re.compile(f"[{_marks()}]{{{MOST_MARKS}}}")


def composed(text: str, before: str) -> str:
    """Give `text` in NFC, with `before` put in front of every letter that still carries marks then.

    So a letter without marks is no part of one with them, as texts are searched. O(text).
    """
    if text.isascii() or special().search(text) is None:
        return text
    text = normalize("NFC", _too_many().sub(rf"\g<0>{GRAPHEME_JOINER}", text))
    return _sequence().sub(rf"{before}\g<0>", text)
