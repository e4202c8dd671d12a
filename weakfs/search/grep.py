"""Find the lines of a text that match a regular expression, in time linear in the text (RE2).

A text is bytes; its lines end at `\\n` only, and each is a text of its own: nothing matches across lines,
`^` and `$` are a line's edges, and a `\\r` before the `\\n` belongs to the line, so that `$` comes after it
(as in ripgrep). Bytes that are not UTF-8 are seen, and shown, as U+FFFD.

The engine runs over the whole text, or over many small ones that are joined, and Python only looks at the lines
that it hits. What each line alone would answer is the definition, and the tests hold the one against the other.
Nothing is kept of a text.
"""

from __future__ import annotations

import codecs
import importlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final, NamedTuple, Protocol, cast

from attrs import field, frozen

from weakfs.search.grep_syntax import explain, for_lines, quoted, rarest_part, required_text
from weakfs.session.interruption import check_interrupted

__all__ = ["Hit", "LinePattern", "compile_pattern", "is_binary"]

BINARY_PREFIX: Final = 8 * 1024
MAX_PATTERN_BYTES: Final = 16 * 1024
# Where RE2's automaton outgrows its memory it simulates the program, at some 3 ns an instruction and byte:
# this bounds it. `.{1000}` has 8,000 instructions, `\pL{200}` 240,000.
MAX_PROGRAM_SIZE: Final = 20_000
# More memory keeps a large program from that: `(a?){1000}a{1000}[bc]` over 1 MB of `a` takes 12 s with RE2's
# default of 8 MiB and 50 ms with 32 MiB. Small ones gain nothing, and RE2 keeps the last 128 patterns.
LARGE_PROGRAM: Final = 2_000
LARGE_MEMORY: Final = 32 * 1024 * 1024
# Of what is searched together, so many lines are looked at because a part of the pattern is in them. Where it is
# in more of them it is common here, and the rest is searched for the whole pattern.
MOST_SCOUTED: Final = 4
# A longer text is searched in parts that end at line ends, so that a call can be ended between them.
PART: Final = 1024 * 1024
VALIDATED_AT_ONCE: Final = 1024 * 1024
REPLACEMENT: Final = "\ufffd"


class Hit(NamedTuple):
    """One matching line, without its `\\n`. `line_number` counts from 1; `start` and `end` are the first
    match's offsets in `line`, in characters."""

    line_number: int
    line: str
    start: int
    end: int


# Where a line starts in the texts that are searched together, the line, and the first match's offsets in it, in bytes.
_Line = tuple[int, bytes, int, int]


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...


class _Regex(Protocol):
    programsize: int

    def search(self, text: bytes, pos: int, endpos: int) -> _Match | None: ...


class _Re2(Protocol):
    """What is used of the `re2` module, which has no type stubs."""

    Options: type[Any]
    error: type[Exception]

    def compile(self, pattern: str, options: object) -> _Regex: ...


def is_binary(data: bytes) -> bool:
    """Tell whether `data` is taken for a binary file: a NUL in its first 8 KiB."""
    return data.find(b"\0", 0, BINARY_PREFIX) >= 0


@frozen(eq=False)
class LinePattern:
    """A compiled expression. Immutable, and safe to share between threads."""

    pattern: str
    case_insensitive: bool
    _regex: _Regex = field(repr=False)
    # Finds a text that every match contains, faster than the engine finds a match; None if none is known.
    _scout: _Regex | None = field(repr=False)

    def search(self, data: bytes, *, limit: int | None = None) -> list[Hit]:
        """Return the matching lines in order, at most `limit` of them.

        An empty text has no lines; `a\\n` has one. Whether a text is binary is not asked here.
        """
        return [hit for _, hit in islice(self.search_together([data], data), limit)]

    def search_together(self, texts: Sequence[bytes], joined: bytes) -> Iterator[tuple[int, Hit]]:
        """Give the matching lines of many texts in order, each with its text's index.

        `joined` is the texts with a `\\n` between each two: every line of theirs is a line of it, and the engine
        is called once for many of them. A long text that is alone is searched part by part.
        """
        if not texts:
            return iter(())
        if len(texts) == 1 and len(joined) > PART:
            return self._in_parts(joined)
        return self._at_once(texts, joined)

    def _in_parts(self, text: bytes) -> Iterator[tuple[int, Hit]]:
        """Search a long text: the same lines are found in it, as no match reaches over the end of a line."""
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
        """Return the matching lines among those that the scout finds, and where to go on without it, if at all."""
        lines: list[_Line] = []
        position = 0
        for _ in range(MOST_SCOUTED if self._scout is not None else 0):
            match = cast(_Regex, self._scout).search(joined, position, len(joined))
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
        """Yield the matching lines from `position` on, where a line starts."""
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
            # RE2 finds `\B` between the bytes of one character; a line is made of characters.
            match = self._regex.search(data, first + 1, end)
        return None


