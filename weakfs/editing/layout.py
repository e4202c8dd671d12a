"""The layout of inserted text: the new text of an inexact match, adapted to the style of the file.

Lines that the edit does not change are kept byte for byte; the others get the indentation of the block that was found
and the file's line endings. The white space around the old text is not part of the match and is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from weakfs.class_decorators import frozen
from weakfs.editing.doubtful_indentation import NewLine, OldLine
from weakfs.editing.indentation_checks import check_indentation
from weakfs.editing.line_context import TRIPLE_QUOTES, indent
from weakfs.editing.line_ends import LINE_END, only_kind, with_line_ends
from weakfs.editing.normalization import BYTE_ORDER_MARK, folded
from weakfs.editing.reindentation import Reindentation, matched
from weakfs.reducers.merging.line_merge import TooMuchWork, matches

# The start and stop of a line in the file, without the white space around it.
Spot = tuple[int, int]

# White space of more characters than this before a line does not count as indentation.
LONGEST_INDENT = 1000
# The number of characters before and after a match that are examined for the file's step of indentation.
NEARBY = 4000
# Matches with equal text are fitted only once; their pieces are remembered, up to about this many characters.
MOST_REMEMBERED = 1_000_000
BREAKS = ("\n", "\r")
BLANKS = re.compile(r"[^\S\r\n]*")
BLANK_LINE = re.compile(r"[^\S\r\n]*(?:\r\n|\r|\n)")


class Layout:
    """One edit of a text, to be fitted to each place where the old text was found."""

    def __init__(self, text: str, old: str, new: str) -> None:
        self.text = text
        self.old, self.new = TextBlock.of(old), TextBlock.of(new)
        self.end = only_kind(text) or only_kind(new) or "\n"
        self.kept = _unchanged(self.old, self.new)
        self.matched = matched(self.kept, len(self.old.lines), len(self.new.lines))
        self.nearby: list[str] = []
        self._fitted: dict[tuple[str, str | None, str | None], tuple[int, int, str]] = {}
        self._remembered = 0
        # The offset up to which lines have been counted, and their number.
        self._counted = (0, 0)

    @cached_property
    def _plain(self) -> bool:
        """Whether one line replaces another, both without outer white space, so that all places are alike."""
        return self.old.gaps == self.new.gaps == ("", "")

    @cached_property
    def places(self) -> tuple[Spot, ...]:
        """The position of each line of the old text in its folded form."""
        places: list[Spot] = []
        at = 0
        for line in self.old.lines:
            stop = at + len(folded(line))
            places.append((at, stop))
            at = stop + 1
        return tuple(places)

    def fit(self, original: Callable[[int], int], at: int) -> tuple[int, int, str]:
        """Return the piece for a match: its start and stop in the text, and the replacement.

        `at` is the offset of the match in the folded text; `original` maps such an offset to one in the text.
        """
        if self._plain:
            return original(at), original(at + self.places[0][1]), self.new.lines[0]
        spots = [(original(at + start), original(at + stop)) for start, stop in self.places]
        start, stop = spots[0][0], spots[-1][1]
        if not self.new.lines:
            _ = _Place(self, spots).reindentation
            return self._whole_lines(start, stop) or (start, stop, self._blank())
        key = (self.text[start:stop], indent_before(self.text, start), self.blanks_behind(stop))
        if key not in self._fitted:
            self.nearby = self.nearby or self._indents_around(start, stop)
            if self._remembered > MOST_REMEMBERED:
                self._fitted.clear()
                self._remembered = 0
            self._fitted[key] = self._fit(spots)
            self._remembered += stop - start + len(self._fitted[key][2]) + 100
        before, behind, inserted = self._fitted[key]
        return start - before, stop + behind, inserted

    def blanks_behind(self, stop: int) -> str | None:
        """Return the white space from an offset to the end of its line, or `None` if there is anything else."""
        found = BLANKS.match(self.text, stop)
        assert found is not None
        return found[0] if found.end() == len(self.text) or self.text[found.end()] in BREAKS else None

    def line_of(self, offset: int) -> int:
        """Return the number (from 1) of the line that contains an offset. This is fast for ascending offsets."""
        start, lines = self._counted if self._counted[0] <= offset else (0, 0)
        lines += self.text.count("\r" if self.end == "\r" else "\n", start, offset)
        self._counted = offset, lines
        return lines + 1

    def is_in_string(self, offset: int) -> bool:
        """Return whether a multi-line string, as in Python, is open at an offset. O(text)."""
        return sum(self.text.count(quotes, 0, offset) for quotes in TRIPLE_QUOTES) % 2 == 1

    def _indents_around(self, start: int, stop: int) -> list[str]:
        begin = max(0, start - NEARBY)
        # If the range does not begin at the text's start, its first line may be incomplete.
        rows = self.text[begin : stop + NEARBY].splitlines()[bool(begin) :]
        return [indent(row) for row in rows if row.strip()]

    def _fit(self, spots: Sequence[Spot]) -> tuple[int, int, str]:
        """Return how far the piece extends before and after the match, and the replacement."""
        place = _Place(self, spots)
        before, lead = place.before_first()
        parts = [lead]
        for number, line in enumerate(self.new.lines):
            if number:
                parts.append(place.between(number))
            same = self.kept.get(number)
            parts.append(line if same is None else self.text[slice(*spots[same])])
        last, before_last = len(self.new.lines) - 1, len(self.old.lines) - 1
        behind = 0
        known = self.matched.get(last)
        is_another = known != before_last and (known is not None or before_last in self.matched.values())
        quoted, given = (block.tail.partition("\n")[0] for block in (self.old, self.new))
        is_row = before_last > 0 or "\n" in self.old.tail
        if is_another or (is_row and quoted not in ("", given)):
            blanks = self.blanks_behind(spots[-1][1])
            if blanks is not None:
                # White space after the old text's last line does not belong after the new one's, nor if it was quoted.
                behind = len(blanks)
                parts.append(place.trailing(last))
        parts.append(place.after_last())
        return before, behind, "".join(parts)

    def _whole_lines(self, start: int, stop: int) -> tuple[int, int, str] | None:
        """Return the piece that deletes lines quoted with their last line ending; `None` if this is another edit."""
        indent, blanks = indent_before(self.text, start), self.blanks_behind(stop)
        if indent is None or blanks is None or "\n" not in self.old.tail or self.new.lead:
            return None
        end = stop + len(blanks)
        for _ in range(self.old.tail.count("\n")):
            found = BLANK_LINE.match(self.text, end)
            end = found.end() if found else end
        return start - len(indent), end, ""

    def _blank(self) -> str:
        """Return a new text that is only white space, without what the old text already had around it."""
        if not self.old.lead and not self.old.tail:
            return with_line_ends(self.new.lead, self.end)
        return self.end * (self.new.lead.count("\n") - self.old.lead.count("\n") - self.old.tail.count("\n"))


def _unchanged(old: TextBlock, new: TextBlock) -> dict[int, int]:
    """Map lines of the new text to equal lines of the old one: at the same depth, or otherwise at any depth."""
    pairs: dict[int, int] = {}
    above, before = -1, -1
    for number, known in [*_same(_rows(old), _rows(new)), (len(new.lines), len(old.lines))]:
        inner = _same(_texts(old.lines[before + 1 : known]), _texts(new.lines[above + 1 : number]))
        pairs.update({above + 1 + at: before + 1 + there for at, there in inner})
        if known < len(old.lines):
            pairs[number] = known
        above, before = number, known
    return pairs


def _same(old: list[bytes], new: list[bytes]) -> list[tuple[int, int]]:
    try:
        return [(j + k, i + k) for i, j, length in matches(old, new) for k in range(length)]
    except TooMuchWork:
        return []


def _rows(block: TextBlock) -> list[bytes]:
    return _texts([block.indent(number) + line for number, line in enumerate(block.lines)])


def _texts(lines: Sequence[str]) -> list[bytes]:
    return [line.encode("utf-8", "surrogatepass") for line in lines]


@frozen
class _Place:
    """One place where the old text was found: its lines there, and their indentation."""

    layout: Layout
    spots: Sequence[Spot]

    @cached_property
    def own(self) -> tuple[str | None, ...]:
        """The indentation of each line in the file, `None` for a line that begins inside one of the file's lines."""
        text = self.layout.text
        found = [indent_before(text, self.spots[0][0])]
        for (_, stop), (start, _) in zip(self.spots, self.spots[1:], strict=False):
            gap = text[stop:start]
            ends = [*LINE_END.finditer(gap)]
            found.append(gap[ends[-1].end() :] if ends else None)
        return tuple(found)

    @cached_property
    def reindentation(self) -> Reindentation:
        """The indentation of the new text's lines at this place. Raises `DoubtfulIndentation` if it is ambiguous."""
        layout = self.layout
        old = [
            OldLine(layout.old.indent(at), line, own, layout.line_of(start))
            for at, (line, own, (start, _)) in enumerate(zip(layout.old.lines, self.own, self.spots, strict=True))
        ]
        new = [
            NewLine(layout.new.indent(at), line, layout.kept.get(at), layout.new.gaps[at].count("\n") - 1)
            for at, line in enumerate(layout.new.lines)
        ]
        found = Reindentation(old, new, layout.nearby, in_string=layout.is_in_string(self.spots[0][0]))
        check_indentation(found)
        return found

    def before_first(self) -> tuple[int, str]:
        """Return how far before the match the piece begins, and what precedes the new text's first line."""
        layout = self.layout
        old, new, own = layout.old, layout.new, self.own[0]
        more = max(0, new.lead.count("\n") - old.lead.count("\n"))
        if own is None:
            if not old.lead:
                return 0, with_line_ends(new.lead, layout.end)
            return 0, layout.end * more + (new.indent(0) if more else "")
        if not old.lead:
            above, line_end, indent = new.lead.rpartition("\n")
            indentation = self.reindentation.of(0) if line_end else self.reindentation.indents.extra(indent)
            return 0, with_line_ends(above + line_end, layout.end) + indentation
        target = own
        if new.indent(0) != old.indent(0) and (new.indent(0) or self.reindentation.begins_at_margin):
            target = self.reindentation.of(0)
        if not more and target.startswith(own):
            return 0, target[len(own) :]
        return len(own), layout.end * more + target

    def between(self, number: int) -> str:
        """Return the white space before a line of the new text other than the first."""
        layout = self.layout
        gap = layout.new.gaps[number]
        above, here = layout.matched.get(number - 1), layout.matched.get(number)
        if above is not None and here is not None and here == above + 1 and layout.old.gaps[here] == gap:
            return layout.text[self.spots[above][1] : self.spots[here][0]]
        _, *blanks, _ = gap.split("\n")
        rows = self._blank_rows(above, here, blanks)
        return self.trailing(number - 1) + self._line_end(above) + "".join(rows) + self.reindentation.of(number)

    def after_last(self) -> str:
        """Return the white space after the new text's last line, without what the old text already had around it."""
        old, new, end = self.layout.old, self.layout.new, self.layout.end
        if old.tail:
            return end * (new.tail.count("\n") - old.tail.count("\n"))
        first, *rows = new.tail.split("\n")
        is_bare = self._has_bare_rows and self.layout.blanks_behind(self.spots[-1][1]) is not None
        return end.join([first, *("" if is_bare else row for row in rows)])

    def trailing(self, number: int) -> str:
        """Return the trailing white space of a line of the new text."""
        given = self.layout.new.gaps[number + 1].partition("\n")[0]
        known = self.layout.matched.get(number)
        if known is not None:
            quoted, actual = self._trailing[known]
            if quoted == given and actual is not None:
                return actual
        # If all lines were quoted with trailing white space that the file lacks, new lines get none either.
        return "" if given and self._meant.get(given) == {""} else given

    @cached_property
    def _meant(self) -> dict[str, set[str]]:
        """The white space after lines in the file, by what was quoted after them."""
        meant: dict[str, set[str]] = {}
        for quoted, actual in self._trailing:
            if actual is not None:
                meant.setdefault(quoted, set()).add(actual)
        return meant

    @cached_property
    def _trailing(self) -> list[tuple[str, str | None]]:
        """The white space after each line of the old text, as quoted and in the file; `None` if more text follows."""
        layout = self.layout
        found: list[tuple[str, str | None]] = []
        for number, (_, stop) in enumerate(self.spots):
            quoted = layout.old.gaps[number + 1].partition("\n")[0]
            found.append((quoted, layout.blanks_behind(stop)))
        return found

    def _line_end(self, above: int | None) -> str:
        """Return a line ending: the file's own after line `above` of the old text, if it is one of its lines."""
        rows = [] if above is None else self._rows(above + 1)
        if not rows and above == len(self.spots) - 1:
            blanks = self.layout.blanks_behind(self.spots[-1][1])
            found = None if blanks is None else LINE_END.match(self.layout.text, self.spots[-1][1] + len(blanks))
            return found[0] if found else self.layout.end
        return rows[0][1] if rows else self.layout.end

    def _rows(self, number: int) -> list[tuple[str, str]]:
        """Return the lines, each with its end, of the file's gap before a line of the old text."""
        if number >= len(self.spots):
            return []
        gap = self.layout.text[self.spots[number - 1][1] : self.spots[number][0]]
        ends = [*LINE_END.finditer(gap)]
        starts = [0, *(end.end() for end in ends)]
        return [(gap[start : end.start()], end[0]) for start, end in zip(starts, ends, strict=False)]

    @cached_property
    def _has_bare_rows(self) -> bool:
        """Whether the file has blank lines here, all of them without white space."""
        rows = [row for number in range(1, len(self.spots)) for row, _ in self._rows(number)[1:]]
        return bool(rows) and not any(rows)

    def _blank_rows(self, above: int | None, here: int | None, given: list[str]) -> Iterator[str]:
        """Yield the blank lines of a gap, taken from the file after the line above and before this one."""
        upper = [] if above is None else self._rows(above + 1)[1:]
        lower = [] if here is None or here == 0 or (above is not None and here == above + 1) else self._rows(here)[1:]
        block = self.layout.old
        # The blank lines after the old text's last line are not part of the match.
        is_inside = above is not None and above + 1 < len(self.spots)
        if is_inside and len(given) == _blanks(block, (above or 0) + 1):
            rows = upper
        elif lower and above is not None and len(given) == sum(_blanks(block, at) for at in (above + 1, here or 0)):
            rows = upper + lower
        elif here and len(given) == _blanks(block, here):
            rows = lower
        else:
            kept = (upper + lower)[: len(given)]
            indents = self.reindentation.indents
            # If blank lines were quoted with white space that the file lacks, new ones get none either.
            bare = self._has_bare_rows
            rows = kept + [
                ("" if bare and not row.strip(" \t") else indents.of(row) if row else row, self.layout.end)
                for row in given[len(kept) :]
            ]
        for row, end in rows:
            yield row + end


