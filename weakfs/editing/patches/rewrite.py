"""Changing a document according to hunks: only lines that are removed or added are touched."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter

from attrs import evolve

from weakfs.editing.patches.document import BYTE_ORDER_MARK, Document, Placed
from weakfs.editing.patches.line_search.line_index import Run
from weakfs.editing.patches.matching.anchors import Anchors
from weakfs.editing.patches.matching.hunk_error import Misfit
from weakfs.editing.patches.matching.hunk_indentation import reindented
from weakfs.editing.patches.matching.outline import Outline
from weakfs.editing.patches.matching.placement import Place, Search
from weakfs.editing.patches.operations import Hunk
from weakfs.session.interruption import check_interrupted


class HunkMisfit(Exception):
    """Some hunks of an update have no place: `(number from 0, hunk, misfit, cursor)` of each."""

    def __init__(self, failures: list[tuple[int, Hunk, Misfit, int]]) -> None:
        self.failures = failures
        super().__init__(f"{len(failures)} hunks do not fit")


def rewrite(document: Document, hunks: Sequence[Hunk], *, takes_first: bool, most_failures: int) -> tuple[Place, ...]:
    """Find the places of all hunks, then change the document; return where each matched, and how.

    Raises `HunkMisfit`, with at most `most_failures` failures, before changing anything.
    """
    document.expect_hunks(len(hunks))
    is_diff = document.is_marked and any(hunk.start is not None for hunk in hunks)
    shows_mark = is_diff and any(_has_mark(hunk) for hunk in hunks)
    if shows_mark:
        document.show_mark()
    repeats = None if takes_first or not document.update_before else Repeats(document.update_before)
    try:
        places = _places(document, _unmarked(document, hunks), takes_first, most_failures, repeats)
        _change(document, places)
    finally:
        if shows_mark:
            document.hide_mark()
    document.update_before = places
    return tuple(places)


class Repeats:
    """The hunks of the previous update of a document, to refuse one that is given again for the same place.

    An update in between may have undone what they changed, so the ones before it do not count.
    """

    def __init__(self, earlier: Sequence[Placed]) -> None:
        # For the lines of a hunk: where their first change begins, where the hunk ends, and its line in the patch.
        self._known: dict[tuple[str, ...], list[tuple[int, int, int]]] = {}
        shift = 0
        for place in sorted(earlier, key=_first_change):
            hunk, first = place.hunk, _first_change(place) + shift
            self._known.setdefault(hunk.lines, []).append((first, first + len(hunk.new), hunk.line))
            shift += len(hunk.new) - len(hunk.old)

    def check(self, place: Place) -> None:
        """Raise `Misfit` if an earlier hunk added the same lines where this one would add them. O(log hunks)."""
        known = self._known.get(place.hunk.lines)
        if known is None or not place.hunk.runs:
            return
        first = _first_change(place)
        nearest = bisect_right(known, first, key=itemgetter(0)) - 1
        if nearest >= 0 and first <= known[nearest][1]:
            what = f"the hunk on line {known[nearest][2]} of the patch is the same, at the same place, and was applied"
            raise Misfit(f"{what} already; leave one of them out", is_all=True)


def _first_change(place: Placed) -> int:
    runs = place.hunk.runs
    return place.at + (runs[0][0] if runs else 0)


def _has_mark(hunk: Hunk) -> bool:
    return any(line[1:2] == BYTE_ORDER_MARK for line in hunk.lines)


def _unmarked(document: Document, hunks: Sequence[Hunk]) -> Sequence[Hunk]:
    """Return the hunks without byte order marks if the document holds its own separately from its lines."""
    if not document.is_marked:
        return hunks
    return [
        evolve(hunk, lines=tuple(line[0] + line[1:].removeprefix(BYTE_ORDER_MARK) for line in hunk.lines))
        if _has_mark(hunk)
        else hunk
        for hunk in hunks
    ]


def _places(
    document: Document, hunks: Sequence[Hunk], takes_first: bool, most_failures: int, repeats: Repeats | None
) -> list[Place]:
    search = Search(document, Anchors(document, Outline(document)), takes_first)
    places: list[Place] = []
    failures: list[tuple[int, Hunk, Misfit, int]] = []
    known: dict[tuple[int, tuple[str, ...]], int] = {}
    for number, hunk in enumerate(hunks):
        check_interrupted()
        try:
            place = reindented(document, search.place(hunk))
            if repeats is not None:
                repeats.check(place)
            same = known.setdefault((place.at, place.hunk.lines), number)
            if same != number and not takes_first:
                raise Misfit(f"hunk {same + 1} is the same, at the same place; leave one of them out", is_all=True)
        except Misfit as error:
            failures.append((number, error.hunk or hunk, error, search.cursor))
            if len(failures) >= most_failures:
                break
        else:
            places.append(place)
            search.take(place)
    if failures:
        raise HunkMisfit(failures)
    return places


def _change(document: Document, places: list[Place]) -> None:
    has_returns = "\r" in "".join(["".join(place.hunk.lines) for place in places])
    is_diff = has_returns and any(place.hunk.start is not None for place in places)
    # All hunks of a diff were made in the same way, so the line endings of one may show how to read another.
    meant = is_diff and _means_returns(document, places)
    runs: list[Run] = []
    for place in places:
        at, means_returns = place.at, meant or (has_returns and _means_returns(document, [place]))
        for start, stop, added in place.hunk.runs:
            lines = added if means_returns else _with_endings(document, at + start, at + stop, added)
            runs.append((at + start, at + stop, lines))
    runs.sort(key=itemgetter(0, 1))
    unended = [place for place in places if place.hunk.old_unended or place.hunk.new_unended]
    was_last = len(document.lines) if unended else 0
    document.replace(_apart(runs))
    for place in unended:
        hunk = place.hunk
        if place.at + len(hunk.old) == was_last:
            document.ended = not hunk.new_unended
            document.ends_in_return = hunk.new_unended and hunk.new[-1].endswith("\r")


def _apart(runs: list[Run]) -> list[Run]:
    """Join runs that insert at the same place, in their order."""
    made: list[Run] = []
    for run in runs:
        if made and run[0] == made[-1][1] == made[-1][0]:
            made[-1] = (run[0], run[1], made[-1][2] + run[2])
        else:
            made.append(run)
    return made


def _means_returns(document: Document, places: Sequence[Place]) -> bool:
    """Return whether hunks contain carriage returns, and on the same lines as the file."""
    if not any("\r" in "".join(place.hunk.lines) for place in places):
        return False
    return all(
        line.endswith("\r") == document.has_return(at)
        for place in places
        for at, line in enumerate(place.hunk.old, place.at)
    )


def _with_endings(document: Document, start: int, stop: int, added: list[str]) -> list[str]:
    """Give each added line the line ending of the line that it replaces, or else of the one before or after it."""
    added = [line.removesuffix("\r") for line in added]
    if not document.has_returns:
        return added
    lines = document.lines
    made: list[str] = []
    for number, line in enumerate(added):
        nearest = start + number if start + number < stop else stop - 1
        if nearest < 0:
            nearest = 0
        made.append(line + "\r" if lines and lines[min(nearest, len(lines) - 1)].endswith("\r") else line)
    return made
