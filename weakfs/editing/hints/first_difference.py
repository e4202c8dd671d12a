"""The first difference between a quote and the nearest lines of a file, as a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from unicodedata import normalize

from weakfs.class_decorators import frozen
from weakfs.editing.hints.alignment import Alignment, Pair, Span
from weakfs.editing.hints.similarity import is_invisible, loose, spaceless, unrepeated, untypographic, visible
from weakfs.editing.normalization import folded, plain

INVISIBLE = "invisible characters"

# The maximum number of characters of a line, and of differently wrapped lines, that are shown.
MOST_SHOWN = 160
MOST_WRAPPED = 3
# Longer pieces are not checked for every kind of difference.
MOST_COMPARED = 100_000
# The maximum number of similar lines that a line of the quote is compared with.
MOST_LIKE_IT = 20
# The maximum number of extra lines that one line of the quote may have been wrapped into.
WRAPPED_MORE = 8


@frozen
class Difference:
    """A sentence, the line of the file (from 0) that it is about, if any, and the lines that differ from the quote."""

    text: str
    line: int | None = None
    lines: Span | None = None


@frozen
class Quote:
    """The lines of a quote, as they are and in their loose form.

    If `counts_blanks` is true, lines are compared as in patches: blank lines and the width of white space are
    significant, and the quote consists of whole lines.
    """

    lines: tuple[str, ...]
    rows: tuple[str, ...]
    counts_blanks: bool = False

    def is_same(self, there: str, place: int) -> bool:
        """Return whether a line of the file is equivalent to one of the quote; very long lines never are."""
        if max(len(there), len(self.lines[place])) > MOST_COMPARED:
            return False
        if self.counts_blanks:
            return _as_in_patches(there) == _as_in_patches(self.lines[place])
        line, wanted = folded(there).strip(), folded(self.lines[place]).strip()
        if place and place < len(self.lines) - 1:
            return line == wanted
        # The first and the last line of a text may be parts of lines.
        if len(self.lines) == 1:
            return wanted in line
        return line.startswith(wanted) if place else line.endswith(wanted)


def _as_in_patches(line: str) -> str:
    return plain(normalize("NFC", line.strip()))


@frozen
class _Gap:
    """A range of lines of the file and one of the quote that lie between lines that are equal in both."""

    lines: Span
    places: Span


@frozen
class _Comparison:
    lines: Sequence[str]
    rows: Sequence[str]
    quote: Quote
    place: Alignment
    name: str

    @cached_property
    def gaps(self) -> list[_Gap]:
        """The gaps in which the two differ, in order."""
        same = [pair for pair in self.place.pairs if self.quote.is_same(self.lines[pair[0]], pair[1])]
        if not same:
            whole = _Gap((self.place.start, self.place.stop), (0, len(self.quote.lines)))
            return [whole] if self._differs(whole) else []
        ends = [(self._head(same[0]), -1), *same, (self._tail(same[-1]), len(self.quote.lines))]
        gaps = [
            _Gap((line + 1, next_line), (place + 1, next_place))
            for (line, place), (next_line, next_place) in pairwise(ends)
        ]
        return [gap for gap in gaps if self._differs(gap)]

    def _differs(self, gap: _Gap) -> bool:
        if gap.places[0] < gap.places[1]:
            return self.quote.counts_blanks or not self._is_part(gap)
        missing = self.lines[slice(*gap.lines)]
        return bool(missing) and (self.quote.counts_blanks or any(map(str.strip, missing)))

    def _is_part(self, gap: _Gap) -> bool:
        """Return whether a piece of the file has all of a piece of the quote, which may begin and end inside a line."""
        there = "\n".join(self.lines[slice(*gap.lines)])
        wanted = "\n".join(self.quote.lines[slice(*gap.places)])
        if max(len(there), len(wanted)) > MOST_COMPARED:
            return False
        return self._fits(folded(there).strip(), folded(wanted).strip(), gap)

    def _head(self, first: Pair) -> int:
        """Return the first line of the file to compare with the quote's first lines, which are not paired."""
        line, place = first
        wanted = spaceless("\n".join(self.quote.lines[:place])).replace("\n", "")
        for start in range(line - 1, max(0, line - place - WRAPPED_MORE) - 1, -1):
            if wanted and spaceless("".join(self.lines[start:line])) == wanted:
                return start - 1
        paired = self.place.pairs[0][0]
        return min(paired, max(line - place, 0), line) - 1 if place else line - 1

    def _tail(self, last: Pair) -> int:
        """Return the end of the lines of the file to compare with the quote's last lines, which are not paired."""
        line, place = last
        rest = len(self.quote.lines) - 1 - place
        wanted = spaceless("\n".join(self.quote.lines[place + 1 :])).replace("\n", "")
        for stop in range(line + 2, min(len(self.lines), line + 1 + rest + WRAPPED_MORE) + 1):
            if wanted and spaceless("".join(self.lines[line + 1 : stop])) == wanted:
                return stop
        paired = self.place.pairs[-1][0] + 1
        return max(paired, min(line + 1 + rest, len(self.lines))) if rest else line + 1

    def first(self) -> Difference | None:
        if not self.gaps:
            return None
        gap = self.gaps[0]
        more = ", and further lines differ" if len(self.gaps) > 1 else ""
        found = self._wrapped(gap, more) or self._alike(gap, more)
        if found is not None:
            return found
        line, place = self._first(gap)
        if line is None:
            return self._only_quoted(place, gap.lines[0], more)
        if place is None:
            return self._left_out(line, gap, more)
        there, wanted = shown(self.lines[line], self.quote.lines[place])
        elsewhere = self._elsewhere(place)
        also = f", which is on line {elsewhere + 1} of the file" if elsewhere is not None else ""
        return Difference(f"Line {line + 1} differs: the file has {there}, {self.name} has {wanted}{also}{more}.", line)

    def _wrapped(self, gap: _Gap, more: str) -> Difference | None:
        there = [line.strip() for line in self.lines[slice(*gap.lines)] if line.strip()]
        wanted = [line for line in self.quote.lines[slice(*gap.places)] if line.strip()]
        if not there or not wanted or len(there) == len(wanted) or sum(map(len, there)) > MOST_COMPARED:
            return None
        one, other = ("".join(map(spaceless, lines)) for lines in (there, wanted))
        if not self._fits(one, other, gap):
            return None
        named = " and ".join(_in_quotes(_clip(line)) for line in there[:MOST_WRAPPED])
        rest = " and further lines" if len(there) > MOST_WRAPPED else ""
        line = next(at for at in range(*gap.lines) if self.lines[at].strip())
        what = f"Its lines are wrapped differently in the file, which has {named}{rest} from line {line + 1} on{more}"
        return Difference(f"{what}; give the lines as they are in the file.", line)

    def _alike(self, gap: _Gap, more: str) -> Difference | None:
        """Describe the only difference between two pieces that are otherwise equal."""
        lines = [at for at in range(*gap.lines) if self.lines[at].strip()]
        places = [at for at in range(*gap.places) if self.quote.lines[at].strip()]
        if not lines or len(lines) != len(places):
            return None
        there = "\n".join([self.lines[at].strip() for at in lines])
        wanted = "\n".join([self.quote.lines[at].strip() for at in places])
        why = next(self._causes(there, wanted, gap), None)
        if why is None:
            return None
        line, place = next(
            (pair for pair in zip(lines, places, strict=True) if not self.quote.is_same(self.lines[pair[0]], pair[1])),
            (lines[0], places[0]),
        )
        one, other = shown(self.lines[line], self.quote.lines[place])
        what = f"Line {line + 1} differs only in {why}: the file has {one}, {self.name} has {other}{more}"
        remedy = "; quote a piece of text without them" if why.startswith(INVISIBLE) else ""
        return Difference(f"{what}{remedy}.", line)

    def _causes(self, there: str, wanted: str, gap: _Gap) -> Iterator[str]:
        if max(len(there), len(wanted)) > MOST_COMPARED:
            return
        for form, why in KINDS:
            one, other = folded(form(there)).strip(), folded(form(wanted)).strip()
            if self._fits(one, other, gap):
                yield why.format(_characters(there, wanted))

    def _fits(self, one: str, other: str, gap: _Gap) -> bool:
        """Return whether a piece of the file equals one of the quote, which may begin and end inside a line."""
        if one == other or self.quote.counts_blanks or not other:
            return one == other
        begins, ends = gap.places[0] == 0, gap.places[1] == len(self.quote.lines)
        if begins and ends:
            return other in one
        return (begins and one.endswith(other)) or (ends and one.startswith(other))

    def _first(self, gap: _Gap) -> tuple[int | None, int | None]:
        """Return the first differing line of the file and its counterpart in the quote; either may be missing."""
        lines = [at for at in range(*gap.lines) if self.quote.counts_blanks or self.lines[at].strip()]
        places = [at for at in range(*gap.places) if self.quote.counts_blanks or self.quote.lines[at].strip()]
        if not lines or not places:
            return (lines[0] if lines else None), (places[0] if places else None)
        known = dict(self.place.pairs)
        line, place = lines[0], places[0]
        if line in known and known[line] > place:
            return None, place
        paired = next((at for at, to in self.place.pairs if to == place), line)
        return (line, None) if paired > line else (line, place)

    def _only_quoted(self, place: int | None, below: int, more: str) -> Difference:
        assert place is not None
        wanted = _in_quotes(_clip(self.quote.lines[place].strip()))
        where = f"below line {below}" if below else "at its start"
        elsewhere = self._elsewhere(place)
        if elsewhere is not None:
            return Difference(
                f"{self.name} has {wanted} {where}, which is on line {elsewhere + 1} of the file{more}.", elsewhere
            )
        if not self.quote.lines[place].strip():
            return Difference(f"{self.name} has a blank line {where}, and the file has none there{more}.")
        ends = " and ends there" if below >= len(self.lines) else ""
        return Difference(f"{self.name} has {wanted} {where}, and the file has no such line{ends}{more}.")

    def _left_out(self, line: int, gap: _Gap, more: str) -> Difference:
        count = gap.lines[1] - line
        text = self.lines[line].strip()
        what = _in_quotes(_clip(text)) if text else "a blank line"
        where = f"on line {line + 1}" if count == 1 else f"on the first of lines {line + 1}-{gap.lines[1]}"
        leaves = f"which {self.name} leaves out" if count == 1 else f"and {self.name} leaves these out"
        return Difference(f"The file has {what} {where}, {leaves}{more}.", line)

    def _elsewhere(self, place: int) -> int | None:
        """Return where else in the file a line of the quote is; `None` if nowhere, or if it is blank."""
        row, at = self.quote.rows[place], -1
        if not row:
            return None
        for _ in range(MOST_LIKE_IT):
            try:
                at = self.rows.index(row, at + 1)
            except ValueError:
                return None
            if self.quote.is_same(self.lines[at], place):
                return at
        return None


