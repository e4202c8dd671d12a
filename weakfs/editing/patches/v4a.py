"""Reading V4A patches (weakfs specification, section 5): a line at a time, each problem with its line."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from weakfs.editing.patches.errors import NO_LINES, PatchParseError, malformed, quoted
from weakfs.editing.patches.operations import AddFile, DeleteFile, Hunk, Operation, UpdateFile
from weakfs.editing.patches.wrapping import unwrapped

BEGIN = "*** Begin Patch"
END = "*** End Patch"
ADD = "*** Add File:"
DELETE = "*** Delete File:"
UPDATE = "*** Update File:"
MOVE = "*** Move to:"
END_OF_FILE = "*** End of File"


def parse_v4a(text: str, *, as_codex: bool = False) -> tuple[Operation, ...]:
    """Read a patch. Raises `PatchParseError` with the line of the patch. O(patch).

    A shell's heredoc or a Markdown fence around it is passed over. A carriage return at the end of a line of text
    belongs to that text, unless the patch's own lines end in one as well. `as_codex` reads the few things that Codex
    reads in another way: no line keeps a carriage return, and a blank line at the start of a hunk without '@@' is no
    context.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    lines, at, end = unwrapped(lines)
    if at >= end:
        raise malformed(1, f"the patch is empty; start it with {BEGIN!r}")
    if lines[at].strip() != BEGIN:
        raise _no_beginning(lines, at)
    if end - 1 == at or lines[end - 1].strip() != END:
        raise _no_end(lines, at, end)
    if as_codex or lines[at].endswith("\r"):
        lines = [line.removesuffix("\r") for line in lines]
    return tuple(_Reader(lines, at + 1, end - 1, passes_blanks=as_codex).operations())


def _no_beginning(lines: list[str], at: int) -> PatchParseError:
    remedy = f"start it with {BEGIN!r}"
    if lines[at].startswith(("diff --git ", "--- ", "Index: ", "@@ -")):
        remedy = f"it looks like a unified diff: apply it with patch_format='unified', or {remedy}"
    return malformed(at + 1, f"a patch cannot start with {quoted(lines[at])}; {remedy}")


def _no_end(lines: list[str], at: int, end: int) -> PatchParseError:
    for number in range(at + 1, end):
        if lines[number].rstrip() == END:
            return malformed(number + 2, f"there is text after {END!r}; let the patch end there")
    return malformed(end, f"{END!r} is missing: the patch was cut off; send all of it, with that as its last line")


class _Reader:
    """The lines of one patch, and how far they were read; `at` counts from 0."""

    def __init__(self, lines: list[str], first: int, last: int, *, passes_blanks: bool) -> None:
        self.lines = lines
        self.at = first
        self.last = last
        self.passes_blanks = passes_blanks

    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        while self.at < self.last:
            line = self.lines[self.at].strip()
            if not line:
                self.at += 1
            elif line.startswith(ADD):
                found.append(self._add())
            elif line.startswith(DELETE):
                found.append(DeleteFile(self._path(DELETE), self.at))
            elif line.startswith(UPDATE):
                found.append(self._update())
            else:
                raise self._unexpected(line, after=found[-1] if found else None)
        return found

    def _unexpected(self, line: str, after: Operation | None) -> PatchParseError:
        where = self.at + 1
        if line in (BEGIN, END):
            return malformed(where, f"{line!r} stands in the middle; send one patch with all operations in it")
        if isinstance(after, AddFile):
            return malformed(
                where, f"{quoted(line)} is no line of an added file; start each of them with '+', also an empty one"
            )
        if isinstance(after, DeleteFile):
            return malformed(
                where, f"{quoted(line)} after {DELETE!r}, which takes a path and nothing else; leave it out"
            )
        if line.startswith(MOVE):
            return malformed(where, f"{MOVE!r} can only stand right below {UPDATE!r}; put it there")
        return malformed(
            where,
            f"{quoted(line)} is no operation; write {ADD + ' path'!r}, {UPDATE + ' path'!r} or {DELETE + ' path'!r}",
        )

    def _path(self, marker: str) -> str:
        path = self.lines[self.at].strip().removeprefix(marker).strip()
        self.at += 1
        if not path:
            raise malformed(self.at, f"{marker!r} without a path; write the path behind it")
        return path

    def _add(self) -> AddFile:
        start = self.at + 1
        path = self._path(ADD)
        first = self.at
        while self.at < self.last and self.lines[self.at][:1] == "+":
            self.at += 1
        return AddFile(path, start, tuple([line[1:] for line in self.lines[first : self.at]]))

    def _update(self) -> UpdateFile:
        start = self.at + 1
        path = self._path(UPDATE)
        move_to = None
        if self.at < self.last and self.lines[self.at].strip().startswith(MOVE):
            move_to = self._path(MOVE)
        hunks: list[Hunk] = []
        while self.at < self.last:
            line = self.lines[self.at]
            if not line.strip() and (hunks or self.passes_blanks):
                self.at += 1
            elif not line and self._is_apart(below := self._below_empty_lines()):
                self.at = below
            elif line.startswith("***"):
                break
            else:
                hunks.append(self._hunk(is_first=not hunks))
        if not hunks and move_to is None:
            raise malformed(start, f"the update of {quoted(path)} has no lines; give the lines that change, below '@@'")
        return UpdateFile(path, start, tuple(hunks), move_to)

    def _below_empty_lines(self) -> int:
        at = self.at
        while at < self.last and not self.lines[at]:
            at += 1
        return at

    def _is_apart(self, below: int) -> bool:
        """Tell whether empty lines above the first hunk are none of its lines: where '@@' or no hunk is below them."""
        return below == self.last or self.lines[below][0] in "@*"

    def _hunk(self, *, is_first: bool) -> Hunk:
        start = self.at + 1
        anchors: list[str] = []
        while self.at < self.last and (self.lines[self.at] == "@@" or self.lines[self.at].startswith("@@ ")):
            if self.lines[self.at] != "@@":
                anchors.append(self.lines[self.at][3:])
            self.at += 1
        if self.at + 1 == start and not is_first:
            raise malformed(
                start,
                f"a hunk cannot start with {quoted(self.lines[self.at])}; start it with '@@', or '@@ ' and a line",
            )
        first = self.at
        while self.at < self.last and self.lines[self.at][:1] in ("", " ", "-", "+"):
            self.at += 1
        lines = self.lines[first : self.at]
        if not lines:
            raise self._no_lines(start)
        if self.at < self.last and self.lines[self.at][0] not in "@*":
            raise self._unmarked()
        at_end = self.at < self.last and self.lines[self.at].rstrip() == END_OF_FILE
        self.at += at_end
        above = _empty_lines(lines) if first + 1 == start else 0
        below = _empty_lines(reversed(lines)) if above < len(lines) else 0
        return Hunk(start + above, tuple([line or " " for line in lines]), tuple(anchors), at_end, below, above)

    def _no_lines(self, start: int) -> PatchParseError:
        if self.at < self.last and not self.lines[self.at].startswith("***"):
            return self._unmarked()
        return malformed(start, NO_LINES)

    def _unmarked(self) -> PatchParseError:
        line = self.lines[self.at]
        if line.startswith("@@"):
            return malformed(self.at + 1, f"{quoted(line)} is no anchor; write '@@ ', then a line of the file")
        return malformed(
            self.at + 1,
            f"{quoted(line)} has no mark; start each line of an update with ' ' if it stays, '-' if it goes or '+' if "
            f"it comes",
        )


def _empty_lines(lines: Iterable[str]) -> int:
    return sum(1 for _ in takewhile(lambda line: not line, lines))
