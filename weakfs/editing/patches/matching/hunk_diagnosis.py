"""The diagnosis of a hunk that does not fit: the reason from its search, and what is wrong with the quoted lines."""

from __future__ import annotations

from difflib import SequenceMatcher
from functools import cached_property
from itertools import islice

from weakfs.class_decorators import frozen
from weakfs.editing.hints.diagnosis import QuotedFile, Subject
from weakfs.editing.hints.similarity import alike
from weakfs.editing.patches.document import Document
from weakfs.editing.patches.errors import RETURNS_ALONE, clipped_message, quoted
from weakfs.editing.patches.line_search.equivalences import FREEST, TRAILING_BLANKS
from weakfs.editing.patches.matching.hunk_error import MAX_PLACES, Block, Misfit
from weakfs.editing.patches.operations import Hunk

# The maximum number of marked lines for which it is checked whether the mark is part of the line.
MOST_MARKED = 20_000
# The name of a hunk's lines in a diagnosis.
NAME = "the hunk"

# The maximum number of lines of a block, and of a hunk, that are examined for near matches.
MOST_COMPARED = 400
MOST_LINES = 40
NEARLY = 0.5
# Short lines share characters by chance.
SHORT = 30
SHORT_LESS = 0.1

# The reason, and the lines of the file (from 1) that it names.
Reason = tuple[str, tuple[int, ...]]


@frozen
class Mismatches:
    """The reasons why hunks have no place in one file, with the nearest lines if `shows_lines` is true."""

    document: Document
    shows_lines: bool = True

    @cached_property
    def _file(self) -> QuotedFile:
        return QuotedFile("\n".join([line.removesuffix("\r") for line in self.document.lines]))

    def reason(self, hunk: Hunk, misfit: Misfit, cursor: int) -> Reason:
        """Return why a hunk has no place; `cursor` is the line (from 0) after the previous hunk. O(file)."""
        why, lines = self._reason(hunk, misfit, cursor)
        return clipped_message(why), lines

    def _reason(self, hunk: Hunk, misfit: Misfit, cursor: int) -> Reason:
        if misfit.places:
            return _several(hunk, misfit)
        if misfit.is_all:
            return misfit.reason, misfit.lines
        if not hunk.old:
            return f"{misfit.reason}; name lines of the file, each below the one before it", ()
        found, lines = self._elsewhere(hunk, misfit, cursor) or self._nowhere(hunk, misfit, cursor)
        if misfit.reason and not found.startswith(misfit.reason):
            return f"{misfit.reason}; {found}", lines
        return found, lines

    def _elsewhere(self, hunk: Hunk, misfit: Misfit, cursor: int) -> Reason | None:
        """Return where else the lines of a hunk occur together, or `None` if nowhere."""
        at = self.document.find(hunk.old, FREEST, cursor)
        if at < 0:
            at = self.document.find(hunk.old, FREEST, 0)
        if at < 0:
            return None
        if hunk.at_end and misfit.reason:
            return f"they are at line {at + 1}; give the last lines, or leave out what marks the end of the file", (
                at + 1,
            )
        if at < cursor:
            where = f"it fits at line {at + 1}, above the place of the hunk before it"
            return f"{where}; put hunks in the order of the file", (at + 1,)
        if f"at line {at + 1};" in misfit.reason:
            return misfit.reason, (at + 1,)
        remedy = "correct its '@@' lines" if hunk.anchors and hunk.start is None else "read the file again"
        return f"its lines are at line {at + 1}, which is not where the hunk must be; {remedy}", (at + 1,)

    def _nowhere(self, hunk: Hunk, misfit: Misfit, cursor: int) -> Reason:
        """Return what is wrong with lines that do not occur together in the file."""
        marked = self._context_without_mark(hunk)
        if marked is not None:
            return marked
        if self._ends_in_returns(hunk):
            return RETURNS_ALONE, ()
        near = cursor if hunk.start is None else max(0, hunk.start - 1)
        anchor = quoted(hunk.anchors[-1].strip()) if hunk.anchors else ""
        whose = f"its anchor {anchor}"
        old, new = "\n".join(hunk.old), "\n".join(hunk.new)
        subject = Subject(old, new, NAME, misfit.blocks, whose, near, counts_blanks=True, shows_lines=self.shows_lines)
        if not old.strip():
            return "its lines are blank, and the file has no such lines there; give more lines of context", ()
        found = self._file.diagnose(subject)
        if found.hint not in (None, "similar"):
            return found.reason, found.lines
        missing = None if found.lines else next(filter(self._is_missing, hunk.old), None)
        first = f", which has no line {quoted(missing.strip())}" if missing else ""
        return f"its lines differ from those in the file{first}; {found.reason}", found.lines

    def misquote(self, hunk: Hunk) -> str:
        """Return what else is wrong with the old lines of a hunk, as the end of a sentence; "" if nothing is known."""
        found = self._file.diagnose(Subject("\n".join(hunk.old), "", NAME, counts_blanks=True, shows_lines=False))
        return "" if found.hint in (None, "similar") else f"; besides, {found.reason}"

    def _context_without_mark(self, hunk: Hunk) -> Reason | None:
        """Return a reason if a file line that begins with '-' or '+' was given as context without a leading ' '."""
        marked = islice((line for line in dict.fromkeys(hunk.lines) if line[0] != " "), MOST_MARKED)
        unmarked = {line for line in marked if self._is_unmarked(line)}
        if not unmarked:
            return None
        lines = [f" {line}" if line in unmarked else line for line in hunk.lines]
        changed = next((line for line, other in zip(hunk.lines, lines, strict=True) if line != other), None)
        if changed is None:
            return None
        old = [line[1:] for line in lines if line[0] != "+"]
        at = self.document.find(old, FREEST, 0)
        if at < 0:
            return None
        why = f"{quoted(changed)} is a line of the file, including its {changed[0]!r}"
        return f"{why}, at line {at + 1}; start each line of context with a ' ' before the text of the line", (at + 1,)

    def _ends_in_returns(self, hunk: Hunk) -> bool:
        """Return whether the lines of a hunk are in the file, but divided by carriage returns alone."""
        return self.document.has_returns and "\r".join(hunk.old) in "\n".join(self.document.lines)

    def _is_unmarked(self, line: str) -> bool:
        return self._is_line(line) and not (line[0] == "-" and self._is_line(line[1:]))

    def _is_missing(self, line: str) -> bool:
        return bool(line.strip()) and self.document.find([line], FREEST, 0) < 0

    def _is_line(self, line: str) -> bool:
        """Return whether a line is in the file, apart from blanks at its end."""
        return bool(line.strip()) and self.document.find([line], TRAILING_BLANKS, 0) >= 0


