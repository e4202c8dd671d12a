"""The hunks of a unified diff: as many lines as a header states, or all lines after it if the counts are wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import field

from weakfs.class_decorators import define
from weakfs.editing.patches.errors import NO_LINES, PatchParseError, malformed, quoted
from weakfs.editing.patches.formats.other_diffs import COMBINED, is_combined, why_not_unified
from weakfs.editing.patches.operations import Hunk

GIT = "diff --git "
MISCOUNTED = "the counts in its header do not match its lines, which were all used"

RANGES = re.compile(r"@@ -(\d{1,15})(?:,(\d{1,15}))? \+(\d{1,15})(?:,(\d{1,15}))? @@")
# Where the next hunk or the diff of the next file begins.
_STARTS = "@@", GIT, "Index: ", "diff -"
# Where the text of the next mail, commit or list of properties begins: its lines with '-' and '+' are not changes.
_TEXT = "From ", "commit ", "Property changes on: "
# A header without numbers: `@@`, `@@ ... @@`, `@@ def f(): @@`.
_BARE = re.compile(r"^@@|@@\s*$")


@define
class _Body:
    """The lines of one hunk, and the positions (from 0) of those without a newline and of those without a mark.

    The last `trailing_blanks` lines are empty and may belong to the text between hunks.
    """

    lines: list[str] = field(factory=list)
    unended: list[int] = field(factory=list)
    unmarked: list[int] = field(factory=list)
    trailing_blanks: int = 0

    def lacks_newline(self, marks: str) -> bool:
        """Return whether the last of the lines with these marks has no newline."""
        return lacks_newline(self.lines[: len(self.lines) - self.trailing_blanks], self.unended, marks)


def lacks_newline(lines: Sequence[str], unended: Sequence[int], marks: str) -> bool:
    """Return whether the last of the lines with these marks is one of the `unended` ones (by number, from 0).

    An earlier line cannot lack its newline, whatever the patch says.
    """
    if not unended:
        return False
    last = max((at for at in range(len(lines)) if lines[at][0] in marks), default=None)
    return last in unended


class DiffLines:
    """The lines of one diff, and the current position; `at` counts from 0."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        names = next((at for at, line in enumerate(lines) if line.startswith((GIT, "--- ", "Index: "))), 0)
        self._is_fenced = any(line.startswith("```") for line in lines[:names])

    def starts_file(self, at: int) -> bool:
        """Return whether the names of a file begin at a line."""
        return (
            self.lines[at].startswith("--- ")
            and self.lines[at + 1 : at + 2] != []
            and self.lines[at + 1].startswith("+++ ")
        )

    def hunks(self) -> list[Hunk]:
        """Parse the hunks of one file. Raises `PatchParseError` if there is none."""
        found: list[Hunk] = []
        while self._skips_blank_lines_to_a_hunk():
            found.append(self._hunk())
        if not found:
            raise malformed(self.at, "there is no hunk below the names; write '@@ -1,3 +1,4 @@' there")
        self._check_that_no_change_is_left_out()
        return found

    def _skips_blank_lines_to_a_hunk(self) -> bool:
        """Continue at the next line that is not blank if it begins a hunk, and return whether it does."""
        at = next((at for at in range(self.at, len(self.lines)) if self.lines[at].strip()), len(self.lines))
        begins = at < len(self.lines) and self.lines[at].startswith("@@")
        self.at = at if begins else self.at
        return begins

    def _check_that_no_change_is_left_out(self) -> None:
        """Raise `PatchParseError` if some other line ended a hunk and lines with "-" or "+" follow outside hunks."""
        end = None
        for at in range(self.at, len(self.lines)):
            line = self.lines[at]
            if self.starts_file(at) or self._ends_mail(at) or line.startswith((*_STARTS, *_TEXT)):
                return
            if (self._is_fenced and line.startswith("```")) or why_not_unified(self.lines, at) is not None:
                return
            end = at if end is None and line.strip() else end
            if line[:1] in ("-", "+"):
                assert end is not None
                raise malformed(
                    at + 1,
                    f"{quoted(line)} is in no hunk, since {quoted(self.lines[end])} on line {end + 1} ends the one "
                    "above; start each line of a hunk with ' ', '-' or '+', and each hunk with '@@'",
                )

    def _hunk(self) -> Hunk:
        start = self.at + 1
        if self.lines[self.at].startswith("@@@") and is_combined(self.lines[self.at]):
            raise malformed(start, COMBINED)
        found = RANGES.match(self.lines[self.at])
        heading = (self.lines[self.at][found.end() :] if found else _BARE.sub("", self.lines[self.at])).strip()
        self.at += 1
        old, new = (1 if count is None else int(count) for count in (found[2], found[4])) if found else (-1, -1)
        body, is_off = self._body(start, old, new)
        old_unended, new_unended = body.lacks_newline(" -"), body.lacks_newline(" +")
        return Hunk(
            start,
            tuple(body.lines),
            (heading,) if heading else (),
            at_end=old_unended or new_unended,
            trailing_blanks=body.trailing_blanks,
            unmarked=tuple(body.unmarked),
            body=start + 1,
            start=int(found[1]) if found else None,
            old_unended=old_unended,
            new_unended=new_unended,
            notes=(MISCOUNTED,) if is_off else (),
        )

    def _body(self, start: int, old: int, new: int) -> tuple[_Body, bool]:
        """Parse as many lines of a hunk as its header states, or all if that is wrong; return whether it is wrong."""
        first = self.at
        if old >= 0:
            for takes_unmarked in (False, True):
                self.at = first
                body = self._counted(old, new, takes_unmarked=takes_unmarked)
                if body is not None:
                    return body, False
        self.at = first
        body = self._uncounted()
        counts = sum(line[0] != "+" for line in body.lines), sum(line[0] != "-" for line in body.lines)
        if not body.lines or (self.at >= len(self.lines) and self._is_cut_off and (counts[0] < old or counts[1] < new)):
            raise self._miscounted(start, *counts)
        return body, old >= 0

    def _counted(self, old: int, new: int, *, takes_unmarked: bool) -> _Body | None:
        """Parse this many old and new lines of a hunk; `None` if it has fewer or more."""
        body = _Body()
        while self.at < len(self.lines):
            line = self.lines[self.at] or " "
            mark = line[0]
            if takes_unmarked and old and new and mark not in " -+\\" and not self._starts_next():
                body.unmarked.append(len(body.lines))
                line, mark = " " + line, " "
            if mark == "\\" and body.lines:
                body.unended.append(len(body.lines) - 1)
            elif mark in " -+" and old >= (mark != "+") and new >= (mark != "-") and old + new:
                if not self._still_there(line):
                    break
                old, new = old - (mark != "+"), new - (mark != "-")
                body.lines.append(line)
            else:
                break
            self.at += 1
        return None if old or new or self._goes_on() else body

    def _uncounted(self) -> _Body:
        """Parse all lines of a hunk; empty ones at the end may only be separators."""
        body = _Body()
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith("+++ ") and "".join(self.lines[self.at + 1 : self.at + 2]).startswith("@@"):
                raise malformed(
                    self.at + 1,
                    f"{quoted(line)} may name a file or be an added line; write '--- a/path' above it if it names a "
                    "file, or else correct the counts in the hunk's header",
                )
            if line[:1] == "\\" and body.lines:
                body.unended.append(len(body.lines) - 1)
                body.trailing_blanks = 0
            elif line[:1] in ("", " ", "-", "+") and not self._starts_next() and not self._is_signature(self.at):
                body.lines.append(line or " ")
                body.trailing_blanks = 0 if line else body.trailing_blanks + 1
            else:
                break
            self.at += 1
        if self.at >= len(self.lines) and body.trailing_blanks:
            # There is no line after the last newline.
            body.lines.pop()
            body.trailing_blanks -= 1
        if body.trailing_blanks == len(body.lines) or all(
            line[0] == "+" for line in body.lines[: -body.trailing_blanks or None]
        ):
            del body.lines[len(body.lines) - body.trailing_blanks :]
            body.trailing_blanks = 0
        return body

    @property
    def _is_cut_off(self) -> bool:
        """Whether the patch ends inside a line."""
        return self.lines[-1] != ""

    def _starts_next(self) -> bool:
        """Return whether the line begins the next hunk or the diff of the next file."""
        line = self.lines[self.at]
        if line.startswith(_STARTS):
            return True
        return (
            self.starts_file(self.at)
            and self.lines[self.at + 2 : self.at + 3] != []
            and self.lines[self.at + 2].startswith("@@")
        )

    def _still_there(self, line: str) -> bool:
        """Return whether an empty line belongs to the hunk; the one after the last newline does not."""
        return line != " " or self.at + 1 < len(self.lines) or self.lines[self.at] == " "

    def _goes_on(self) -> bool:
        """Return whether another line of a hunk follows where, according to the header, the hunk ends.

        An empty line may be context without its mark, if a change follows.
        """
        at = self.at
        while at < len(self.lines) and not self.lines[at]:
            at += 1
        if at >= len(self.lines) or self.lines[at][:1] not in (" ", "-", "+") or self.starts_file(at):
            return False
        return not self._ends_mail(at) and (at == self.at or self._changes_from(at))

    def _changes_from(self, at: int) -> bool:
        """Return whether there is a change among the lines with marks that begin at a line."""
        marks = (self.lines[number][:1] for number in range(at, len(self.lines)))
        return next((mark for mark in marks if mark not in ("", " ")), "") in ("-", "+")

    def _ends_mail(self, at: int) -> bool:
        """Return whether a line after a whole hunk is the signature of a mail, with or without a version below it."""
        if self.lines[at].rstrip() != "--":
            return False
        return self._is_signature(at) or not any(self.lines[below] for below in range(at + 1, len(self.lines)))

    def _is_signature(self, at: int) -> bool:
        """Return whether a line is the `-- ` of a mail, below which git writes its version, not a removed `-`."""
        if self.lines[at].rstrip() != "--":
            return False
        below = self.lines[at + 1] if at + 1 < len(self.lines) else ""
        return below[:1].strip() not in ("", "-", "+", "@", "\\", "`")

    def _miscounted(self, start: int, old: int, new: int) -> PatchParseError:
        if not old and not new:
            return malformed(start, NO_LINES)
        return malformed(
            start,
            f"the hunk's header {quoted(self.lines[start - 1])} announces more lines than the {old} old and {new} new "
            "ones below it, and the patch ends inside the last one: it was cut off; send all of it",
        )
