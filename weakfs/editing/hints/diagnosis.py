"""The diagnosis of a quote that is not in a file: the named cause, and the first difference at the nearest place.

Edits and patches of every format use this. Nothing here is ever applied: the diagnosis goes back to the caller, who
can read the file and try again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import islice

from attrs import evolve, field

from weakfs.class_decorators import frozen
from weakfs.editing.hints.alignment import MOST_LINES, Aligner, Alignment, Span
from weakfs.editing.hints.first_difference import Difference, Quote, clipped, first_difference
from weakfs.editing.hints.misquotes import MARKER, NUMBERED, Misquote, misquotes, parts_around_elisions
from weakfs.editing.hints.similarity import loose
from weakfs.editing.normalization import Haystack, Needle, TooRepetitive

# Only this much of a longer quote is examined, and no message is longer than this.
MOST_LOOKED_AT = 100_000
# The maximum number of lines at the beginning of a long quote that are skipped because they are in the file, to reach
# the first difference. If the examined lines do not differ, the lines below them are examined next, up to this many
# times.
MOST_EQUAL = 40
MOST_ROUNDS = 3
MOST_IN_HINT = 1400
# The maximum number of lines of the nearest place that are shown, and of characters of each.
MOST_SHOWN = 8
SHOWN = 100
# New text of at least this many characters, not counting white space, is not in a file by chance.
DISTINCTIVE = 20
# Lines that occur in many files are not significant without the lines around them.
COMMON = re.compile(
    r"(?:return\b.{0,12}|pass|break|continue|else\W*|try\W*|finally\W*|end\w*\W*|fi|done|then|do|begin|default:)"
)
# The maximum number of places of a new text that are examined.
MOST_PLACES = 20


@frozen
class Diagnosis:
    """Sentences on what is wrong with a quote; `hint` is a keyword for it, `lines` the first and last line named."""

    reason: str
    hint: str | None = None
    lines: tuple[int, ...] = ()


@frozen
class Subject:
    """A quote that is not in a file: its lines, and the text that was to replace them.

    `name` is its name in messages. The blocks `within`, which `whose` describes, are searched first, and places near
    the line `near` are preferred (all counted from 0). If `counts_blanks` is true, blank lines and the width of white
    space are significant; if `shows_lines` is true, the answer includes the nearest lines.
    """

    old: str
    new: str
    name: str = "the text to replace"
    within: Sequence[Span] = ()
    whose: str = ""
    near: int = 0
    counts_blanks: bool = False
    shows_lines: bool = True

    @cached_property
    def added(self) -> list[str]:
        """The lines with a letter or a digit that are only in the new text. O(old), computed once."""
        known = {line.strip() for line in dict.fromkeys(self.old.split("\n"))}
        lines = map(str.strip, self.new[:MOST_LOOKED_AT].split("\n"))
        return [line for line in lines if line not in known and any(map(str.isalnum, line))]


@frozen
class QuotedFile:
    """The text of a file, for diagnosing any number of quotes that are not in it."""

    text: str
    given: Haystack | None = field(default=None, repr=False, eq=False)

    @cached_property
    def haystack(self) -> Haystack:
        """The text in the form that is searched for equivalent texts."""
        return self.given or Haystack(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their `\\n`."""
        return self.text.split("\n")

    @cached_property
    def rows(self) -> list[str]:
        """The lines in their loose form."""
        return loose(self.text).split("\n")

    def diagnose(self, subject: Subject) -> Diagnosis:
        """Return why a quote is not in the file. O(text)."""
        subject = self._from_first_difference(subject)
        old = subject.old[:MOST_LOOKED_AT]
        if not old.strip():
            return Diagnosis("it is only white space, which must match exactly; include some of the text around it")
        if not self.text.strip("\ufeff"):
            return Diagnosis("the file is empty; write the text that it should have")
        sure: Misquote | None = None
        for misquote in misquotes(old):
            found = self._find(misquote.meant) if misquote.meant != old else None
            if found is not None and not self._numbers_itself(misquote, found):
                where = named(*found)
                meant = f"{misquote.why}; {misquote.meant_text} is on {where}: {misquote.remedy}"
                return Diagnosis(meant, misquote.hint, found)
            if misquote.is_sure and sure is None:
                sure = misquote
        return self._elided(old) or self._nearest(subject, old, sure)

    def _from_first_difference(self, subject: Subject) -> Subject:
        """Return a long quote without its first lines if exactly these lines are in the file."""
        if subject.old.count("\n") < MOST_LINES:
            return subject
        quoted = subject.old.split("\n")
        first = self._line_of("\n".join(quoted[:MOST_LINES]), subject.near)
        if first is None:
            return subject
        pairs = zip(quoted, islice(self.lines, first, None), strict=False)
        equal = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
        if equal is None:
            equal = min(len(quoted), len(self.lines) - first)
        skipped = min(equal, len(quoted) - 1) - MOST_EQUAL
        head = "\n".join(quoted[:skipped]) + "\n"
        new = subject.new.removeprefix(head)
        return evolve(subject, old=subject.old[len(head) :], new=new, near=first + skipped)

    def _line_of(self, wanted: str, near: int) -> int | None:
        """Return the line (from 0) at which whole lines occur, searching from the line `near`, then from the start."""
        start = len("\n".join(self.lines[:near])) + 1 if near else 0
        # Both get a leading line break, so that the search finds nothing in the middle of a line.
        text, wanted = f"\n{self.text}", f"\n{wanted}\n"
        at = text.find(wanted, start)
        if at < 0 and start:
            at = text.find(wanted)
        return None if at < 0 else text.count("\n", 0, at)

    def _find(self, wanted: str) -> tuple[int, int] | None:
        """Return the first and last line (from 1) of an equivalent text, or `None` if there is none."""
        needle = Needle.of(wanted)
        at = self._first(needle)
        return None if at is None else self._lines(at, at + len(needle.core))

    def _first(self, needle: Needle, after: int = 0) -> int | None:
        try:
            return self.haystack.first(needle, after)
        except TooRepetitive:
            return None

    def _lines(self, start: int, stop: int) -> tuple[int, int]:
        first = self.text.count("\n", 0, self.haystack.original(start)) + 1
        return first, self.text.count("\n", 0, self.haystack.original(stop)) + 1

    def _numbers_itself(self, misquote: Misquote, found: tuple[int, int]) -> bool:
        """Return whether the file itself has the numbers there, as in a numbered list or numeric keys."""
        return misquote.hint == "line_numbers" and NUMBERED.match(self.lines[found[0] - 1]) is not None

    def _elided(self, old: str) -> Diagnosis | None:
        start = stop = None
        for part in parts_around_elisions(old):
            needle = Needle.of(part)
            at = self._first(needle, stop or 0)
            if at is None:
                return None
            start, stop = (at if start is None else start), at + len(needle.core)
        if start is None or stop is None:
            return None
        lines = self._lines(start, stop)
        why = f"it leaves lines out (...), which are not filled in; it is around {named(*lines)}"
        return Diagnosis(f"{why}: give every line of the text to change", "elision", lines)

    # The nearest place

    def _nearest(
        self, subject: Subject, old: str, sure: Misquote | None, rounds: int = MOST_ROUNDS, near: int | None = None
    ) -> Diagnosis:
        near = subject.near if near is None else near
        place = self._place(subject, sure.meant if sure else old, near)
        if sure is not None and self._has_such_lines(sure, place, old):
            sure, place = None, self._place(subject, old, near)
        applied = self._applied(subject, place)
        if applied is not None:
            return applied
        before, meant = (f"{sure.why}; {sure.remedy}. D", sure.meant) if sure else ("d", old)
        hint = sure.hint if sure else None
        if place is None:
            if sure is not None:
                return Diagnosis(f"{sure.why}; {sure.remedy}. Nothing else in the file is similar to it", hint)
            return Diagnosis("nothing in the file is similar; read the file again and copy the text exactly")
        quote = _quote_of(meant, counts_blanks=subject.counts_blanks)
        difference = first_difference(self.lines, self.rows, quote, place, subject.name)
        if difference is None:
            rest = "\n".join(_lines_of(meant, counts_blanks=subject.counts_blanks)[MOST_LINES:])
            if rest and rounds > 1:
                return self._nearest(subject, rest, None, rounds - 1, place.stop)
            difference = self._blank_around(subject, place) or Difference(
                "Its lines are there, but it begins or ends inside a word; give whole lines."
            )
        if difference.lines is not None:
            start, stop = difference.lines
            place = evolve(place, start=min(place.start, start), stop=max(place.stop, stop))
        lines = (place.start + 1, place.stop)
        parts = [f"{before}id you mean {named(*lines)}{self._inside(subject, place)}? {difference.text}"]
        parts += self._shown(place, difference) if subject.shows_lines else []
        while sum(map(len, parts)) > MOST_IN_HINT and len(parts) > 1:
            parts.pop()
        return Diagnosis("\n".join(parts), hint or "similar", lines)

    def _blank_around(self, subject: Subject, place: Alignment) -> Difference | None:
        """Describe blank lines before or after the quoted lines that the file does not have there."""
        if not subject.counts_blanks:
            return None
        name, quote = subject.name.capitalize(), subject.old.split("\n")
        sides = (
            ("begins", quote, self.lines[: place.start][::-1], f"above line {place.start + 1}"),
            ("ends", quote[::-1], self.lines[place.stop :], f"below line {place.stop}"),
        )
        for verb, lines, around, where in sides:
            wanted, held = _leading_blanks(lines), _leading_blanks(around)
            if held < wanted:
                blanks = "a blank line" if wanted == 1 else f"{wanted} blank lines"
                return Difference(f"{name} {verb} with {blanks}, and the file has {held or 'none'} {where}.")
        return None

    def _place(self, subject: Subject, old: str, near: int) -> Alignment | None:
        quote = _quote_of(old, counts_blanks=subject.counts_blanks)
        if not quote.rows:
            return None
        aligner = Aligner(self.lines, self.rows, quote.lines, quote.rows, near)
        return aligner.nearest(subject.within)

    def _has_such_lines(self, misquote: Misquote, place: Alignment | None, old: str) -> bool:
        """Return whether the file itself contains what seems to be wrong with a quote."""
        if misquote.hint == "line_numbers":
            return place is not None and any(map(NUMBERED.match, self.lines[place.start : place.stop]))
        markers = {line.strip() for line in old.split("\n") if MARKER.fullmatch(line.strip())}
        return any(line.strip() in markers for line in self.lines)

    def _inside(self, subject: Subject, place: Alignment) -> str:
        for first, end in subject.within:
            if first <= place.start and place.stop <= end:
                return f", in the block of {subject.whose} ({named(first + 1, end)})"
        return ""

    def _shown(self, place: Alignment, difference: Difference) -> list[str]:
        if place.stop - place.start < 2:
            return []
        at = place.start if difference.line is None else difference.line
        first = max(place.start, min(at - MOST_SHOWN // 2, place.stop - MOST_SHOWN))
        shown_lines = range(first, min(place.stop, first + MOST_SHOWN))
        return [
            "Copy the text exactly, without the line numbers:",
            *(f"{at + 1} | {clipped(self.lines[at].rstrip(), SHOWN)}" for at in shown_lines),
        ]

    # Changes that are already applied

    def _applied(self, subject: Subject, place: Alignment | None) -> Diagnosis | None:
        """Find the new text: at the nearest place, or anywhere if it is long enough not to be there by chance."""
        new = subject.new[:MOST_LOOKED_AT]
        added = subject.added
        if not added:
            return None
        has_context = len(added) < sum(any(map(str.isalnum, line)) for line in new.split("\n"))
        lines = self._at_place(new, place) if place and (has_context or not all(map(COMMON.fullmatch, added))) else None
        # If old lines are there, the change has almost certainly not been made yet.
        if lines is None and (place is None or len(added) > 1):
            lines = self._only_place(new, DISTINCTIVE if place is None else 2 * DISTINCTIVE)
        if lines is None:
            return None
        why = f"the new text is already there, on {named(*lines)}; there may be nothing to do"
        return Diagnosis(why, "already_applied", lines)

    def _at_place(self, new: str, place: Alignment) -> tuple[int, int] | None:
        """Return the lines of the new text if it occurs as whole lines at the nearest place of the old one."""
        around = new.count("\n") + 1
        first = max(0, place.start - around)
        nearby = QuotedFile("\n".join(self.lines[first : place.stop + around]))
        if len(nearby.text) > MOST_LOOKED_AT:
            return None
        needle = Needle.of(new)
        after = 0
        for _ in range(MOST_PLACES):
            at = nearby._first(needle, after)
            if at is None:
                return None
            after = at + len(needle.core)
            top, bottom = nearby._lines(at, after)
            if top + first <= place.stop and place.start < bottom + first and nearby._are_whole_lines(at, after):
                return top + first, bottom + first
        return None

    def _only_place(self, new: str, least: int) -> tuple[int, int] | None:
        """Return the lines of a new text that is too long to be there by chance and occurs only once."""
        needle = Needle.of(new)
        at = self._first(needle)
        if at is None or len("".join(new.split())) < least or self._first(needle, at + 1) is not None:
            return None
        return self._lines(at, at + len(needle.core))

    def _are_whole_lines(self, at: int, after: int) -> bool:
        text, start, stop = self.text, self.haystack.original(at), self.haystack.original(after)
        end = text.find("\n", stop)
        before = text[text.rfind("\n", 0, start) + 1 : start]
        return not before.strip().strip("\ufeff") and not text[stop : end if end >= 0 else len(text)].strip()


def _lines_of(old: str, *, counts_blanks: bool) -> list[str]:
    lines = [line.removesuffix("\r") for line in old.split("\n")]
    if not counts_blanks:
        return [line for line in lines if line.strip()]
    said = [at for at, line in enumerate(lines) if line.strip()]
    return lines[said[0] : said[-1] + 1] if said else []


def _leading_blanks(lines: Sequence[str]) -> int:
    return next((at for at, line in enumerate(lines) if line.strip()), len(lines))


def _quote_of(old: str, *, counts_blanks: bool) -> Quote:
    lines = _lines_of(old, counts_blanks=counts_blanks)[:MOST_LINES]
    return Quote(tuple(lines), tuple(loose("\n".join(lines)).split("\n")), counts_blanks)


def named(first: int, last: int) -> str:
    """Return the name of a range of lines for a message."""
    return f"line {first}" if first == last else f"lines {first}-{last}"