def _several(hunk: Hunk, misfit: Misfit) -> Reason:
    named = ", ".join(map(str, misfit.places[:MAX_PLACES]))
    more = " and more" if len(misfit.places) > MAX_PLACES else ""
    remedy = (
        "or correct the line numbers in the hunk's header"
        if hunk.start is not None
        else "or an '@@ ' line that stands above the right place"
    )
    why = misfit.reason or "it fits in several places"
    return f"{why}, at lines {named}{more}; add more lines of context, {remedy}", misfit.places[:MAX_PLACES]


def similar_line(document: Document, hunk: Hunk, block: Block) -> int | None:
    """Return a line of a block where a hunk nearly fits, or `None` if nothing is similar."""
    old = [line.strip() for line in hunk.old if any(map(str.isalnum, line))][:MOST_LINES]
    wanted = [line[1:].strip() for line in hunk.lines if line[0] == "-" and any(map(str.isalnum, line))] or old
    lines = [line.strip() for line in document.lines[block[0] + 1 : min(block[1], block[0] + MOST_COMPARED)]]
    held = set(lines)
    if old and sum(line in held for line in old) * 2 > len(old):
        return block[0] + 1 + next(at for at, line in enumerate(lines) if line in old)
    for line in wanted[:4]:
        for at, other in enumerate(lines):
            if other and (other == line or _likeness(other, line) >= NEARLY):
                return block[0] + 1 + at
    return None


def _likeness(one: str, other: str) -> float:
    """Return the similarity of two lines, from 0 to 1; in short ones each character counts."""
    if max(len(one), len(other)) > SHORT:
        return alike(one, other)
    return SequenceMatcher(None, one, other, autojunk=False).ratio() - SHORT_LESS