def _edges(joined: bytes, position: int, start: int, end: int) -> tuple[int, int]:
    """Return where the line of a match starts and ends; `position` is the start of that line or of one before."""
    line_end = joined.find(b"\n", end)
    return joined.rfind(b"\n", position, start) + 1 or position, line_end if line_end >= 0 else len(joined)


def _placed(texts: Sequence[bytes], joined: bytes, lines: Iterable[_Line]) -> Iterator[tuple[int, Hit]]:
    """Tell of each line in which text it is, and which line there; pass over those that no text has."""
    index = counted = 0
    number, end = 1, len(texts[0])
    for line_start, line, match_start, match_end in lines:
        while line_start > end:
            index, number = index + 1, 1
            counted = end + 1
            end = counted + len(texts[index])
        # Behind a text's last `\n`, and in an empty text, there is no line.
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
    """Return `data`, or what it shows if it is not UTF-8; its lines are the same ones."""
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

    The syntax is RE2's: `\\w`, `\\d`, `\\s` and `\\b` are ASCII, `\\pL` and the like are Unicode, and so is
    case folding. An empty pattern matches every line.

    Raises ValueError, with what to write instead, for lookaround, backreferences and possessive or atomic
    groups, for a line break (no line has one), for a pattern whose program is too large, and for any other
    that RE2 refuses.
    """
    if not isinstance(pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a pattern is text, not {type(pattern).__name__}: {pattern!r:.60}")
    _check_text(pattern)
    reason = explain(pattern)
    if reason is not None:
        raise _refusal(pattern, reason)
    # RE2 judges the pattern as it was written, so that its messages speak of that.
    _compile(pattern, pattern, case_insensitive=case_insensitive)
    regex = _compile(for_lines(pattern), pattern, case_insensitive=case_insensitive)
    needle = "" if case_insensitive else rarest_part(required_text(pattern))
    # U+FFFD may stand for any bytes that are not UTF-8.
    if not needle or REPLACEMENT in needle:
        return LinePattern(pattern, case_insensitive, regex, None)
    scout = _compile(quoted(needle), pattern, case_insensitive=False)
    return LinePattern(pattern, case_insensitive, regex, scout)


def _check_text(pattern: str) -> None:
    try:
        size = len(pattern.encode())
    except UnicodeEncodeError as problem:
        raise _refusal(
            pattern, f"it has a lone surrogate at position {problem.start}, and no text has one; leave it out"
        ) from None
    if size > MAX_PATTERN_BYTES:
        raise _refusal(
            pattern, f"it has {size:,} bytes and {MAX_PATTERN_BYTES:,} are the most; search for a part of it"
        )


def _compile(expression: str, pattern: str, *, case_insensitive: bool) -> _Regex:
    re2 = _re2()
    options = re2.Options()
    options.never_nl = True
    options.log_errors = False
    options.case_sensitive = not case_insensitive
    try:
        regex = re2.compile(expression, options)
        if LARGE_PROGRAM < regex.programsize <= MAX_PROGRAM_SIZE:
            options.max_mem = LARGE_MEMORY
            regex = re2.compile(expression, options)
    except re2.error as problem:
        reason = problem.args[0]
        message = _shortened(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason))
        if "too large" in message or "repetition size" in message:
            message += "; repeat less: at most 1,000 times in all, or use '*' or '+'"
        else:
            message += "; put a backslash before punctuation that stands for itself, as in '\\(' or '\\['"
        raise _refusal(pattern, message) from None
    if regex.programsize > MAX_PROGRAM_SIZE:
        raise _refusal(pattern, "the pattern is too large; repeat less, or use '*' or '+' instead of counts")
    return regex


def _re2() -> _Re2:
    """Import RE2 when the first pattern is compiled: 2 ms that most programs never need."""
    try:
        return cast(_Re2, importlib.import_module("re2"))
    except ImportError as error:
        python = ".".join(map(str, sys.version_info[:2]))
        raise ModuleNotFoundError(
            f"cannot search: the module re2 of the package google-re2 cannot be imported ({error}); run "
            f"pip install --only-binary :all: google-re2, or, if there is no wheel for Python {python} on "
            f"{sys.platform}, install a C++ compiler and the headers of RE2, Abseil and pybind11 (on Debian: "
            f"apt-get install g++ python3-dev libre2-dev libabsl-dev pybind11-dev; with Homebrew: "
            f"brew install re2 abseil pybind11) and run pip install google-re2",
            name="re2",
        ) from error


def _refusal(pattern: str, reason: str) -> ValueError:
    return ValueError(f"cannot search for {_shortened(pattern)!r}: {reason}")


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else text[:100] + "..."
