"""Similarity of lines, and the forms in which texts are compared for it: for messages only, never for edits."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from unicodedata import category, normalize

from weakfs.editing.normalization import plain

# The maximum number of characters of a line that are compared.
MOST_COMPARED = 300


def is_invisible(char: str) -> bool:
    """Return whether a character is invisible: format and control characters, private use, unassigned."""
    return (category(char) in ("Cf", "Co", "Cn", "Cc") and not char.isspace()) or "\ufe00" <= char <= "\ufe0f"


def visible(text: str) -> str:
    """Return `text` without its invisible characters. O(text)."""
    if text.isascii() and text.isprintable():
        return text
    gone = {ord(char): None for char in set(text) if is_invisible(char)}
    return text.translate(gone) if gone else text


def spaceless(text: str) -> str:
    """Return `text` without white space, except line breaks. O(text)."""
    for char in {char for char in set(text) if char.isspace()} - {"\n"}:
        text = text.replace(char, "")
    return text


def unrepeated(text: str) -> str:
    """Return `text` with each run of a line-drawing character, such as `---`, reduced to one character. O(text)."""
    for char in "-=_*#~":
        while char * 2 in text:
            text = text.replace(char * 8, char).replace(char * 2, char)
    return text


def untypographic(text: str) -> str:
    """Return `text` with typographic characters, such as an ellipsis or a ligature, in their plain forms. O(text)."""
    return text if text.isascii() else plain(normalize("NFKC", text))


def loose(text: str) -> str:
    """Return `text` in a form that ignores case, white space and the like, but keeps the lines. O(text)."""
    return unrepeated(spaceless(untypographic(visible(text))).lower())


def likeness(one: Counter[tuple[str, str]], other: Counter[tuple[str, str]]) -> float:
    """Return the share of pairs of adjacent characters that two lines have in common, from 0 to 1."""
    small, large = (one, other) if len(one) < len(other) else (other, one)
    both = sum(min(count, large[pair]) for pair, count in small.items() if pair in large)
    return 2 * both / max(1, one.total() + other.total())


def character_pairs(loose_line: str) -> Counter[tuple[str, str]]:
    """Count the pairs of adjacent characters in a line in its loose form."""
    return Counter(pairwise(loose_line[:MOST_COMPARED]))


def alike(one: str, other: str) -> float:
    """Return the similarity of two lines, from 0 to 1, ignoring case and white space."""
    return likeness(*(character_pairs(loose(line[:MOST_COMPARED])) for line in (one, other)))
