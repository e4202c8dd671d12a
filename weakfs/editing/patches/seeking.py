"""Finding the one place of a file that a hunk means, or saying why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from attrs import frozen

from weakfs.editing.patches.document import Document
from weakfs.editing.patches.equivalences import LEVELS
from weakfs.editing.patches.errors import quoted
from weakfs.editing.patches.operations import Hunk

# A message names so many of the places where a hunk fits.
MAX_PLACES = 20

# What stands behind `@@` in a unified diff.
_NUMBERS = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?")

ANCHOR_MISSED = "anchor not found"


class Misfit(Exception):
    """A hunk has no place of its own; `places` are the lines (from 1) where it fits, if it does in several.

    `anchored` is the line of the anchor that it does not follow, `hunk` the hunk as it was read at last, `is_all`
    says that there is no more to tell than the reason.
    """

    def __init__(
        self, reason: str, places: tuple[int, ...] = (), *, anchored: int | None = None, is_all: bool = False
    ) -> None:
        self.reason = reason
        self.is_all = is_all
        self.places = places
        self.anchored = anchored
        self.hunk: Hunk | None = None
        super().__init__(reason)


@frozen
class Place:
    """Where a hunk goes: its first line (from 0), the hunk as it fitted there, in which way it did, and from
    where on the next one is searched."""

    at: int
    hunk: Hunk
    fit: str
    cursor: int


@frozen
class Seeker:
    """A search in one document from `cursor` on; `drift` is by how much earlier hunks of a diff moved the lines."""

    document: Document
    cursor: int
    drift: int = 0
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
        old = hunk.old
        if not old:
            return self._place_of_addition(hunk)
        if hunk.start is not None:
            return self._near(hunk, old, hunk.start - 1 + self.drift)
        anchors = self._named(hunk.anchors)
        found = self._anchors(anchors, self.cursor)
        if found is None and len(anchors) > 1:
            raise self._unmatched(anchors)
        if hunk.at_end:
            return self._at_end(hunk, old)
        if found is None:
            return self._anywhere(hunk, old, noted=bool(anchors))
        return self._behind(hunk, old, anchors, found)

    # Hunks that only add

    def _place_of_addition(self, hunk: Hunk) -> Place:
        end = len(self.document.lines)
        if hunk.start is not None:
            at = min(max(hunk.start + self.drift, self.cursor), end)
            return Place(at, hunk, LEVELS[0], at)
        anchors = self._named(hunk.anchors)
        found = self._anchors(anchors, self.cursor)
        if found is None and len(anchors) > 1:
            raise self._unmatched(anchors)
        if found is None and anchors and not hunk.at_end:
            self._refuse_anchor_above(anchors[0])
        if hunk.at_end or found is None:
            return Place(end, hunk, ANCHOR_MISSED if anchors and found is None else LEVELS[0], self.cursor)
        first, last, level = found
        others = self._lines_at(anchors[:1], level, first)
        again = self._anchors(anchors, first + 1, level)
        if again is not None and again[1] != last and not self.takes_first:
            raise Misfit(f"its anchor {quoted(anchors[0])} is in the file several times", others)
        return Place(last + 1, hunk, LEVELS[level], last + 1)

    def _refuse_anchor_above(self, anchor: str) -> None:
        above = self._line(anchor, 0, len(LEVELS) - 1)
        if above is not None:
            raise Misfit(
                f"its anchor {quoted(anchor)} is at line {above[0] + 1}, above the place of the hunk before it; "
                "put hunks in the order of the file",
                is_all=True,
            )

    # Anchors

    def _named(self, anchors: tuple[str, ...]) -> list[str]:
        """Give the lines that anchors name, less what stands around them as in a unified diff: numbers, `@@` behind."""
        named = [self._unmarked(_NUMBERS.sub("", anchor)) for anchor in anchors]
        return [anchor for anchor in named if anchor.strip()]

    def _unmarked(self, anchor: str) -> str:
        bare = anchor.rstrip().removesuffix(" @@")
        is_marked = bare != anchor.rstrip() and self._line(anchor, 0, len(LEVELS) - 1) is None
        return bare if is_marked else anchor

    def _anchors(self, anchors: list[str], start: int, most: int = len(LEVELS) - 1) -> tuple[int, int, int] | None:
        """Find lines one behind the other: where the first and the last are, and at which level the first matches."""
        first, level, at = -1, 0, start - 1
        for number, anchor in enumerate(anchors):
            found = self._line(anchor, at + 1, most if number == 0 else len(LEVELS) - 1)
            if found is None:
                return None
            at = found[0]
            if number == 0:
                first, level = found
        return (first, at, level) if anchors else None

    def _line(self, line: str, start: int, most: int) -> tuple[int, int] | None:
        for level in range(most + 1):
            at = self.document.find([line], level, start)
            if at >= 0:
                return at, level
        return None

    def _unmatched(self, anchors: list[str]) -> Misfit:
        at, where = self.cursor - 1, ""
        for anchor in anchors:
            found = self._line(anchor, at + 1, len(LEVELS) - 1)
            if found is None:
                return self._missing(anchor, where)
            at, where = found[0], f" below {quoted(anchor)}"
        raise AssertionError("one of the anchors was not found")

    def _missing(self, anchor: str, where: str) -> Misfit:
        above = self._line(anchor, 0, len(LEVELS) - 1)
        if above is None:
            return Misfit(f"its anchor {quoted(anchor)} is not in the file")
        where = where or " below the hunk before it"
        return Misfit(f"its anchor {quoted(anchor)} is not in the file{where}, only at line {above[0] + 1}")

    # Hunks with lines to find

    def _at_end(self, hunk: Hunk, old: list[str]) -> Place:
        at = len(self.document.lines) - len(old)
        if at >= self.cursor:
            for level, name in enumerate(LEVELS):
                if self.document.is_at(old, level, at):
                    return Place(at, hunk, name, at + len(old))
        raise Misfit("its lines are not the last ones of the file")

    def _anywhere(self, hunk: Hunk, old: list[str], *, noted: bool) -> Place:
        for level, name in enumerate(LEVELS):
            at = self.document.find(old, level, self.cursor)
            if at >= 0:
                if not self.takes_first and self.document.is_again(old, level, at):
                    raise self._several(old, level)
                return Place(at, hunk, f"{name}, {ANCHOR_MISSED}" if noted else name, at + len(old))
        raise Misfit("")

    def _behind(self, hunk: Hunk, old: list[str], anchors: list[str], found: tuple[int, int, int]) -> Place:
        """Find a hunk behind its anchors, or starting with the last of them."""
        first, last, anchored = found
        for level, name in enumerate(LEVELS):
            at = self.document.find(old, level, last)
            if at < 0:
                continue
            if not self.takes_first:
                again = self._anchors(anchors, max(first, at) + 1, anchored)
                other = -1 if again is None else self.document.find(old, level, again[1])
                if other >= 0:
                    raise Misfit("", (at + 1, other + 1))
            return Place(at, hunk, name, at + len(old))
        raise Misfit("", anchored=last + 1)

    def _near(self, hunk: Hunk, old: list[str], stated: int) -> Place:
        """Find a hunk at the line that a diff names, else wherever it fits."""
        if hunk.at_end:
            return self._at_end(hunk, old)
        for level, name in enumerate(LEVELS):
            if stated >= self.cursor and self.document.is_at(old, level, stated):
                return Place(stated, hunk, name, stated + len(old))
            at = self.document.find(old, level, self.cursor)
            if at >= 0:
                if not self.takes_first and self.document.is_again(old, level, at):
                    raise self._several(old, level)
                return Place(at, hunk, f"{name}, {at - stated:+d} lines", at + len(old))
        raise Misfit("")

    def _several(self, old: list[str], level: int) -> Misfit:
        return Misfit("", self._lines_at(old, level, self.cursor))

    def _lines_at(self, old: list[str], level: int, start: int) -> tuple[int, ...]:
        return tuple(islice(self._places(old, level, start), MAX_PLACES + 1))

    def _places(self, old: list[str], level: int, start: int) -> Iterator[int]:
        at = self.document.find(old, level, start)
        while at >= 0:
            yield at + 1
            at = self.document.find(old, level, at + 1)


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
