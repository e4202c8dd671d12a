"""Which texts count as the same where there is no exact match, and where one of them is in another.

There is one equivalence, not a ladder of guesses. Runs of white space are equal, line breaks included; quotes and
dashes equal their typographic forms; text is compared in NFC. Letters and their case never fold. Both texts are
folded to one form and searched there by `str.find`, which takes linear time whatever is in them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from attrs import frozen

from weakfs.editing.combining import composed, is_mark, may_change, unusual

BYTE_ORDER_MARK = "\ufeff"

TYPOGRAPHIC = {
    '"': "\u201c\u201d\u201e\u201f",
    "'": "\u2018\u2019\u201a\u201b\u02bc",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
}

# Stand before and after a letter with marks in folded text, so that neither the letter nor a part of its marks is
# found there. UTF-8 has no form for them, so that no file holds them.
MARKED, MARKED_END = "\udffe", "\udfff"

# A text is folded in chunks of so many characters; where a match was is only worked out in the chunks that it is in.
CHUNK = 1 << 16
# Whatever stands before one of these, it neither joins it nor belongs to the same run of white space.
FREE = re.compile("[!-~]")
RUN = re.compile(r"\s{2,}")


def folded(text: str) -> str:
    """Give the form that all equivalent texts share, a run of white space as one space. O(text)."""
    if not text:
        return text
    text = plain(composed(text, MARKED, MARKED_END))
    before = " " if text[0].isspace() else ""
    words = " ".join(text.split())
    return f"{before}{words} " if words and text[-1].isspace() else before + words


def plain(text: str) -> str:
    """Give `text` with typographic quotes and dashes in their ASCII forms."""
    if not text.isascii():
        for ascii_form, others in TYPOGRAPHIC.items():
            for char in others:
                text = text.replace(char, ascii_form)
    return text


@frozen
class Needle:
    """What is searched for: folded, without its outer white space, of which only is asked whether there was some."""

    core: str
    after_gap: bool
    before_gap: bool

    @classmethod
    def of(cls, text: str) -> Needle:
        """Fold a text to search for; its `core` is empty if it is only white space."""
        form = folded(text)
        return cls(form.strip(" "), form.startswith(" "), form.endswith(" "))

    @property
    def pattern(self) -> str:
        return " " * self.after_gap + self.core + " " * self.before_gap


class Haystack:
    """A text that can be searched for equivalent texts.

    Offsets in the folded text are its own affair: `find_all` gives offsets that `original` takes, and each of
    them may be moved by a number of characters of the needle's core.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # A byte order mark is no part of the first line.
        self._skipped = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
        self._starts: list[int] = []
        self._folded_starts: list[int] = []
        # The start and the end of a text count as gaps.
        parts = [" "]
        at = 1
        for start, stop in _chunks(text, self._skipped):
            form = folded(text[start:stop])
            self._starts.append(start)
            self._folded_starts.append(at)
            parts.append(form)
            at += len(form)
        parts.append(" ")
        self._folded = "".join(parts)
        # The chunk that was looked into last, with the ends of what changes its length in it.
        self._known: tuple[int, list[int], list[int]] = (-1, [], [])

    def find_all(self, needle: Needle, after: int = 0) -> Iterator[int]:
        """Go through the places of a needle's core from `after` on, not overlapping. O(text + needle)."""
        if not needle.core:
            return
        pattern, gap = needle.pattern, int(needle.after_gap)
        start = self._folded.find(pattern, after)
        while start >= 0:
            # Only a letter alone can be found at one with marks: any other needle has another character where they are.
            if len(pattern) > 1 or self._folded[start - 1] != MARKED:
                yield start + gap
            # A gap between two matches serves both.
            start = self._folded.find(pattern, start + gap + len(needle.core))

    def count(self, needle: Needle) -> int:
        """Count what `find_all` gives."""
        if not needle.core:
            return 0
        if needle.after_gap and needle.before_gap:
            return sum(1 for _ in self.find_all(needle))
        count = self._folded.count(needle.pattern)
        return count - self._folded.count(MARKED + needle.core) if len(needle.pattern) == 1 else count

    def overlapping(self, needle: Needle, place: int) -> int | None:
        """Give the first place of a needle that begins inside the one at `place`. O(text)."""
        start = self._folded.find(needle.pattern, place + 1 - needle.after_gap)
        at = start + needle.after_gap
        return at if start >= 0 and at < place + len(needle.core) else None

    def first(self, needle: Needle, after: int = 0) -> int | None:
        """Give the first of `find_all`, at `after` or later."""
        return next(self.find_all(needle, after), None)

    def original(self, offset: int) -> int:
        """Give the offset in the text that an offset in the folded text stands for.

        The offset is one before or after whole characters, not inside white space or a letter with its marks.
        Fast for offsets in rising order.
        """
        chunk = bisect_right(self._folded_starts, offset) - 1
        if self._known[0] != chunk:
            self._known = (chunk, *self._changes(chunk))
        _, folded_ends, ends = self._known
        last = bisect_right(folded_ends, offset) - 1
        return ends[last] + offset - folded_ends[last]

    def _changes(self, chunk: int) -> tuple[list[int], list[int]]:
        """Give the ends of everything in a chunk whose folded form has another length, there and in the text."""
        start = self._starts[chunk]
        stop = self._starts[chunk + 1] if chunk + 1 < len(self._starts) else len(self.text)
        folded_ends, ends = [self._folded_starts[chunk]], [start]
        for first, last, length in _changing(self.text[start:stop]):
            folded_ends.append(folded_ends[-1] + start + first - ends[-1] + length)
            ends.append(start + last)
        return folded_ends, ends


def _chunks(text: str, start: int) -> Iterator[tuple[int, int]]:
    while start < len(text):
        cut = FREE.search(text, start + CHUNK)
        stop = cut.start() if cut else len(text)
        yield start, stop
        start = stop


@cache
def _run_or_unusual() -> re.Pattern[str]:
    return re.compile(rf"\s{{2,}}|{unusual().pattern}")


def _changing(text: str) -> Iterator[tuple[int, int, int]]:
    """Go through what folds to another length: its start, its stop and that length."""
    runs = _run_or_unusual() if may_change(text) else RUN
    for found in runs.finditer(text):
        start, stop = found.span()
        if text[start].isspace():
            yield start, stop, 1
            continue
        if start and is_mark(text[start]) and not text[start - 1].isspace():
            start -= 1
        yield start, stop, len(composed(text[start:stop], MARKED, MARKED_END))
