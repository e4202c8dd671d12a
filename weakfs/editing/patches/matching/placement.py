"""Placement: finding the one place in a file that a hunk refers to, or the reason why there is none.

The place that the anchor or the header of the hunk names is searched first, from exact to loose comparison; another
place counts only if it is the only one. A hunk that fits in several places is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from attrs import evolve, field

from weakfs.class_decorators import define, frozen
from weakfs.editing.patches.document import Document
from weakfs.editing.patches.errors import quoted
from weakfs.editing.patches.line_search.equivalences import EXACT, FREEST, TRAILING_BLANKS
from weakfs.editing.patches.matching.anchors import Anchors
from weakfs.editing.patches.matching.hunk_diagnosis import similar_line
from weakfs.editing.patches.matching.hunk_error import MAX_PLACES, Block, Misfit
from weakfs.editing.patches.matching.unmarked_context import is_dedented, unmarked_lines
from weakfs.editing.patches.operations import Hunk
from weakfs.fast_init import fast_init

# The maximum number of places of a hunk of a diff that are examined.
MOST_PLACES = 1000
# The place nearest to the stated line of a diff is chosen if the next one is more than this many times as far away.
CLEARLY = 2

# The lines that a hunk changes: start and stop, equal if it only adds lines.
Span = tuple[int, int]

UNMARKED = "its context lines do not start with ' '; start each of them with a ' '"


@fast_init
@frozen
class Place:
    """The place of a hunk: its first line (from 0), the hunk as it matched there, and the level of comparison.

    `notes` list what else was ignored. For an addition, `anchor` is the line of its anchor (from 0).
    """

    at: int
    hunk: Hunk
    level: int = EXACT
    notes: tuple[str, ...] = ()
    anchor: int | None = None

    @property
    def changes(self) -> list[Span]:
        """The ranges of lines that are removed, or between which others are added."""
        at = self.at
        return [(at + start, at + stop) for start, stop, _ in self.hunk.runs]

    @property
    def cursor(self) -> int:
        """The line after the last changed one."""
        runs = self.hunk.runs
        return self.at + (runs[-1][1] if runs else len(self.hunk.old))


@define(eq=False)
class Search:
    """A search for the places of hunks in one document, which must not change in the meantime.

    The next hunk is searched from `cursor` on. `drift` is the distance of earlier hunks of a diff from their stated
    lines, `taken` are the lines that earlier hunks change, all of them before line `taken_up_to`.
    """

    document: Document
    anchors: Anchors
    takes_first: bool = False
    cursor: int = 0
    drift: int = 0
    taken: list[Span] = field(factory=list[Span])
    taken_up_to: int = 0

    def take(self, place: Place) -> None:
        """Continue after a place: later hunks may not change what the hunk changes there."""
        hunk = place.hunk
        self.taken += place.changes
        changed_up_to = place.cursor
        if changed_up_to > self.taken_up_to:
            self.taken_up_to = changed_up_to
        # Lines added at the end, without any context in the hunk, do not block later hunks.
        if hunk.start is not None or hunk.old or place.anchor is not None:
            self.cursor = changed_up_to
        if hunk.start is not None:
            self.drift = place.at - (hunk.start - 1 if hunk.old else hunk.start)

    def place(self, hunk: Hunk) -> Place:
        """Find the place of a hunk. Raises `Misfit` if there is none. O(file), even for repetitive files."""
        *others, last = hunk.readings()
        for wanted in others:
            try:
                return self._place(wanted)
            except Misfit as error:
                if error.places:
                    error.hunk = wanted
                    raise
        try:
            return self._place(last)
        except Misfit as error:
            error.hunk = last
            raise

    def _place(self, hunk: Hunk) -> Place:
        if not hunk.old:
            return self._place_of_addition(hunk)
        failure = found = None
        try:
            found = self._place_of(hunk)
            if found.level <= TRAILING_BLANKS:
                return evolve(found, notes=(*found.notes, UNMARKED)) if hunk.unmarked else found
        except Misfit as error:
            failure = error
        if found is None or not is_dedented(self.document, found.hunk, found.at):
            unmarked = self._as_unmarked(hunk)
            if unmarked is not None and (found is None or hunk.start is None or unmarked.at == found.at):
                return unmarked
            found = found and self._partly_unmarked(found)
        # Lines without a mark are context only if they match exactly.
        if found is None or (hunk.unmarked and found.level > TRAILING_BLANKS):
            raise failure or Misfit("")
        return found

    def _place_of(self, hunk: Hunk) -> Place:
        if hunk.start is not None:
            return self._near(hunk, hunk.start - 1)
        if hunk.at_end:
            return self._at_end(hunk)
        anchors = self.anchors.named(hunk.anchors) if hunk.anchors else []
        return self._anchored(hunk, anchors) if anchors else self._anywhere(hunk)

    def _as_unmarked(self, hunk: Hunk) -> Place | None:
        """Find a hunk whose context was given without the leading blank, if it matches exactly."""
        wanted = hunk.with_context_unmarked(range(len(hunk.lines)))
        if wanted.lines == hunk.lines:
            return None
        try:
            found = self._place_of(wanted)
        except Misfit:
            return None
        return evolve(found, notes=(*found.notes, UNMARKED)) if found.level <= TRAILING_BLANKS else None

    def _partly_unmarked(self, place: Place) -> Place:
        """Return a place where the marks of context lines count as part of the lines, if the file has them."""
        hunk = place.hunk.with_context_unmarked(unmarked_lines(self.document, place.hunk, place.at))
        if hunk.lines == place.hunk.lines:
            return place
        level = next(level for level in range(FREEST + 1) if self.document.is_at(hunk.old, level, place.at))
        return evolve(place, hunk=hunk, level=level, notes=(*place.notes, UNMARKED))

    # Hunks that only add

    def _place_of_addition(self, hunk: Hunk) -> Place:
        end = len(self.document.lines)
        if hunk.start is not None:
            return Place(min(max(hunk.start + self.drift, self.cursor), end), hunk)
        anchors = self.anchors.named(hunk.anchors)
        if hunk.at_end or not anchors:
            return Place(end, hunk)
        for level, blocks, notes in self.anchors.blocks(anchors, self.cursor):
            lines = sorted(blocks)
            if len(lines) > 1 and not self.takes_first:
                raise Misfit(
                    f"its anchor {quoted(anchors[-1])} is in the file several times",
                    tuple(line + 1 for line in lines[: MAX_PLACES + 1]),
                )
            place = Place(lines[0] + 1, hunk, level, notes, lines[0])
            if self._is_free(place):
                return place
        raise self.anchors.unmatched(anchors)

    # Hunks with lines to find

    def _is_free(self, place: Place) -> bool:
        """Return whether this hunk and earlier ones do not change each other's lines or context."""
        if place.at >= self.taken_up_to:
            return True
        first, last = place.at, place.at + len(place.hunk.old)
        for start, stop in self.taken:
            if start < stop:
                if start < last and first < stop:
                    return False
            elif any(begin < start < end for begin, end in place.changes):
                return False
        return True

    def _free(self, hunk: Hunk, level: int, start: int) -> Iterator[int]:
        for at in self.document.places(hunk.old, level, start):
            if self._is_free(Place(at, hunk, level)):
                yield at

    def _at_end(self, hunk: Hunk) -> Place:
        at = len(self.document.lines) - len(hunk.old)
        for level in range(FREEST + 1):
            place = Place(at, hunk, level)
            if at >= 0 and self.document.is_at(hunk.old, level, at) and self._is_free(place):
                return place
        raise Misfit("its lines are not the last ones of the file")

    def _anywhere(self, hunk: Hunk, notes: tuple[str, ...] = ()) -> Place:
        """Find a hunk without an anchor, after the previous one; the two may share lines between them as context."""
        old = hunk.old
        for start in self._starts(hunk):
            for level in range(FREEST + 1):
                at = self.document.find(old, level, start)
                if at < 0:
                    continue
                place = Place(at, hunk, level, notes)
                if level > TRAILING_BLANKS:
                    self._refuse_above(hunk)
                if self._is_free(place) and (self.takes_first or not self.document.occurs_again(old, level, at)):
                    return place
                found = [*islice(self._free(hunk, level, start), MAX_PLACES + 1)]
                if len(found) > 1 and not self.takes_first:
                    raise self._several(found)
                if found:
                    return Place(found[0], hunk, level, notes)
        raise Misfit(self._why_not_free(hunk))

    def _refuse_above(self, hunk: Hunk) -> None:
        """Raise `Misfit` if a hunk that fits only loosely after the previous one fits exactly above that."""
        at = -1 if self.takes_first or not self.cursor else next(self._free(hunk, TRAILING_BLANKS, 0), -1)
        if 0 <= at < self.cursor:
            raise Misfit(
                f"it fits at line {at + 1}, above the place of the hunk before it, and below that only apart from "
                "indentation or typographic characters; put hunks in the order of the file",
                lines=(at + 1,),
                is_all=True,
            )

    def _starts(self, hunk: Hunk) -> Iterator[int]:
        """Yield where to search from: the previous hunk, then as many lines before it as the hunk has as context."""
        yield self.cursor
        lead = hunk.runs[0][0] if hunk.runs else 0
        if lead and self.cursor:
            yield max(0, self.cursor - lead)

    def _why_not_free(self, hunk: Hunk) -> str:
        """Return the reason if a hunk would fit except that an earlier one changes the same lines."""
        if not self.taken:
            return ""
        at = self.document.find(hunk.old, FREEST, 0)
        if at < 0 or self._is_free(Place(at, hunk)):
            return ""
        return f"it overlaps what an earlier hunk of the patch changes, at line {at + 1}; put both in one hunk"

    def _anchored(self, hunk: Hunk, anchors: list[str]) -> Place:
        """Find a hunk in the block of its anchor; elsewhere only if there is no other place."""
        named: list[int] = []
        for level, blocks, notes in self.anchors.blocks(anchors, self.cursor):
            named += blocks
            place = self._in_blocks(hunk, blocks, is_loose=level > TRAILING_BLANKS)
            if place is not None:
                return evolve(place, notes=notes)
        if not named:
            if len(anchors) > 1:
                raise self.anchors.unmatched(anchors)
            note = f"its anchor {quoted(anchors[0].strip())} is not in the file, and was ignored"
            return self._without_anchor(hunk, anchors, note)
        return self._beyond(hunk, named, anchors)

    def _without_anchor(self, hunk: Hunk, anchors: list[str], note: str) -> Place:
        try:
            return self._anywhere(hunk, (note,))
        except Misfit as error:
            unmatched = self.anchors.unmatched(anchors)
            if error.places:
                reason = unmatched.reason.partition(";")[0]
                raise Misfit(f"{reason}, and it fits in several places", error.places) from None
            raise error from None

    def _in_blocks(self, hunk: Hunk, blocks: Sequence[int], *, is_loose: bool) -> Place | None:
        """Find a hunk in one of the blocks that its anchor names; `is_loose` is true if the anchor matched loosely."""
        found: dict[int, int] = {}
        left = [*blocks]
        for level in range(FREEST + 1):
            for first in left:
                inside = [at for at in self._inside(hunk, level, first) if at not in found]
                if inside:
                    is_next = len(inside) == 1 or self.takes_first or self._is_next_to(inside[0], first)
                    found.update(dict.fromkeys(inside[:1] if is_next else inside, level))
            left = [first for first in left if not any(self._is_inside(hunk, at, first) for at in found)]
            if not left or (found and is_loose):
                break
        if len(found) > 1 and not self.takes_first:
            raise self._several(sorted(found))
        return Place(min(found), hunk, found[min(found)]) if found else None

    def _inside(self, hunk: Hunk, level: int, first: int) -> list[int]:
        start = max(0, first - len(hunk.old) + 1)
        inside: list[int] = []
        for at in self._free(hunk, level, start):
            if self._is_inside(hunk, at, first):
                inside.append(at)
            elif at > first:
                break
            if len(inside) > MAX_PLACES:
                break
        return inside

    def _is_inside(self, hunk: Hunk, at: int, first: int) -> bool:
        """Return whether a place begins in a block, or quotes its first line."""
        return at + len(hunk.old) > first and (at <= first or self.anchors.outline.contains(first, at))

    def _is_next_to(self, at: int, first: int) -> bool:
        """Return whether a place immediately follows the anchor, or quotes it."""
        return at <= first or not any(line.strip() for line in self.document.lines[first + 1 : at])

    def _beyond(self, hunk: Hunk, named: Sequence[int], anchors: Sequence[str]) -> Place:
        anchor = quoted(anchors[-1].strip())
        blocks = tuple((first, self.anchors.outline.end(first)) for first in named[:MAX_PLACES])
        first = named[0]
        places = [*islice(self._free(hunk, FREEST, 0), 2)]
        if len(places) > 1:
            where = f"it is not in the block of its anchor {anchor}, line {first + 1}, and fits in several places"
            raise Misfit(where, tuple(at + 1 for at in islice(self._free(hunk, FREEST, 0), MAX_PLACES + 1)))
        if not places:
            raise Misfit(self._why_not_free(hunk), blocks=blocks)
        at = places[0]
        if at < min(named):
            raise Misfit(
                f"its lines are at line {at + 1}, and its anchor {anchor} is at line {first + 1}, below them; "
                "give an anchor that is above its lines, or none",
                lines=(at + 1, first + 1),
                is_all=True,
            )
        self._refuse_near(hunk, at, blocks, anchor)
        level = next(level for level in range(FREEST + 1) if self.document.is_at(hunk.old, level, at))
        note = f"its place is outside the block of its anchor {anchor}, and is the only one"
        return Place(at, hunk, level, (note,))

    def _refuse_near(self, hunk: Hunk, at: int, blocks: Sequence[Block], anchor: str) -> None:
        """Raise `Misfit` for a place outside of blocks if something similar to the hunk is in one of them."""
        for first, end in blocks:
            near = similar_line(self.document, hunk, (first, end))
            if near is not None:
                raise Misfit(
                    f"its lines are at line {at + 1}, outside the block of its anchor {anchor} "
                    f"(lines {first + 1}-{end}), in which line {near + 1} is similar; read the file again, and correct "
                    "the anchor or the lines",
                    lines=(at + 1, near + 1),
                    is_all=True,
                )

    def _near(self, hunk: Hunk, stated: int) -> Place:
        """Find a hunk at the line that a diff names, or else at the place that is clearly nearest to it.

        The line is assumed to be as far off as that of the previous hunk. If the nearest place fits only loosely and
        another one exactly, it is in doubt which is meant.
        """
        if hunk.at_end:
            return self._at_end(hunk)
        old, expected = hunk.old, stated + self.drift
        for level in range(FREEST + 1):
            if expected >= 0 and self.document.is_at(old, level, expected):
                place = Place(expected, hunk, level)
                if self._is_free(place):
                    return place
        levels: dict[int, int] = {}
        start = max(0, self.cursor - len(old) + 1)
        for level in range(FREEST + 1):
            for at in islice(self._free(hunk, level, start), MOST_PLACES):
                if Place(at, hunk).cursor >= self.cursor:
                    levels.setdefault(at, level)
        if not levels:
            raise Misfit(self._why_not_free(hunk))
        at, *others = sorted(levels, key=lambda at: (abs(at - expected), levels[at], at))
        if others and not self.takes_first:
            is_clearly_nearest = abs(others[0] - expected) > CLEARLY * abs(at - expected)
            is_less_exact = levels[at] > TRAILING_BLANKS and any(levels[other] <= TRAILING_BLANKS for other in others)
            if not is_clearly_nearest or is_less_exact:
                at = self._under_heading(hunk, levels)
        named = self.anchors.named(hunk.anchors)[:1]
        headed = list(self.document.places(named, TRAILING_BLANKS, 0)) if named else []
        if len(headed) == 1 and not self.anchors.outline.contains(headed[0], at):
            self._refuse_near(hunk, at, [(headed[0], self.anchors.outline.end(headed[0]))], quoted(named[0].strip()))
        by = at - stated
        side = "below" if by > 0 else "above"
        note = f"its place is {abs(by)} line{'' if abs(by) == 1 else 's'} {side} the stated one"
        return Place(at, hunk, levels[at], (note,) if by else ())

    def _under_heading(self, hunk: Hunk, levels: dict[int, int]) -> int:
        """Choose among places by the heading that a diff gives after the line numbers."""
        for heading in self.anchors.named(hunk.anchors):
            lines = islice(self.document.places([heading], TRAILING_BLANKS, 0), MOST_PLACES)
            inside = {at for line in lines for at in levels if line < at and self.anchors.outline.contains(line, at)}
            if len(inside) == 1:
                return inside.pop()
        raise self._several(sorted(levels))

    def _several(self, places: Sequence[int]) -> Misfit:
        return Misfit("", tuple(at + 1 for at in places[: MAX_PLACES + 1]))