def _blanks(block: TextBlock, number: int) -> int:
    """Count the blank lines before a line of a block."""
    return max(0, block.gaps[number].count("\n") - 1)


def indent_before(text: str, start: int) -> str | None:
    """Return the white space from the start of a line to `start`, or `None` if there is anything else."""
    before = text[max(0, start - LONGEST_INDENT) : start]
    indent = before[len(before.rstrip()) :]
    for line_end in BREAKS:
        indent = indent.rpartition(line_end)[2]
    first = start - len(indent)
    begins = first == 0 or text[first - 1] in BREAKS or (first == 1 and text[0] == BYTE_ORDER_MARK)
    return indent if begins else None


@frozen
class TextBlock:
    """The non-blank lines of a text, stripped, and the gaps around them: one more than lines.

    Line endings are `\\n` here. A gap contains the trailing white space of the line before it, its line ending, blank
    lines, and the indentation of the line after it. A passage without lines is one gap.
    """

    lines: tuple[str, ...]
    gaps: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> TextBlock:
        lines: list[str] = []
        gaps: list[str] = []
        gap: list[str] = []
        for row in with_line_ends(text, "\n").split("\n"):
            bare = row.lstrip()
            line = bare.rstrip()
            if not line:
                gap += (row, "\n")
                continue
            gap.append(row[: len(row) - len(bare)])
            gaps.append("".join(gap))
            lines.append(line)
            gap = [bare[len(line) :], "\n"]
        gaps.append("".join(gap[:-1]))
        return cls(tuple(lines), tuple(gaps))

    @property
    def lead(self) -> str:
        """Return the white space before the first line."""
        return self.gaps[0]

    @property
    def tail(self) -> str:
        """Return the white space after the last line."""
        return self.gaps[-1]

    def indent(self, number: int) -> str:
        """Return the indentation of a line."""
        return self.gaps[number].rpartition("\n")[2]
