"""Replace the blocks of a SEARCH/REPLACE patch in a document: whole lines, otherwise by the rules of `replace`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weakfs.editing.hints.refusals import AmbiguousTarget, EditError, TargetNotFound
from weakfs.editing.patches.document import BYTE_ORDER_MARK, Document
from weakfs.editing.patches.errors import RETURNS_ALONE, PatchProblem
from weakfs.editing.patches.line_search.line_index import Run, spliced
from weakfs.editing.patches.line_search.text_search import text_pieces
from weakfs.editing.patches.operations import Block
from weakfs.editing.replacement import InexactSearches, Piece, replace
from weakfs.editing.unified_hunks import changes
from weakfs.session.interruption import check_interrupted

# The maximum number of places whose lines an error lists, and that its message names.
MAX_LINES = 1000
MAX_LINES_NAMED = 20

ADDED = -1


class BlockMisfit(Exception):
    """Some blocks of an update were refused, each with its reason."""

    def __init__(self, failures: Sequence[tuple[Block, EditError]]) -> None:
        self.failures = failures
        super().__init__(f"{len(failures)} blocks do not fit")

    def problems(self, path: str, *, may_quote: bool) -> Iterator[PatchProblem]:
        """Yield the problem of each block, without quotes of the file if it may not be quoted."""
        for block, failure in self.failures:
            error = failure if may_quote else failure.without_quotes()
            message = f"{path}: block {block.number}, line {block.line} of the patch, does not fit: {error.reason}"
            yield PatchProblem("hunk_rejected", message, path, block.line, block.number, error.lines)


def replace_blocks(
    document: Document, blocks: Sequence[Block], *, takes_first: bool, most_failures: int
) -> tuple[str, ...]:
    """Replace blocks in order, each in the result of the previous ones, and return how each matched.

    Raises `BlockMisfit` with at most `most_failures` failures; the document must not be used afterwards. O(blocks *
    lines) as fast as copying, and in addition O(text) for each inexact block, up to a limit.
    """
    was_changed, before = document.is_changed, [*document.lines]
    # The original number of each line, so that all changes can be recorded as one.
    origins = list(range(len(before)))
    fits: list[str] = []
    failures: list[tuple[Block, EditError]] = []
    known: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    searches = InexactSearches()
    for block in blocks:
        check_interrupted()
        try:
            runs, fit = _place(document, block, searches, takes_first=takes_first)
            same = known.setdefault((tuple(block.old), tuple(block.new)), block.number)
            if same != block.number and not takes_first:
                what = f"block {same} is the same, and was applied already; leave one of them out"
                raise TargetNotFound(what, lines=(), matches=0)
        except EditError as error:
            failures.append((block, error))
            if len(failures) >= most_failures:
                break
            continue
        document.replace(runs)
        origins = spliced(origins, [(start, stop, [ADDED] * len(lines)) for start, stop, lines in runs])
        fits.append(fit)
    if failures:
        raise BlockMisfit(failures)
    if not was_changed:
        document.pieces = list(text_pieces(before, _all_runs(document.lines, [*origins, len(before)])))
    return tuple(fits)


def _all_runs(lines: Sequence[str], origins: Sequence[int]) -> list[Run]:
    """Return the runs that turn the original lines into these; `origins` ends with the number of original lines."""
    runs: list[Run] = []
    at = start = 0
    for number, origin in enumerate(origins):
        if origin != ADDED:
            if origin > at or number > start:
                runs.append((at, origin, list(lines[start:number])))
            at, start = origin + 1, number + 1
    return runs


def _place(document: Document, block: Block, searches: InexactSearches, *, takes_first: bool) -> tuple[list[Run], str]:
    """Return the runs of lines to replace for a block, and how it matched. Raises `EditError` if it does not match."""
    old, new = block.old, block.new
    if document.is_marked:
        old, new = _unmarked(old), _unmarked(new)
    at = document.find(old, 0, 0)
    if at < 0:
        text = "".join([line + "\n" for line in document.lines])
        searches.add(len(text))
        return _place_equivalent(text, old, new, takes_first=takes_first)
    if not takes_first and document.occurs_again(old, 0, at):
        raise _ambiguous(list(_places(document, old, at)))
    return list(_runs(document, at, old, new)), "exact"


def _unmarked(lines: list[str]) -> list[str]:
    return [line.removeprefix(BYTE_ORDER_MARK) for line in lines[:1]] + lines[1:]


def _places(document: Document, old: Sequence[str], at: int) -> Iterator[int]:
    found = 0
    while at >= 0 and found <= MAX_LINES:
        yield at
        found += 1
        at = document.find(old, 0, at + 1)


def _ambiguous(places: Sequence[int]) -> AmbiguousTarget:
    lines = [at + 1 for at in places[:MAX_LINES]]
    count = f"{len(places)}" if len(places) <= MAX_LINES else f"more than {MAX_LINES}"
    *others, last = map(str, lines[: MAX_LINES_NAMED + 1])
    numbers = f"{', '.join(others)} and {last if len(lines) <= MAX_LINES_NAMED else 'more'}"
    return AmbiguousTarget(
        f"the text to replace is in the file {count} times, on lines {numbers}; "
        "give more lines around the intended place",
        lines=tuple(lines),
        matches=len(places),
    )


def _runs(document: Document, at: int, old: Sequence[str], new: Sequence[str]) -> Iterator[Run]:
    """Yield the runs of the lines that differ, each new line with the line ending of the one that it replaces."""
    for start, stop, new_start, new_stop in changes(_encoded(old), _encoded(new)):
        made: list[str] = []
        for number, line in enumerate(new[new_start:new_stop], at + start):
            nearest = max(0, min(number, at + stop - 1))
            made.append(line + "\r" if document.lines[nearest].endswith("\r") else line)
        yield at + start, at + stop, made


def _encoded(lines: Sequence[str]) -> list[bytes]:
    return [line.encode("utf-8", "surrogatepass") for line in lines]


def _place_equivalent(text: str, old: Sequence[str], new: Sequence[str], *, takes_first: bool) -> tuple[list[Run], str]:
    """Find a block by the equivalence of `replace`, if the match consists of whole lines.

    The line break before the text to find keeps `replace` from accepting an exact match inside a line.
    """
    wanted, inserted = "\n".join(["", *old, ""]), "\n".join(["", *new, ""])
    pieces, fit = _whole_lines(text, wanted, inserted)
    if not pieces:
        raise _missing(text, "\n".join(old), "\n".join(new))
    first = text.index("\n", pieces[0][0]) + 1
    if len(pieces) == 1 and first < pieces[0][1]:
        # Another match may begin inside the only one.
        overlapping, _ = _whole_lines(text[first:], wanted, inserted)
        pieces += [(first + start, first + stop, put) for start, stop, put in overlapping]
    if len(pieces) > 1 and not takes_first:
        raise _ambiguous([text.count("\n", 0, start) for start, _, _ in pieces])
    return list(_runs_of_piece(text, pieces[0], old, new)), fit


def _whole_lines(text: str, old: str, new: str) -> tuple[list[Piece], str]:
    try:
        found = replace(text, old, new, replace_all=True)
    except TargetNotFound:
        return [], ""
    return [piece for piece in found.pieces if _is_whole_lines(text, piece)], found.overlooked or "exact"


def _is_whole_lines(text: str, piece: Piece) -> bool:
    start, stop, _ = piece
    first, end = _line_borders(text, start, stop)
    return not text[first:start].strip() and not text[stop:end].strip()


def _line_borders(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return where the line of `start` begins, and where that of `stop` ends, before its `\\n`."""
    return text.rfind("\n", 0, start) + 1, text.index("\n", stop)


