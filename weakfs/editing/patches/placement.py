"""Finding the one place of a file that a hunk means, or saying why there is none.

A place is found in this order: where the anchor or the header of the hunk says, from exact to forgiving; elsewhere
only if there is no other. What fits in several places is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from attrs import evolve, frozen

from weakfs.editing.normalization import is_inside_word
from weakfs.editing.patches.document import Document
from weakfs.editing.patches.equivalences import FOLDS, LEVELS
from weakfs.editing.patches.errors import quoted
from weakfs.editing.patches.operations import Hunk
from weakfs.editing.patches.outline import Outline
from weakfs.editing.similarity import alike

# A message names so many of the places where a hunk fits.
MAX_PLACES = 20
# So many lines that an anchor may name are looked at, and places of a hunk in a diff.
MAX_ANCHORS = 1000
# Of a block so many lines are looked through for what a hunk nearly is, and of the hunk so many.
MOST_COMPARED = 400
MOST_LINES = 40
NEARLY = 0.5
# A place of a diff is the nearest to the stated line if the next one is so many times further away.
CLEARLY = 10

EXACT = LEVELS.index("exact")
BLANKS_PASSED = LEVELS.index("trailing blanks")
FREEST = len(LEVELS) - 1

# What stands behind `@@` in a unified diff, and what stands for no line at all.
_NUMBERS = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?")
_NO_ANCHOR = re.compile(r"[\s.…@]*")

# A line of an anchor: where it is (from 0), and where the block ends that it names.
Block = tuple[int, int]
# Lines that a hunk changes: from which to before which, the same twice where others only come.
Span = tuple[int, int]

UNMARKED = "its context lines have no ' ' in front: start each of them with a ' '"


class Misfit(Exception):
    """A hunk has no place of its own; `places` are the lines (from 1) where it fits, if it does in several.

    `lines` are others that the reason names, `blocks` those (from 0) in which an anchor wants it, `hunk` is the hunk
    as it was read at last. `is_all` says that there is no more to tell than the reason.
    """

    def __init__(
        self,
        reason: str,
        places: tuple[int, ...] = (),
        *,
        lines: tuple[int, ...] = (),
        blocks: tuple[Block, ...] = (),
        is_all: bool = False,
    ) -> None:
        self.reason = reason
        self.is_all = is_all
        self.places = places
        self.lines = lines
        self.blocks = blocks
        self.hunk: Hunk | None = None
        super().__init__(reason)


@frozen
class Place:
    """Where a hunk goes: its first line (from 0), the hunk as it fitted there, and how far it was folded for that.

    `notes` say what else was passed over. An addition names the line of its `anchor` (from 0).
    """

    at: int
    hunk: Hunk
    level: int = EXACT
    notes: tuple[str, ...] = ()
    anchor: int | None = None

    @property
    def changes(self) -> Iterator[Span]:
        """Give the lines that go, or between which others come: from which to before which."""
        at = start = self.at
        is_changing = False
        for line in (*self.hunk.lines, " "):
            if line[0] == " ":
                if is_changing:
                    yield start, at
                at += 1
                start, is_changing = at, False
            else:
                is_changing = True
                at += line[0] == "-"

    @property
    def cursor(self) -> int:
        """The line behind the last changed one."""
        return max((stop for _, stop in self.changes), default=self.at + len(self.hunk.old))


@frozen
class Search:
    """A search in one document from `cursor` on.

    `drift` is by how much earlier hunks of a diff were beside their stated lines, `taken` the lines that earlier hunks
    change.
    """

    document: Document
    outline: Outline
    cursor: int = 0
    drift: int = 0
    taken: Sequence[Span] = ()
    takes_first: bool = False

    def place(self, hunk: Hunk) -> Place:
        """Find where a hunk goes. Raises `Misfit`. O(file), whatever repeats in it."""
        *others, last = _readings(hunk)
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
        failure = Misfit("")
        found = None
        try:
            found = self._place_of(hunk)
        except Misfit as error:
            failure = error
        if found is not None and found.level <= BLANKS_PASSED:
            return evolve(found, notes=(*found.notes, UNMARKED)) if hunk.unmarked else found
        unmarked = self._as_unmarked(hunk)
        if unmarked is not None:
            return unmarked
        # Lines without a mark are context only where they stand to the letter.
        if found is None or hunk.unmarked:
            raise failure
        return found

    def _place_of(self, hunk: Hunk) -> Place:
        if hunk.start is not None:
            return self._near(hunk, hunk.start - 1 + self.drift)
        if hunk.at_end:
            return self._at_end(hunk)
        anchors = self._named(hunk.anchors)
        return self._anchored(hunk, anchors) if anchors else self._anywhere(hunk)

    def _as_unmarked(self, hunk: Hunk) -> Place | None:
        """Find a hunk whose context was given without the blank that marks it, where it stands to the letter."""
        wanted = hunk.with_context_unmarked()
        if hunk.start is not None or wanted.lines == hunk.lines:
            return None
        try:
            found = self._place_of(wanted)
        except Misfit:
            return None
        return evolve(found, notes=(*found.notes, UNMARKED)) if found.level <= BLANKS_PASSED else None

    # Hunks that only add

    def _place_of_addition(self, hunk: Hunk) -> Place:
        end = len(self.document.lines)
        if hunk.start is not None:
            return Place(min(max(hunk.start + self.drift, self.cursor), end), hunk)
        anchors = self._named(hunk.anchors)
        if hunk.at_end or not anchors:
            return Place(end, hunk)
        for level, blocks, notes in self._named_blocks(anchors):
            lines = sorted({first for first, _ in blocks})
            if len(lines) > 1 and not self.takes_first:
                raise Misfit(
                    f"its anchor {quoted(anchors[-1])} is in the file several times",
                    tuple(line + 1 for line in lines[: MAX_PLACES + 1]),
                )
            place = Place(lines[0] + 1, hunk, level, notes, lines[0])
            if self._is_free(place):
                return place
        raise self._unmatched(anchors)

    # Anchors

    def _named(self, anchors: tuple[str, ...]) -> list[str]:
        """Give the lines that anchors name, less what stands around them as in a unified diff: numbers, `@@` behind."""
        named = [self._unmarked(_NUMBERS.sub("", anchor)) for anchor in anchors]
        return [anchor for anchor in named if not _NO_ANCHOR.fullmatch(anchor)]

    def _unmarked(self, anchor: str) -> str:
        bare = anchor.rstrip().removesuffix("@@").rstrip()
        is_marked = bare != anchor.rstrip() and self.document.find([anchor], FREEST, 0) < 0
        return bare if is_marked else anchor

    def _named_blocks(self, anchors: Sequence[str]) -> Iterator[tuple[int, list[Block], tuple[str, ...]]]:
        """Go through the blocks that anchors name, with how freely they were read and what is to be said of that.

        Lines behind the hunk before come first, then those above; at last a line of which an anchor is the beginning.
        """
        end = len(self.document.lines)
        seen: set[Block] = set()
        for start, stop in ((self.cursor, end), (0, self.cursor)):
            for level in range(FREEST + 1):
                lines = [*islice(self.document.places(anchors[:1], level, start, stop), MAX_ANCHORS)]
                blocks = [block for block in self._nested(anchors, lines) if block not in seen]
                seen.update(blocks)
                if blocks:
                    yield level, blocks, ()
        if not seen:
            block, notes = self._by_beginning(anchors)
            if block is not None:
                yield FREEST, [block], notes

    def _nested(self, anchors: Sequence[str], lines: Sequence[int]) -> list[Block]:
        """Give the blocks of the last anchor, each inside one of the anchor before it; the first is at these lines."""
        blocks = [(line, self.outline.end(line)) for line in lines]
        for anchor in anchors[1:]:
            inner: dict[Block, None] = {}
            reached = -1
            for first, end in blocks:
                # What a former block had is not looked up again.
                for line in self._lines_inside(anchor, max(first, reached), end):
                    inner[(line, self.outline.end(line))] = None
                    reached = max(reached, line)
            blocks = [*islice(inner, MAX_ANCHORS)]
        return blocks

    def _lines_inside(self, anchor: str, first: int, end: int) -> list[int]:
        for level in range(FREEST + 1):
            lines = [*islice(self.document.places([anchor], level, first + 1, end), MAX_ANCHORS)]
            if lines:
                return lines
        return []

    def _by_beginning(self, anchors: Sequence[str]) -> tuple[Block | None, tuple[str, ...]]:
        """Give the block of anchors of which some are only the beginning of a line, if each can be but one line."""
        start, stop = 0, len(self.document.lines)
        notes: list[str] = []
        block: Block | None = None
        for anchor in anchors:
            lines = self._lines_inside(anchor, start - 1, stop)
            if not lines:
                lines = self._beginning_with(anchor, start, stop)
                if len(lines) == 1:
                    text = quoted(self.document.lines[lines[0]].strip())
                    notes.append(f"its anchor {quoted(anchor.strip())} was taken for line {lines[0] + 1}, {text}")
            if len(lines) != 1:
                return None, ()
            block = lines[0], self.outline.end(lines[0])
            start, stop = block[0] + 1, block[1]
        return block, tuple(notes)

    def _beginning_with(self, anchor: str, start: int, stop: int) -> list[int]:
        (wanted,) = FOLDS[FREEST]([anchor])
        wanted = wanted.rstrip(":{( ")
        if sum(map(str.isalnum, wanted)) < 3:
            return []
        folded = FOLDS[FREEST](self.document.lines[start:stop])
        return [
            at
            for at, line in enumerate(folded, start)
            if line.startswith(wanted) and not is_inside_word(line, len(wanted))
        ]

    def _unmatched(self, anchors: list[str]) -> Misfit:
        at, where = -1, ""
        for anchor in anchors:
            end = self.outline.end(at) if at >= 0 else len(self.document.lines)
            lines = self._lines_inside(anchor, at, end) or self._beginning_with(anchor, at + 1, end)
            if not lines:
                return self._missing(anchor, where)
            if len(lines) > 1 and not self._lines_inside(anchor, at, end):
                named = ", ".join(str(line + 1) for line in lines[:MAX_PLACES])
                return Misfit(
                    f"its anchor {quoted(anchor)} is not a line of the file, and several begin like it, lines {named}; "
                    "give the whole line",
                    lines=tuple(line + 1 for line in lines[:MAX_PLACES]),
                    is_all=True,
                )
            at, where = lines[0], f" in the block of {quoted(anchor)}, line {lines[0] + 1}"
        # All are there, and an earlier hunk changes what is there.
        return Misfit(
            f"an earlier hunk changes the lines at its anchor {quoted(anchors[-1])}; put both in one hunk",
            lines=(at + 1,),
            is_all=True,
        )

    def _missing(self, anchor: str, where: str) -> Misfit:
        elsewhere = self.document.find([anchor], FREEST, 0)
        if elsewhere < 0 or not where:
            return Misfit(f"its anchor {quoted(anchor)} is not in the file")
        return Misfit(f"its anchor {quoted(anchor)} is not{where}, but at line {elsewhere + 1}", lines=(elsewhere + 1,))

    # Hunks with lines to find

    def _is_free(self, place: Place) -> bool:
        """Tell whether no earlier hunk changes what this one quotes, nor this one what lies around their lines."""
        first, last = place.at, place.at + len(place.hunk.old)
        for start, stop in self.taken:
            if start < stop:
                if start < last and first < stop:
                    return False
            elif any(begin < start < end for begin, end in place.changes):
                return False
        return True

    def _free(self, hunk: Hunk, level: int, start: int, stop: int | None = None) -> Iterator[int]:
        for at in self.document.places(hunk.old, level, start, stop):
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
        """Find a hunk without an anchor, behind the one before it; both may have lines between them as context."""
        lead = next((at for at, line in enumerate(hunk.lines) if line[0] != " "), 0)
        for start in dict.fromkeys((self.cursor, max(0, self.cursor - lead))):
            for level in range(FREEST + 1):
                found = [*islice(self._free(hunk, level, start), 1 if self._is_only(hunk, level, start) else 2)]
                if len(found) > 1 and not self.takes_first:
                    raise self._several([*islice(self._free(hunk, level, start), MAX_PLACES + 1)])
                if found:
                    return Place(found[0], hunk, level, notes)
        raise Misfit(self._why_not_free(hunk))

    def _is_only(self, hunk: Hunk, level: int, start: int) -> bool:
        at = self.document.find(hunk.old, level, start)
        return at < 0 or not self.document.is_again(hunk.old, level, at)

    def _why_not_free(self, hunk: Hunk) -> str:
        """Say that a hunk would fit, but for the lines that an earlier one changes."""
        if not self.taken:
            return ""
        at = self.document.find(hunk.old, FREEST, 0)
        if at < 0 or self._is_free(Place(at, hunk)):
            return ""
        return f"it overlaps what an earlier hunk of the patch changes, at line {at + 1}; put both in one hunk"

    def _anchored(self, hunk: Hunk, anchors: list[str]) -> Place:
        """Find a hunk in the block of its anchor; beyond that only if there is no other place."""
        named: list[Block] = []
        for level, blocks, notes in self._named_blocks(anchors):
            named += blocks
            place = self._in_blocks(hunk, blocks, is_loose=level > BLANKS_PASSED)
            if place is not None:
                return evolve(place, notes=notes)
        if not named:
            if len(anchors) > 1:
                raise self._unmatched(anchors)
            note = f"its anchor {quoted(anchors[0].strip())} is not in the file, and was passed over"
            return self._without_anchor(hunk, anchors, note)
        return self._beyond(hunk, named, anchors)

    def _without_anchor(self, hunk: Hunk, anchors: list[str], note: str) -> Place:
        try:
            return self._anywhere(hunk, (note,))
        except Misfit as error:
            unmatched = self._unmatched(anchors)
            if error.places:
                reason = unmatched.reason.partition(";")[0]
                raise Misfit(f"{reason}, and it fits in several places", error.places) from None
            raise error from None

    def _in_blocks(self, hunk: Hunk, blocks: Sequence[Block], *, is_loose: bool) -> Place | None:
        """Find a hunk in one of the blocks that its anchor names; `is_loose` says that the anchor fitted freely."""
        found: dict[int, int] = {}
        for level in range(FREEST + 1):
            if found and is_loose:
                break
            for block in blocks:
                inside = [at for at in self._inside(hunk, level, block) if at not in found]
                if inside and not any(self._is_inside(hunk, at, block) for at in found):
                    near = inside[0]
                    is_next = len(inside) == 1 or self.takes_first or self._is_next_to(near, hunk, block)
                    found.update(dict.fromkeys([near] if is_next else inside, level))
        if len(found) > 1 and not self.takes_first:
            raise self._several(sorted(found))
        return Place(min(found), hunk, found[min(found)]) if found else None

    def _inside(self, hunk: Hunk, level: int, block: Block) -> list[int]:
        start = max(0, block[0] - len(hunk.old) + 1)
        places = self._free(hunk, level, start, block[1])
        return [*islice((at for at in places if self._is_inside(hunk, at, block)), MAX_PLACES + 1)]

    def _is_inside(self, hunk: Hunk, at: int, block: Block) -> bool:
        """Tell whether a place changes lines in a block, or quotes its first line."""
        first, end = block
        changed, stop = next(Place(at, hunk).changes, (at, at + 1))
        return at + len(hunk.old) > first and (changed < end or changed == stop == end)

    def _is_next_to(self, at: int, hunk: Hunk, block: Block) -> bool:
        """Tell whether a place follows the anchor at once, or quotes it."""
        return at <= block[0] or not any(line.strip() for line in self.document.lines[block[0] + 1 : at])

    def _beyond(self, hunk: Hunk, named: Sequence[Block], anchors: Sequence[str]) -> Place:
        anchor = quoted(anchors[-1].strip())
        blocks = tuple(named)
        first, end = named[0]
        places = [*islice(self._free(hunk, FREEST, 0), 2)]
        if len(places) != 1:
            raise Misfit(self._why_not_free(hunk), blocks=blocks)
        at = places[0]
        if at < min(block[0] for block in blocks):
            raise Misfit(
                f"its lines are at line {at + 1}, and its anchor {anchor} is at line {first + 1}, below them; "
                "give an anchor that is above its lines, or none",
                lines=(at + 1, first + 1),
                is_all=True,
            )
        near = next((line for block in blocks[:MAX_PLACES] if (line := self._nearly(hunk, block)) is not None), None)
        if near is not None:
            raise Misfit(
                f"its lines are at line {at + 1}, outside the block of its anchor {anchor} (lines {first + 1}-{end}), "
                f"in which line {near + 1} is similar; read the file again, and correct the anchor or the lines",
                lines=(at + 1, near + 1),
                is_all=True,
            )
        level = next(level for level in range(FREEST + 1) if self.document.is_at(hunk.old, level, at))
        note = f"its place is outside the block of its anchor {anchor}, and is the only one"
        return Place(at, hunk, level, (note,))

    def _nearly(self, hunk: Hunk, block: Block) -> int | None:
        """Give a line of a block where a hunk nearly stands, `None` where nothing is like it."""
        old = [line.strip() for line in hunk.old if any(map(str.isalnum, line))][:MOST_LINES]
        wanted = [line.strip() for line in (line[1:] for line in hunk.lines if line[0] == "-") if line.strip()]
        lines = [line.strip() for line in self.document.lines[block[0] + 1 : min(block[1], block[0] + MOST_COMPARED)]]
        held = set(lines)
        if old and sum(line in held for line in old) * 2 > len(old):
            return block[0] + 1 + next(at for at, line in enumerate(lines) if line in old)
        for line in wanted[:4]:
            for at, other in enumerate(lines):
                if other and (other == line or alike(other, line) >= NEARLY):
                    return block[0] + 1 + at
        return None

    def _near(self, hunk: Hunk, stated: int) -> Place:
        """Find a hunk at the line that a diff names, else at the one place that is clearly nearest to it."""
        if hunk.at_end:
            return self._at_end(hunk)
        old = hunk.old
        for level in range(FREEST + 1):
            if stated >= 0 and self.document.is_at(old, level, stated):
                place = Place(stated, hunk, level)
                if self._is_free(place):
                    return place
        levels: dict[int, int] = {}
        start = max(0, self.cursor - len(old) + 1)
        for level in range(FREEST + 1):
            for at in islice(self._free(hunk, level, start), MAX_ANCHORS):
                if Place(at, hunk).cursor >= self.cursor:
                    levels.setdefault(at, level)
        if not levels:
            raise Misfit(self._why_not_free(hunk))
        at, *others = sorted(levels, key=lambda at: (abs(at - stated), levels[at], at))
        if others and not self.takes_first and abs(others[0] - stated) < CLEARLY * abs(at - stated):
            at = self._under_heading(hunk, levels)
        by = at - stated
        note = (
            f"its place is {abs(by)} line{'' if abs(by) == 1 else 's'} {'below' if by > 0 else 'above'} the stated one"
        )
        return Place(at, hunk, levels[at], (note,))

    def _under_heading(self, hunk: Hunk, levels: dict[int, int]) -> int:
        """Choose among places by the heading that a diff gives behind the numbers."""
        for heading in self._named(hunk.anchors):
            lines = islice(self.document.places([heading], BLANKS_PASSED, 0), MAX_ANCHORS)
            inside = {at for line in lines for at in levels if line < at < self.outline.end(line)}
            if len(inside) == 1:
                return inside.pop()
        raise self._several(sorted(levels))

    def _several(self, places: Sequence[int]) -> Misfit:
        return Misfit("", tuple(at + 1 for at in places[: MAX_PLACES + 1]))


def _readings(hunk: Hunk) -> Iterator[Hunk]:
    """Give what a hunk may mean: its empty lines at both ends as context, then only as what separates hunks."""
    first, last = hunk.leading_blanks, hunk.trailing_blanks
    if hunk.is_blank:
        yield hunk
        return
    # Around lines that only come, empty lines separate hunks: as context they would draw it to any blank line.
    if all(line[0] == "+" for line in hunk.lines[first : len(hunk.lines) - last]):
        yield hunk.without_blanks(first, last)
        return
    for leading in dict.fromkeys((0, first)):
        for trailing in dict.fromkeys((0, min(1, last), last)):
            yield hunk.without_blanks(leading, trailing)
