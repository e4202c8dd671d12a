"""Parsing of V4A patches, line by line; each problem names its line.

The envelope around a patch is skipped: a model may write it as a heredoc for a shell, or in a Markdown fence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from weakfs.editing.patches.errors import NO_LINES, NO_MARK, PatchParseError, malformed, quoted
from weakfs.editing.patches.formats.diff_hunks import lacks_newline
from weakfs.editing.patches.formats.diff_names import name_and_time, paths_of
from weakfs.editing.patches.formats.envelope import BLANKS, unwrapped
from weakfs.editing.patches.formats.other_diffs import why_not_unified
from weakfs.editing.patches.formats.search_replace import looks_like_search_replace
from weakfs.editing.patches.operations import AddFile, DeleteFile, Hunk, Operation, UpdateFile

BEGIN = "*** Begin Patch"
END = "*** End Patch"
ADD = "*** Add File:"
DELETE = "*** Delete File:"
UPDATE = "*** Update File:"
MOVE = "*** Move to:"
END_OF_FILE = "*** End of File"
UNENDED = re.compile(r"\\ No newline at end of file\s*", re.IGNORECASE)
MARKERS = (ADD, DELETE, UPDATE, MOVE)
# Variants of these markers that models write and that cannot mean anything else.
SYNONYMS = {
    "*** Create File:": ADD,
    "*** New File:": ADD,
    "*** Modify File:": UPDATE,
    "*** Change File:": UPDATE,
    "*** Edit File:": UPDATE,
    "*** Remove File:": DELETE,
    "*** Move To:": MOVE,
}


def parse_v4a(text: str, *, as_codex: bool = False) -> tuple[Operation, ...]:
    """Parse a patch. Raises `PatchParseError` with the line of the patch if it is malformed. O(patch).

    A shell's heredoc or a Markdown fence around it is skipped. A carriage return at the end of a line of text belongs
    to that text, unless the patch's own lines end in one as well. White space before every line is skipped.
    `as_codex` selects Codex's few differences: no line keeps a carriage return, a blank line at the start of a hunk
    without '@@' is not context, and neither is a line without a mark.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    lines, at, end = unwrapped(lines, BEGIN)
    if at >= end:
        raise malformed(1, f"the patch is empty; start it with {BEGIN!r}")
    if lines[at].strip() != BEGIN:
        raise _no_beginning(lines, at)
    if end - 1 == at or lines[end - 1].strip() != END:
        raise _no_end(lines, at, end)
    if as_codex or lines[at].endswith("\r"):
        lines = [line.removesuffix("\r") for line in lines]
    operations = _Reader(lines, at + 1, end - 1, is_codex=as_codex).operations()
    if not operations and not as_codex:
        raise malformed(at + 1, f"the patch has no operations; write {UPDATE + ' path'!r} and what changes below it")
    return tuple(operations)


def _no_beginning(lines: list[str], at: int) -> PatchParseError:
    remedy = f"start it with {BEGIN!r}"
    if BEGIN in lines[at] and "\\n" in lines[at]:
        remedy += ", and write its line breaks as line breaks, not as \\n"
    if (why := why_not_unified(lines, at)) is not None:
        remedy = f"{why}, or {remedy}"
    elif lines[at].startswith(("diff -", "--- ", "Index: ", "@@ -")):
        remedy = f"it looks like a unified diff: apply it with patch_format='unified', or {remedy}"
    if looks_like_search_replace("\n".join(lines)):
        remedy = f"these are SEARCH/REPLACE blocks: apply them with patch_format='search_replace', or {remedy}"
    return malformed(at + 1, f"a patch cannot start with {quoted(lines[at])}; {remedy}")


def _no_end(lines: list[str], at: int, end: int) -> PatchParseError:
    for number in range(at + 1, end):
        if lines[number].rstrip() == END:
            return malformed(number + 2, f"there is text after {END!r}; end the patch there")
    return malformed(end, f"{END!r} is missing: the patch was cut off; send all of it, with that as its last line")