def _runs_of_piece(text: str, piece: Piece, old: Sequence[str], new: Sequence[str]) -> Iterator[Run]:
    start, stop, inserted = piece
    first, end = _line_borders(text, start, stop)
    at = text.count("\n", 0, first)
    there = text[first:end].split("\n")
    if any(map(str.strip, new)):
        made = (text[first:start] + inserted + text[stop:end]).split("\n")
    else:
        # Blank lines around the old text are not part of the match, and are still there.
        made = [line + "\r" if there[-1].endswith("\r") else line for line in new[_blank_around(old) :]]
    for i, x, j, y in changes(_encoded(there), _encoded(made)):
        yield at + i, at + x, made[j:y]


def _blank_around(lines: Sequence[str]) -> int:
    with_text = [number for number, line in enumerate(lines) if line.strip()]
    return len(lines) - (with_text[-1] + 1 - with_text[0])


def _missing(text: str, old: str, new: str) -> EditError:
    """Return the refusal for lines that were not found; `replace` determines what may have been meant."""
    try:
        start, _, _ = next(replace(text, old, new).pieces)
        lines: tuple[int, ...] = (text.count("\n", 0, start) + 1,)
    except AmbiguousTarget as error:
        lines = error.lines
    except EditError as error:
        return error
    if "\r" in text.replace("\r\n", ""):
        return TargetNotFound(RETURNS_ALONE, lines=lines, matches=0)
    return TargetNotFound(
        f"the text to replace is not in it as whole lines, only as part of others, as on line {lines[0]}; give "
        "those lines as they are, from start to end",
        lines=lines,
        matches=0,
    )
