"""Grep: finding the lines of a text that match a regular expression, in time linear in the text (RE2).

A text is bytes; its lines end at `\\n` only, and each is a separate text: only a `MultilinePattern` matches across
lines, `^` and `$` are a line's edges, and a `\\r` before the `\\n` belongs to the line, so that `$` comes after it (as
in ripgrep). Bytes that are not UTF-8 are treated, and shown, as U+FFFD.

The engine runs over the whole text, or over many small texts joined together, and Python examines only the lines that
it finds. The result is the same as if each line were searched separately, which the tests verify. Texts are not stored.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Final, NamedTuple, cast

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.search.grep_syntax import explain, for_lines, quoted, rarest_part, required_text
from weakfs.search.re2_engine import Regex, check_pattern, compile_regex, refusal
from weakfs.session.interruption import check_interrupted

__all__ = ["Hit", "LinePattern", "MultilinePattern", "compile_multiline", "compile_pattern", "is_binary"]

BINARY_PREFIX: Final = 8 * 1024
# In texts that are searched together, the maximum number of lines examined only because they contain part of the
# pattern. If there are more, that part is common, and the rest is searched for the whole pattern.
MOST_SCOUTED: Final = 4
# A longer text is searched in parts that end at line endings, so that a call can be interrupted between them.
PART: Final = 1024 * 1024
VALIDATED_AT_ONCE: Final = 1024 * 1024
# A match of several lines may examine all text after it, so many such matches in one text take quadratic time.
MOST_MULTILINE: Final = 1_000
REPLACEMENT: Final = "\ufffd"


class Hit(NamedTuple):
    """One matching line, without its `\\n`.

    `line_number` counts from 1; `start` and `end` are the first match's offsets in `line`, in characters. For a match
    of several lines, `line` is all of them and `line_number` is the number of the first.
    """

    line_number: int
    line: str
    start: int
    end: int


# The offset of a line in the joined texts, the line, and the first match's offsets in it, in bytes.
_Line = tuple[int, bytes, int, int]


def is_binary(data: bytes) -> bool:
    """Return whether `data` counts as binary, that is, has a NUL in its first 8 KiB."""
    return data.find(b"\0", 0, BINARY_PREFIX) >= 0


@frozen(eq=False)
class LinePattern:
    """A compiled expression. It is immutable, and safe to share between threads."""

    pattern: str
    case_insensitive: bool
    _regex: Regex = field(repr=False)
    # Finds a text that every match contains, faster than the full expression would; None if no such text is known.
    _scout: Regex | None = field(repr=False)

    def search(self, data: bytes, *, limit: int | None = None) -> list[Hit]:
        """Return the matching lines in order, at most `limit` of them.

        An empty text has no lines; `a\\n` has one. Does not check whether a text is binary.
        """
        return [hit for _, hit in islice(self.search_together([data], data), limit)]

    def search_together(self, texts: Sequence[bytes], joined: bytes) -> Iterator[tuple[int, Hit]]:
        """Return an iterator of the matching lines of many texts in order, each with its text's index.

        `joined` is the texts joined with `\\n`, so that each line of a text is a line of `joined`, and one call of the
        engine searches many lines. A single long text is searched in parts.
        """
        if not texts:
            return iter(())
        if len(texts) == 1 and len(joined) > PART:
            return self._in_parts(joined)
        return self._at_once(texts, joined)

    def _in_parts(self, text: bytes) -> Iterator[tuple[int, Hit]]:
        """Search a long text in parts; the result is the same, because no match spans lines."""
        start = lines = 0
        while start < len(text):
            check_interrupted()
            end = text.find(b"\n", start + PART - 1)
            stop = len(text) if end < 0 else end + 1
            part = text[start:stop]
            for index, hit in self._at_once([part], part):
                yield index, hit._replace(line_number=lines + hit.line_number)
            lines += part.count(b"\n")
            start = stop

    def _at_once(self, texts: Sequence[bytes], joined: bytes) -> Iterator[tuple[int, Hit]]:
        lines, position = self._scouted(joined)
        if position is None:
            return _placed(texts, joined, lines)
        valid = _valid_utf8(joined)
        if valid is not joined:
            texts, joined = [_valid_utf8(data) for data in texts], valid
            lines, position = [], 0
        return _placed(texts, joined, chain(lines, self._matching(joined, position)))

    def _scouted(self, joined: bytes) -> tuple[list[_Line], int | None]:
        """Return matching lines that the scout found, and the position to continue at without it; `None` at the end."""
        lines: list[_Line] = []
        position = 0
        for _ in range(MOST_SCOUTED if self._scout is not None else 0):
            match = cast(Regex, self._scout).search(joined, position, len(joined))
            if match is None:
                return lines, None
            line_start, line_end = _edges(joined, position, *match.span())
            line = _valid_utf8(joined[line_start:line_end])
            span = self._find(line, 0, len(line))
            if span is not None:
                lines.append((line_start, line, *span))
            position = line_end + 1
        return lines, position

    def _matching(self, joined: bytes, position: int) -> Iterator[_Line]:
        """Yield the matching lines from `position`, which must be the start of a line, onwards."""
        while position <= len(joined) and (span := self._find(joined, position, len(joined))) is not None:
            line_start, line_end = _edges(joined, position, *span)
            yield line_start, joined[line_start:line_end], span[0] - line_start, span[1] - line_start
            position = line_end + 1

    def _find(self, data: bytes, start: int, end: int) -> tuple[int, int] | None:
        match = self._regex.search(data, start, end)
        while match is not None:
            first, last = match.span()
            if first < last or first == end or not 0x80 <= data[first] < 0xC0:
                return first, last
            # RE2 finds `\B` between the bytes of one character; a line consists of characters.
            match = self._regex.search(data, first + 1, end)
        return None


@frozen(eq=False)
class MultilinePattern:
    """A compiled expression whose matches may span lines. It is immutable, and safe to share between threads."""

    pattern: str
    case_insensitive: bool
    _regex: Regex = field(repr=False)

    def search_together(self, texts: Sequence[bytes], joined: bytes) -> Iterator[tuple[int, Hit]]:
        """Yield the matches of many texts in order, each with its text's index.

        A line is part of at most one match, and a text has at most `MOST_MULTILINE` matches.
        """
        for index, data in enumerate(texts):
            for hit in islice(self._matching(_valid_utf8(data)), MOST_MULTILINE):
                yield index, hit

    def _matching(self, data: bytes) -> Iterator[Hit]:
        position, number = 0, 1
        while position < len(data):
            match = self._regex.search(data, position, len(data))
            if match is None or match.span()[0] == len(data):
                return
            start, end = match.span()
            # A match that ends with a line break does not extend into the next line.
            line_start, line_end = _edges(data, position, start, max(start, end - 1))
            number += data.count(b"\n", position, line_start)
            yield _hit(number, data[line_start:line_end], start - line_start, min(end, line_end) - line_start)
            number += data.count(b"\n", line_start, line_end + 1)
            position = line_end + 1


def _edges(joined: bytes, position: int, start: int, end: int) -> tuple[int, int]:
    """Return where the line of a match starts and ends; `position` is the start of that line or of an earlier one."""
    line_end = joined.find(b"\n", end)
    return joined.rfind(b"\n", position, start) + 1 or position, line_end if line_end >= 0 else len(joined)


def _placed(texts: Sequence[bytes], joined: bytes, lines: Iterable[_Line]) -> Iterator[tuple[int, Hit]]:
    """Yield the text index and hit for each line of the joined texts; skip lines that belong to no text."""
    index = counted = 0
    number, end = 1, len(texts[0])
    for line_start, line, match_start, match_end in lines:
        while line_start > end:
            index, number = index + 1, 1
            counted = end + 1
            end = counted + len(texts[index])
        # After a text's last `\n`, and in an empty text, there is no line.
        if line_start < end:
            number += joined.count(b"\n", counted, line_start)
            counted = line_start
            yield index, _hit(number, line, match_start, match_end)


def _hit(number: int, line: bytes, start: int, end: int) -> Hit:
    if line.isascii():
        return Hit(number, line.decode("ascii"), start, end)
    before = len(line[:start].decode())
    return Hit(number, line.decode(), before, before + len(line[start:end].decode()))


def _valid_utf8(data: bytes) -> bytes:
    """Return `data`, with U+FFFD in place of bytes that are not UTF-8; line breaks are unchanged."""
    if data.isascii():
        return data
    view = memoryview(data)
    position = 0
    try:
        while position < len(data):
            part = view[position : position + VALIDATED_AT_ONCE]
            is_last = position + VALIDATED_AT_ONCE >= len(data)
            position += codecs.utf_8_decode(part, "strict", is_last)[1]
    except UnicodeDecodeError:
        return data.decode(errors="replace").encode()
    return data


@lru_cache(maxsize=128)
def compile_pattern(pattern: str, *, case_insensitive: bool = False) -> LinePattern:
    """Return the compiled `pattern`; the same object for the same arguments.

    The syntax is RE2's: `\\w`, `\\d`, `\\s` and `\\b` are ASCII; `\\pL` and the like, and case folding, are
    Unicode. An empty pattern matches every line.

    Raises `ValueError`, with what to write instead, for lookaround, backreferences and possessive or atomic
    groups, for a line break (no line contains one), for a pattern whose program is too large, and for any other
    pattern that RE2 refuses.
    """
    check_pattern(pattern)
    reason = explain(pattern)
    if reason is not None:
        raise refusal(pattern, reason)
    # RE2 first compiles the pattern as written, so that its messages refer to that.
    compile_regex(pattern, pattern, case_insensitive=case_insensitive)
    regex = compile_regex(for_lines(pattern), pattern, case_insensitive=case_insensitive)
    needle = "" if case_insensitive else rarest_part(required_text(pattern))
    # U+FFFD may stand for any bytes that are not UTF-8.
    if not needle or REPLACEMENT in needle:
        return LinePattern(pattern, case_insensitive, regex, None)
    scout = compile_regex(quoted(needle), pattern, case_insensitive=False)
    return LinePattern(pattern, case_insensitive, regex, scout)


@lru_cache(maxsize=128)
def compile_multiline(pattern: str, *, case_insensitive: bool = False) -> MultilinePattern:
    """Return `pattern` compiled so that its matches may span lines: `.` matches a line break too.

    `^` and `$` are the edges of every line. The syntax and the errors are those of `compile_pattern`.
    """
    check_pattern(pattern)
    reason = explain(pattern, multiline=True)
    if reason is not None:
        raise refusal(pattern, reason)
    compile_regex(pattern, pattern, case_insensitive=case_insensitive, by_lines=False)
    regex = compile_regex(f"(?m){pattern}", pattern, case_insensitive=case_insensitive, by_lines=False)
    return MultilinePattern(pattern, case_insensitive, regex)