def first_difference(
    lines: Sequence[str], rows: Sequence[str], quote: Quote, place: Alignment, name: str
) -> Difference | None:
    """Return the first difference between a quote and the nearest lines of a file, or `None` if there is none.

    `rows` are the lines in their loose form, and `name` is the name of the quote in messages.
    """
    comparison = _Comparison(lines, rows, quote, place, name)
    found = comparison.first()
    if found is None:
        return None
    differing = [at for gap in comparison.gaps for at in range(*gap.lines) if quote.counts_blanks or lines[at].strip()]
    span = (min(differing), max(differing) + 1) if differing else None
    return Difference(found.text[:1].upper() + found.text[1:], found.line, span)


def _characters(there: str, wanted: str) -> str:
    """Name the special characters that only one of two texts has."""
    only = {char for char in {*there} ^ {*wanted} if is_invisible(char) or not char.isascii()}
    named = [f"U+{ord(char):04X}" + (f" {char}" if char.isprintable() else "") for char in sorted(only)]
    return ", ".join(islice(named, 5)) or "one of them"


def _plainly(text: str) -> str:
    return untypographic(text).replace("\u2044", "/")


KINDS: tuple[tuple[Callable[[str], str], str], ...] = (
    (str, "white space"),
    (str.lower, "the case of letters"),
    (visible, f"{INVISIBLE} ({{}})"),
    (_plainly, "typographic characters ({})"),
    (spaceless, "white space, which only one of the two has there"),
    (unrepeated, "the length of a row of the same character"),
    (loose, "the case of letters, white space or similar things"),
)


def shown(there: str, wanted: str) -> tuple[str, str]:
    """Return two lines in quotes; for long ones, the part around the first character in which they differ."""
    one, other = there.strip(), wanted.strip()
    begin = 0
    if max(len(one), len(other)) > MOST_SHOWN:
        same = next(
            (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
        )
        begin = max(0, same - MOST_SHOWN // 2)
    return _named(one, begin), _named(other, begin)


def _named(line: str, begin: int = 0) -> str:
    return _in_quotes(_clip(line[begin:])) if line else "a blank line"


def clipped(line: str, most: int) -> str:
    """Return a line, truncated if it is longer than `most` characters."""
    return line if len(line) <= most else f"{line[:most]} ..."


def _clip(line: str) -> str:
    return clipped(line, MOST_SHOWN)


def _in_quotes(text: str) -> str:
    """Return text in quotes, with backslashes unchanged and invisible characters as escapes."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f'"{text}"' if "'" in text and '"' not in text else f"'{text}'"
