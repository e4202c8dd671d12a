"""The equivalences of two lines: four levels, from exact to loose; a patch's context is tried in this order."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

from weakfs.editing.patches.line_search.line_index import Fold

# Unicode's white space. Python's own `strip` also removes U+001C to U+001F.
BLANKS = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_SINGLE = "\u2018\u2019\u201a\u201b"
_DOUBLE = "\u201c\u201d\u201e\u201f"
_SPACES = "\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"

TYPOGRAPHIC = str.maketrans(
    dict.fromkeys(_DASHES, "-")
    | dict.fromkeys(_SINGLE, "'")
    | dict.fromkeys(_DOUBLE, '"')
    | dict.fromkeys(_SPACES, " ")
)

# How a hunk matched, as in a report; the index in this tuple is the level.
LEVELS = ("exact", "trailing blanks", "indentation", "typographic")
EXACT, TRAILING_BLANKS, FREEST = 0, 1, len(LEVELS) - 1


def _exact(lines: Sequence[str]) -> list[str]:
    return [line[:-1] if line[-1:] == "\r" else line for line in lines]


def _without_trailing_blanks(lines: Sequence[str]) -> list[str]:
    return [line.rstrip(BLANKS) for line in lines]


def _trimmed(lines: Sequence[str]) -> list[str]:
    return [line.strip(BLANKS) for line in lines]


def _folded(lines: Sequence[str]) -> list[str]:
    return [line.strip(BLANKS) if line.isascii() else _plain(line.strip(BLANKS)) for line in lines]


def _plain(line: str) -> str:
    return normalize("NFC", line).translate(TYPOGRAPHIC).replace("\u02bc", "'")


# Line endings are not part of a line here.
FOLDS: tuple[Fold, ...] = (_exact, _without_trailing_blanks, _trimmed, _folded)


def _as_it_is(lines: Sequence[str]) -> list[str]:
    return list(lines)


def _folded_as_codex(lines: Sequence[str]) -> list[str]:
    return [line.strip(BLANKS).translate(TYPOGRAPHIC) for line in lines]


# The passes of Codex's `seek_sequence`, which treats a carriage return as an ordinary character.
CODEX_FOLDS: tuple[Fold, ...] = (_as_it_is, _without_trailing_blanks, _trimmed, _folded_as_codex)
