"""Parsing of unified diffs, as git and diff -u write them: one file at a time, each problem with its line."""

from __future__ import annotations

import re

from attrs import define, field

from weakfs.editing.patches.errors import NO_LINES, PatchParseError, malformed, quoted
from weakfs.editing.patches.formats.diff_names import NOTHING, both_names, name_and_time, paths_of, unquoted
from weakfs.editing.patches.formats.search_replace import looks_like_search_replace
from weakfs.editing.patches.operations import AddFile, DeleteFile, Hunk, Operation, UpdateFile

GIT = "diff --git "
MISCOUNTED = "the counts in its header do not match its lines, which were all used"
LINK = 0o120000
SUBMODULE = 0o160000
KIND = 0o170000

_RANGES = re.compile(r"@@ -(\d{1,15})(?:,(\d{1,15}))? \+(\d{1,15})(?:,(\d{1,15}))? @@")
# A header without numbers: `@@`, `@@ ... @@`, `@@ def f(): @@`.
_BARE = re.compile(r"^@@|@@\s*$")
_MODE = re.compile(r"[0-7]{1,6}")
_INDEX = re.compile(r"index [0-9a-f]+\.\.[0-9a-f]+(?: ([0-7]{6}))?")


def parse_unified(text: str) -> tuple[Operation, ...]:
    """Parse a diff. Raise `PatchParseError` with the line of the patch if it is malformed. O(patch).

    Text before, between and after the files' diffs is skipped, as in a mail. A carriage return at the end of a
    line belongs to that line, unless the headers end in one as well.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    first = next((line for line in lines if line.startswith((GIT, "--- "))), "")
    if first.endswith("\r"):
        lines = [line.removesuffix("\r") for line in lines]
    operations = _Reader(lines).operations()
    if not operations and any(line.strip() == "*** Begin Patch" for line in lines):
        raise malformed(1, "it is not a unified diff but a V4A patch; send it with patch_format='v4a'")
    if not operations and looks_like_search_replace(text):
        raise malformed(
            1, "it is not a unified diff but SEARCH/REPLACE blocks; send it with patch_format='search_replace'"
        )
    if not operations:
        raise malformed(1, "there is no diff in it; start with '--- a/path' and '+++ b/path', then '@@ -1,3 +1,4 @@'")
    return tuple(operations)


@define
class _Header:
    """The information above the hunks of one file."""

    line: int
    is_git: bool
    names: tuple[str, str] | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    is_new: bool = False
    is_deleted: bool = False
    source: str | None = None
    target: str | None = None
    copies: bool = False
    hunks: list[Hunk] = field(factory=list)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return LINK in ((self.old_mode or 0) & KIND, (self.new_mode or 0) & KIND)

    @property
    def mode(self) -> int | None:
        """The new mode, if it changes."""
        return None if self.old_mode == self.new_mode else self.new_mode


@define
class _Body:
    """The lines of one hunk: those without a mark (from 0), and the marks of those that end without a newline.

    The last `trailing_blanks` of them are empty and may belong to the text between hunks.
    """

    lines: list[str] = field(factory=list)
    unended: set[str] = field(factory=set)
    unmarked: list[int] = field(factory=list)
    trailing_blanks: int = 0


class _Reader:
    """The lines of one diff, and the current position; `at` counts from 0."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith(GIT):
                found.append(self._git())
            elif self._starts_file(self.at):
                found.append(self._plain())
            elif line.startswith(("diff --cc ", "diff --combined ")):
                raise malformed(self.at + 1, "a combined diff of a merge cannot be applied; diff against one parent")
            elif _RANGES.match(line):
                raise malformed(self.at + 1, "a hunk without a file; write '--- a/path' and '+++ b/path' above it")
            elif line.startswith("Binary files ") and line.rstrip().endswith(" differ"):
                raise self._binary()
            else:
                self.at += 1
        return found

    def _starts_file(self, at: int) -> bool:
        return (
            self.lines[at].startswith("--- ")
            and self.lines[at + 1 : at + 2] != []
            and self.lines[at + 1].startswith("+++ ")
        )

    def _binary(self) -> PatchParseError:
        return malformed(self.at + 1, "it changes a binary file, and only text can be patched; write that file whole")

    # Headers

    def _git(self) -> Operation:
        header = _Header(self.at + 1, True, both_names(self.lines[self.at].removeprefix(GIT)))
        self.at += 1
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if self._starts_file(self.at):
                if header.names is None:
                    header.names = self._two_names()[:2]
                self.at += 2
                self._hunks(header)
                break
            if line.startswith(("Binary files ", "GIT binary patch")):
                raise self._binary()
            if not self._extended(header, line):
                break
            self.at += 1
        return self._operation(header)

    def _extended(self, header: _Header, line: str) -> bool:
        """Parse one of git's own header lines; return False for any other line."""
        word = line.partition(" ")[0]
        if word in ("similarity", "dissimilarity"):
            return True
        if word == "index":
            found = _INDEX.match(line)
            if found and found[1]:
                header.old_mode = header.new_mode = self._mode(found[1])
            return found is not None
        for prefix, read in _HEADERS.items():
            if line.startswith(prefix):
                read(self, header, line.removeprefix(prefix))
                return True
        return False

    def _mode(self, text: str) -> int:
        if not _MODE.fullmatch(text.strip()):
            raise malformed(self.at + 1, f"{quoted(text)} is not a mode; write one such as 100644")
        mode = int(text, 8)
        if mode & KIND == SUBMODULE:
            raise malformed(self.at + 1, "it changes a submodule, which is not a file; leave it out")
        return mode

    def _name(self, text: str) -> str:
        name = unquoted(text)
        if not name:
            raise malformed(
                self.at + 1, f"{quoted(text)} is not a name; write a path, with quotes only where git writes them"
            )
        return name

    def _old_mode(self, header: _Header, value: str) -> None:
        header.old_mode = self._mode(value)

    def _new_mode(self, header: _Header, value: str) -> None:
        header.new_mode = self._mode(value)

    def _is_new(self, header: _Header, value: str) -> None:
        header.is_new, header.new_mode = True, self._mode(value)

    def _is_deleted(self, header: _Header, value: str) -> None:
        header.is_deleted, header.old_mode = True, self._mode(value)

    def _from(self, header: _Header, value: str) -> None:
        header.source = self._name(value)

    def _to(self, header: _Header, value: str) -> None:
        header.target = self._name(value)

    def _copy_from(self, header: _Header, value: str) -> None:
        header.source, header.copies = self._name(value), True

    def _two_names(self) -> tuple[str, str, bool, bool]:
        """Parse the names in the `---` and `+++` lines, and whether each stands for a missing file."""
        old, never_was = name_and_time(self.lines[self.at].removeprefix("--- "))
        new, is_gone = name_and_time(self.lines[self.at + 1].removeprefix("+++ "))
        for number, name in enumerate((old, new), self.at + 1):
            if not name:
                raise malformed(number, f"{quoted(self.lines[number - 1])} names no file; write a path after it")
        assert old is not None
        assert new is not None
        return old, new, never_was or old == NOTHING, is_gone or new == NOTHING

    def _plain(self) -> Operation:
        header = _Header(self.at + 1, False)
        old, new, header.is_new, header.is_deleted = self._two_names()
        if header.is_new and header.is_deleted:
            raise malformed(self.at + 1, "neither name is a file; name at least one")
        header.names = old, new
        self.at += 2
        self._hunks(header)
        return self._operation(header)

    # Hunks

    def _hunks(self, header: _Header) -> None:
        while self.at < len(self.lines) and self.lines[self.at].startswith("@@"):
            header.hunks.append(self._hunk())
        if not header.hunks:
            raise malformed(self.at, "there is no hunk below the names; write '@@ -1,3 +1,4 @@' there")

    def _hunk(self) -> Hunk:
        start = self.at + 1
        found = _RANGES.match(self.lines[self.at])
        heading = (self.lines[self.at][found.end() :] if found else _BARE.sub("", self.lines[self.at])).strip()
        self.at += 1
        old, new = (1 if count is None else int(count) for count in (found[2], found[4])) if found else (-1, -1)
        body, is_off = self._body(start, old, new)
        old_unended, new_unended = body.unended & {" ", "-"} != set(), body.unended & {" ", "+"} != set()
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
        """Parse as many lines of a hunk as its header states, or all of them if it is wrong; return whether it is."""
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
                body.unended.add(body.lines[-1][0])
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
            if line[:1] == "\\" and body.lines:
                body.unended.add(body.lines[-1][0])
                body.trailing_blanks = 0
            elif line[:1] in ("", " ", "-", "+") and not self._starts_next() and line.rstrip() != "--":
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
        if line.startswith(("@@", GIT, "Index: ", "diff -")):
            return True
        return (
            self._starts_file(self.at)
            and self.lines[self.at + 2 : self.at + 3] != []
            and self.lines[self.at + 2].startswith("@@")
        )

    def _still_there(self, line: str) -> bool:
        """Return whether an empty line belongs to the hunk; the one after the last newline does not."""
        return line != " " or self.at + 1 < len(self.lines) or self.lines[self.at] == " "

    def _goes_on(self) -> bool:
        """Return whether another line of a hunk follows where, according to the header, the hunk ends."""
        if self.at >= len(self.lines) or self.lines[self.at][:1] not in (" ", "-", "+"):
            return False
        # What git puts below a diff in a mail, and what starts the next file.
        return self.lines[self.at].rstrip() != "--" and not self._starts_file(self.at)

    def _miscounted(self, start: int, old: int, new: int) -> PatchParseError:
        if not old and not new:
            return malformed(start, NO_LINES)
        return malformed(
            start,
            f"the hunk's header {quoted(self.lines[start - 1])} announces more lines than the {old} old and {new} new "
            "ones below it, and the patch ends inside the last one: it was cut off; send all of it",
        )

    # The resulting operations

    def _operation(self, header: _Header) -> Operation:
        if header.source is not None or header.target is not None:
            return self._transfer(header)
        if header.names is None:
            raise malformed(header.line, f"the names in {quoted(self.lines[header.line - 1])} cannot be told apart")
        old, new = paths_of(*header.names)
        if header.is_new:
            return self._added(header, new)
        if header.is_deleted:
            return DeleteFile(old, header.line, tuple(header.hunks), header.is_link)
        if not header.hunks and header.mode is None:
            raise malformed(header.line, f"the diff of {quoted(new)} is empty; leave it out, or give its hunks")
        return UpdateFile(
            new,
            header.line,
            tuple(header.hunks),
            mode=header.mode,
            is_link=header.is_link,
            other_paths=() if header.is_git else _other_paths(old, new),
        )

    def _added(self, header: _Header, path: str) -> AddFile:
        for hunk in header.hunks:
            if len(header.hunks) > 1 or any(line[0] != "+" for line in hunk.lines):
                raise malformed(
                    hunk.line, f"the new file {quoted(path)} has old lines; give one hunk with '+' lines only"
                )
        lines = tuple([line[1:] for hunk in header.hunks for line in hunk.lines])
        ended = not any(hunk.new_unended for hunk in header.hunks)
        mode = None if header.new_mode is None else 0o755 if header.new_mode & 0o111 else 0o644
        return AddFile(path, header.line, lines, ended, mode, header.is_link)

    def _transfer(self, header: _Header) -> UpdateFile:
        if header.source is None or header.target is None:
            raise malformed(header.line, "a rename or copy names one path; give both, with 'from' and 'to'")
        return UpdateFile(
            header.source,
            header.line,
            tuple(header.hunks),
            header.target,
            header.copies,
            header.mode,
            header.is_link,
            from_before=True,
        )


def _other_paths(old: str, new: str) -> tuple[str, ...]:
    """Return other possible paths of a diff without a git header: the old name, and both without their first part."""
    others = dict.fromkeys((old, new.partition("/")[2], old.partition("/")[2]))
    return tuple(name for name in others if name and name != new)


_HEADERS = {
    "old mode ": _Reader._old_mode,
    "new mode ": _Reader._new_mode,
    "new file mode ": _Reader._is_new,
    "deleted file mode ": _Reader._is_deleted,
    "rename from ": _Reader._from,
    "rename to ": _Reader._to,
    "copy from ": _Reader._copy_from,
    "copy to ": _Reader._to,
}
