"""The equivalence of texts that is used if there is no exact match, and the search for equivalent texts.

There is one equivalence, not a ladder of guesses. All runs of white space without a line break are equal, and so are
all runs with one; a line break equals a blank only inside brackets, and never after a comment. Quotes and dashes equal
their typographic forms, and text is compared in NFC. Letters and their case are never folded. A match begins and ends
at word boundaries. Both texts are folded to one form and searched there by `str.find`, which takes linear time for any
text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, cached_property

from weakfs.class_decorators import frozen
from weakfs.editing.unicode_forms import composed, is_mark, may_change, unusual

BYTE_ORDER_MARK = "\ufeff"

TYPOGRAPHIC = {
    '"': "\u201c\u201d\u201e\u201f",
    "'": "\u2018\u2019\u201a\u201b\u02bc",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
}

GAPS = " \n"
GAP = re.compile("[ \n]")
# Strings that may begin a comment. The text after them on a line is not code.
COMMENT = re.compile(r"#|//|/\*|--|<!--|(?:^|\s);|^[*%]|\s(?:%+|')\s|\bREM\b", re.MULTILINE)
# The maximum number of characters compared in failed candidates: a tenth of a second of work.
MOST_WORK = 1 << 28
GAP_WORK = 64
CLOSING = {")": "(", "]": "[", "}": "{"}
STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
OPERATORS = frozenset("=<>!&|+*/%^~-")
# Scripts that write words without white space between them, so that word boundaries cannot be detected.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

# These surround a letter with marks in folded text, so that neither the letter nor a part of its marks is found there.
# UTF-8 cannot encode them, so no file contains them.
MARKED, MARKED_END = "\udffe", "\udfff"
WORD_SIGNS = frozenset({"_", MARKED, MARKED_END})

# A text is folded in chunks of this many characters; the original offset of a match is computed only in its chunks.
CHUNK = 1 << 16
# Characters that neither combine with the one before them nor continue the same run of white space.
FREE = re.compile("[!-~]")
RUN = re.compile(r"\s{2,}")


def folded(text: str) -> str:
    """Return the form that all equivalent texts share: a run of white space becomes a blank or `\\n`. O(text)."""
    if not text:
        return text
    text = plain(composed(text, MARKED, MARKED_END))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    rows = text.split("\n")
    words = [" ".join(row.split()) for row in rows]
    body = "\n".join([row for row in words if row])
    if not body:
        return "\n" if len(rows) > 1 else " "
    before = "\n" if not words[0] else " " if rows[0][0].isspace() else ""
    after = "\n" if not words[-1] else " " if rows[-1][-1].isspace() else ""
    return before + body + after


def plain(text: str) -> str:
    """Return `text` with typographic quotes and dashes in their ASCII forms."""
    if not text.isascii():
        for ascii_form, others in TYPOGRAPHIC.items():
            for char in others:
                text = text.replace(char, ascii_form)
    return text


class TooRepetitive(Exception):
    """There are too many near matches to examine each one."""


def is_inside_word(text: str, at: int) -> bool:
    """Return whether an offset is inside one word, number or operator."""
    before, after = text[at - 1 : at], text[at : at + 1]
    if before in OPERATORS and after in OPERATORS:
        return True
    if _is_of_word(after):
        # The fractional part of a number, and words with a hyphen.
        if before == "." and after.isdigit() and text[at - 2 : at - 1].isdigit():
            return True
        if before == "-" and after.isalpha() and _is_of_word(text[at - 2 : at - 1]):
            return True
    if not _is_of_word(before):
        return False
    if after == "." and before.isdigit() and text[at + 1 : at + 2].isdigit():
        return True
    if after == "-" and before.isalnum() and text[at + 1 : at + 2].isalpha():
        return True
    return _is_of_word(after) and not (UNSPACED.match(before) and UNSPACED.match(after))


class _CommentSearch:
    """A search for comments in folded text, from gap to gap."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._read = start
        self._found = False

    def reaches(self, gap: int) -> bool:
        """Return whether a gap, which must follow the previous ones, is after a comment on its line."""
        if self._text[self._read] == "\n":
            self._found = False
        self._found = self._found or COMMENT.search(self._text, self._read, gap) is not None
        self._read = gap
        return self._found


def _is_of_word(char: str) -> bool:
    return char.isalnum() or (char != "" and char in WORD_SIGNS)


def wraps_in(core: str) -> frozenset[int]:
    """Return the positions of white space in folded text where a line break is equivalent to a blank. O(text).

    They are inside brackets. Between braces, only those count where the line break is next to a comma, a semicolon or
    a bracket: elsewhere it may end a statement.
    """
    if not any(bracket in core for bracket in CLOSING.values()) or not GAP.search(core):
        return frozenset()
    # A bracket in a string does not count, but what looks like a string might not be one: both readings must agree.
    plainly = _inside(core)
    return plainly & _inside(STRING.sub(lambda string: "_" * len(string[0]), core))


def _inside(core: str) -> frozenset[int]:
    found: set[int] = set()
    opened: list[str] = []
    for at, char in enumerate(core):
        if char in "([{":
            opened.append(char)
        elif char in CLOSING:
            if opened and opened[-1] == CLOSING[char]:
                opened.pop()
            else:
                opened.clear()
        elif char in GAPS and opened and (opened[-1] != "{" or core[at - 1] in ",;{([" or core[at + 1] in "})]"):
            found.add(at)
    return frozenset(found)