class _Reader:
    """The lines of one patch, and the current position; `at` counts from 0."""

    def __init__(self, lines: list[str], first: int, last: int, *, is_codex: bool) -> None:
        self.lines = lines
        self.at = first
        self.last = last
        self.is_codex = is_codex

    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        while self.at < self.last:
            line = self._operation_line()
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

    @property
    def _blanks(self) -> str | None:
        """What may surround a path; `None` for all white space, as Codex has it."""
        return None if self.is_codex else BLANKS

    def _operation_line(self) -> str:
        """Return the line with synonyms replaced by what they stand for."""
        line = self.lines[self.at].lstrip().rstrip(self._blanks)
        if line.startswith("***") and not self.is_codex and not line.startswith(MARKERS):
            for synonym, marker in SYNONYMS.items():
                if line.startswith(synonym):
                    line = self.lines[self.at] = marker + line.removeprefix(synonym)
        return line

    def _unexpected(self, line: str, after: Operation | None) -> PatchParseError:
        where = self.at + 1
        if line in (BEGIN, END):
            return malformed(where, f"{line!r} is in the middle of the patch; send one patch with all operations in it")
        if isinstance(after, AddFile):
            return self._not_added(line)
        if isinstance(after, DeleteFile):
            return malformed(where, f"{quoted(line)} after {DELETE!r}, which takes only a path; leave it out")
        if line.startswith(MOVE):
            return malformed(where, f"{MOVE!r} must be right below {UPDATE!r}; put it there")
        if line.startswith(("*** Rename", "*** Move File")):
            remedy = f"to move a file write {UPDATE + ' old path'!r}, and below it {MOVE + ' new path'!r}"
            return malformed(where, f"{quoted(line)} is not an operation; {remedy}")
        if line.startswith(("--- ", "diff --git ")):
            remedy = f"write {UPDATE + ' path'!r} instead, or send the diff alone with patch_format='unified'"
            return malformed(where, f"{quoted(line)} begins a unified diff; {remedy}")
        return malformed(
            where,
            f"{quoted(line)} is not an operation; write {ADD + ' path'!r}, {UPDATE + ' path'!r} or "
            f"{DELETE + ' path'!r}",
        )

    def _not_added(self, line: str) -> PatchParseError:
        """Return the error for a line below an added file, or for the one that separates it from the file's lines."""
        at = self.at
        if line.startswith("+"):
            while not self.lines[at - 1].strip() or self._is_unended(at - 1):
                at -= 1
        wrong = quoted(self.lines[at]) if self.lines[at].strip() else "a blank line"
        return malformed(at + 1, f"{wrong} is not a line of an added file; start each one with '+', empty or not")

    def _path(self, marker: str) -> str:
        path = self.lines[self.at].lstrip().removeprefix(marker).strip(self._blanks)
        self.at += 1
        if not path:
            raise malformed(self.at, f"{marker!r} has no path; write the path after it")
        return path

    def _add(self) -> AddFile:
        start = self.at + 1
        path = self._path(ADD)
        if self.at < self.last and self.lines[self.at].startswith("@@") and not self.is_codex:
            self.at += 1
        first = self.at
        while self.at < self.last and self.lines[self.at][:1] == "+":
            self.at += 1
        lines = tuple([line[1:] for line in self.lines[first : self.at]])
        ended = not (lines and self._is_unended(self.at))
        self.at += not ended
        return AddFile(path, start, lines, ended)

    def _is_unended(self, at: int) -> bool:
        """Return whether a line says that the one above it is the last of its file, without a newline."""
        return at < self.last and not self.is_codex and UNENDED.match(self.lines[at]) is not None

    def _update(self) -> UpdateFile:
        start = self.at + 1
        path = self._path(UPDATE)
        move_to = None
        if self.at < self.last and self._operation_line().startswith(MOVE):
            move_to = self._path(MOVE)
        self._skip_diff_names({path, move_to or path})
        hunks: list[Hunk] = []
        while self.at < self.last:
            line = self.lines[self.at]
            if not line.strip() and (hunks or self.is_codex):
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

    def _skip_diff_names(self, paths: set[str]) -> None:
        """Skip the '---' and '+++' lines of a unified diff below an update, if they repeat its paths above '@@'."""
        if self.is_codex or self.at + 2 >= self.last or not self.lines[self.at + 2].startswith("@@"):
            return
        old, new = self.lines[self.at : self.at + 2]
        if old.startswith("--- ") and new.startswith("+++ "):
            names = paths_of(name_and_time(old[4:])[0] or "", name_and_time(new[4:])[0] or "")
            if set(map(_from_root, names)) <= set(map(_from_root, paths)):
                self.at += 2

    def _below_empty_lines(self) -> int:
        at = self.at
        while at < self.last and not self.lines[at]:
            at += 1
        return at

    def _is_apart(self, below: int) -> bool:
        """Return whether empty lines above the first hunk are not part of it: '@@' follows them, or no hunk does."""
        return below == self.last or self.lines[below][0] in "@*"

    def _hunk(self, *, is_first: bool) -> Hunk:
        start = self.at + 1
        anchors: list[str] = []
        while self.at < self.last and (line := self.lines[self.at])[:3] in ("@@", "@@ "):
            if line != "@@":
                anchors.append(line[3:])
            self.at += 1
        if self.at + 1 == start and not is_first:
            raise malformed(
                start,
                f"a hunk cannot start with {quoted(self.lines[self.at])}; start it with '@@', or '@@ ' and a line",
            )
        first = self.at
        unmarked, unended = self._body()
        lines = (
            [line for line in self.lines[first : self.at] if not UNENDED.match(line)]
            if unended
            else self.lines[first : self.at]
        )
        if not lines:
            raise self._no_lines(start)
        if self.at < self.last and self.lines[self.at][0] not in "@*":
            raise self._unmarked()
        at_end = self.at < self.last and self._is_end_of_file(self.lines[self.at].rstrip())
        self.at += at_end
        above = _empty_lines(lines) if first + 1 == start else 0
        below = _empty_lines(reversed(lines)) if above < len(lines) and not lines[-1] else 0
        marked = tuple(_marked(lines, unmarked) if unmarked or "" in lines else lines)
        whole = marked[: len(marked) - below]
        old_unended, new_unended = lacks_newline(whole, unended, " -"), lacks_newline(whole, unended, " +")
        return Hunk(
            start + above,
            marked,
            tuple(anchors),
            at_end or old_unended or new_unended,
            below,
            above,
            unmarked,
            first + 1,
            old_unended=old_unended,
            new_unended=new_unended,
        )

    def _is_end_of_file(self, line: str) -> bool:
        return line == END_OF_FILE or (line.lower() == END_OF_FILE.lower() and not self.is_codex)

    def _body(self) -> tuple[tuple[int, ...], list[int]]:
        """Parse the lines of a hunk; return those without a mark, and those that end without a newline."""
        unmarked: list[int] = []
        unended: list[int] = []
        lines, count = self.lines, 0
        for at in range(self.at, self.last):
            line = lines[at]
            if line.startswith("+++ b/") and lines[at + 1].startswith("@@") and not self.is_codex:
                raise malformed(at + 1, f"{quoted(line)} names a file as in a diff; write '*** Update File: path'")
            if not line or line[0] in " -+":
                count += 1
            elif line[0] == "\\" and count and self._is_unended(at):
                unended.append(count - 1)
            elif not self.is_codex and not line.startswith(("@@", "***")):
                unmarked.append(count)
                count += 1
            else:
                self.at = at
                break
        else:
            self.at = self.last
        return tuple(unmarked), unended

    def _no_lines(self, start: int) -> PatchParseError:
        if self.at < self.last and not self.lines[self.at].startswith("***"):
            return self._unmarked()
        return malformed(start, NO_LINES)

    def _unmarked(self) -> PatchParseError:
        line = self.lines[self.at]
        if line.startswith("@@"):
            return malformed(self.at + 1, f"{quoted(line)} is not an anchor; write '@@ ', then a line of the file")
        return malformed(
            self.at + 1,
            f"{quoted(line)} {NO_MARK}",
        )


def _from_root(path: str) -> str:
    return path.removeprefix("./").lstrip("/")


def _marked(lines: list[str], unmarked: tuple[int, ...]) -> list[str]:
    return [" " + line if at in unmarked else line or " " for at, line in enumerate(lines)]


def _empty_lines(lines: Iterable[str]) -> int:
    count = 0
    for line in lines:
        if line:
            break
        count += 1
    return count