@frozen
class Needle:
    """The text to search for, folded and without outer white space; records only whether there was any.

    `wraps` are the positions of white space in it where a line break and a blank are interchangeable.
    """

    core: str
    after_gap: bool
    before_gap: bool
    wraps: frozenset[int]

    @classmethod
    def of(cls, text: str) -> Needle:
        """Fold a text to search for; its `core` is empty if it is only white space."""
        form = folded(text)
        core = form.strip(GAPS)
        return cls(core, form[:1].isspace(), form[-1:].isspace(), wraps_in(core))


class Haystack:
    """A text that can be searched for equivalent texts.

    Offsets in the folded text are internal: `find_all` yields offsets that `original` accepts, and each of them may
    be increased by a number of characters of the needle's core.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # A byte order mark is not part of the first line.
        self._skipped = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
        self._starts: list[int] = []
        self._folded_starts: list[int] = []
        # The start and the end of a text count as gaps.
        parts = ["\n"]
        at = 1
        for start, stop in _chunks(text, self._skipped):
            form = folded(text[start:stop])
            self._starts.append(start)
            self._folded_starts.append(at)
            parts.append(form)
            at += len(form)
        parts.append("\n")
        self._folded = "".join(parts)
        # The last chunk examined, with the ends of everything in it whose length changes.
        self._known: tuple[int, list[int], list[int]] = (-1, [], [])

    @cached_property
    def _unbroken(self) -> str:
        """The folded text without its line breaks."""
        return self._folded.replace("\n", " ")

    def find_all(self, needle: Needle, after: int = 0, stop: int | None = None) -> Iterator[int]:
        """Yield the non-overlapping positions of a needle's core between `after` and `stop`. O(text + needle).

        Raises `TooRepetitive` if there are very many near matches, as in a file of one letter.
        """
        core = needle.core
        if not core:
            return
        wanted, among = (core.replace("\n", " "), self._unbroken) if needle.wraps else (core, self._folded)
        work = 0
        at = among.find(wanted, after, stop)
        while at >= 0:
            if self._fits(needle, at):
                yield at
                # A gap between two matches serves both.
                at = among.find(wanted, at + len(core), stop)
                continue
            # Examining each gap of a candidate costs more than comparing it.
            work += len(core) * (GAP_WORK if needle.wraps else 1)
            if work > MOST_WORK:
                raise TooRepetitive
            at = among.find(wanted, at + 1, stop)

    def _fits(self, needle: Needle, at: int) -> bool:
        """Return whether a candidate, which matches apart from the kinds of white space, is a match."""
        folded, stop = self._folded, at + len(needle.core)
        before = folded[at - 1]
        # A letter alone does not match a letter followed by marks.
        if before == MARKED or (before not in GAPS and (needle.after_gap or is_inside_word(folded, at))):
            return False
        if folded[stop] not in GAPS and (needle.before_gap or is_inside_word(folded, stop)):
            return False
        if not needle.wraps or folded.startswith(needle.core, at):
            return True
        return self._wraps_alike(needle, at)

    def _wraps_alike(self, needle: Needle, at: int) -> bool:
        """Return whether a candidate differs from the needle only in insignificant line breaks. O(needle)."""
        core, folded = needle.core, self._folded
        there, here = _CommentSearch(folded, folded.rfind("\n", 0, at) + 1), _CommentSearch(core, 0)
        for gap in GAP.finditer(core):
            place = gap.start()
            in_comment = there.reaches(at + place), here.reaches(place)
            if core[place] != folded[at + place] and (place not in needle.wraps or any(in_comment)):
                return False
        return True

    def count(self, needle: Needle) -> int:
        """Return the number of matches that `find_all` yields."""
        return sum(1 for _ in self.find_all(needle))

    def overlapping(self, needle: Needle, place: int) -> int | None:
        """Return the first match of a needle that begins inside the one at `place`. O(needle)."""
        return next(self.find_all(needle, place + 1, place + 2 * len(needle.core) - 1), None)

    def first(self, needle: Needle, after: int = 0) -> int | None:
        """Return the first match of `find_all`, at `after` or later."""
        return next(self.find_all(needle, after), None)

    def original(self, offset: int) -> int:
        """Return the offset in the text for an offset in the folded text.

        The offset must be before or after whole characters, not inside white space or a letter with its marks. This is
        fast for ascending offsets.
        """
        chunk = bisect_right(self._folded_starts, offset) - 1
        if self._known[0] != chunk:
            self._known = (chunk, *self._changes(chunk))
        _, folded_ends, ends = self._known
        last = bisect_right(folded_ends, offset) - 1
        return ends[last] + offset - folded_ends[last]

    def _changes(self, chunk: int) -> tuple[list[int], list[int]]:
        """Return the ends of everything in a chunk whose folded length differs, in the folded text and in the text."""
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
    """Yield everything whose folded length differs: its start, its stop and that length."""
    runs = _run_or_unusual() if may_change(text) else RUN
    for found in runs.finditer(text):
        start, stop = found.span()
        if text[start].isspace():
            yield start, stop, 1
            continue
        if start and is_mark(text[start]) and not text[start - 1].isspace():
            start -= 1
        yield start, stop, len(composed(text[start:stop], MARKED, MARKED_END))
