"""Parsing of unified diffs, as git and diff -u write them: one file at a time, each problem with its line."""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import field

from weakfs.class_decorators import define
from weakfs.editing.patches.errors import malformed, quoted
from weakfs.editing.patches.formats.diff_hunks import GIT, RANGES, DiffLines
from weakfs.editing.patches.formats.diff_names import (
    NOTHING,
    both_names,
    name_and_time,
    paths_of,
    unquoted,
    without_compared_directories,
)
from weakfs.editing.patches.formats.envelope import dedented
from weakfs.editing.patches.formats.other_diffs import BINARY, SUBMODULE_CHANGED, why_no_diff, why_not_unified
from weakfs.editing.patches.formats.search_replace import looks_like_search_replace
from weakfs.editing.patches.operations import AddFile, DeleteFile, Hunk, Operation, UpdateFile

LINK = 0o120000
SUBMODULE = 0o160000
KIND = 0o170000

_V4A = re.compile(r"\*\*\* (?:Add|Update|Delete) File: ")
_MODE = re.compile(r"[0-7]{1,6}")
_TIME = re.compile(r" \d{4}-\d\d-\d\d[ T]\d\d:\d\d:.*")
_INDEX = re.compile(r"index [0-9a-f]+\.\.[0-9a-f]+(?: ([0-7]{6}))?")


def parse_unified(text: str) -> tuple[Operation, ...]:
    """Parse a diff. Raises `PatchParseError` with the line of the patch if it is malformed. O(patch).

    Text before, between and after the files' diffs is skipped, as in an email. A carriage return at the end of a
    line belongs to that line, unless the headers end in one as well. White space before every line is skipped.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    begin = next((at for at, line in enumerate(lines) if line.strip()), 0)
    begins_diff = lines[begin].lstrip().startswith((GIT, "--- ", "Index: "))
    if begins_diff:
        lines = dedented(lines, begin, len(lines))
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
    if not operations and begins_diff and "\\n" in lines[begin]:
        raise malformed(begin + 1, "its line breaks are written as \\n; write them as line breaks")
    if not operations and (problem := why_no_diff(lines)) is not None:
        raise malformed(*problem)
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
        """Whether the file is a symbolic link."""
        return LINK in ((self.old_mode or 0) & KIND, (self.new_mode or 0) & KIND)

    @property
    def mode(self) -> int | None:
        """The new mode, if it changes."""
        return None if self.old_mode == self.new_mode else self.new_mode


class _Reader(DiffLines):
    """Reads the headers of files, and turns each into an operation."""

    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        foreign: int | None = None
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith(GIT):
                found.append(self._git())
            elif self.starts_file(self.at):
                found.append(self._plain())
            elif RANGES.match(line):
                raise malformed(self.at + 1, "a hunk without a file; write '--- a/path' and '+++ b/path' above it")
            elif (why := why_not_unified(self.lines, self.at)) is not None:
                raise malformed(self.at + 1, why)
            else:
                if foreign is None and (_V4A.match(line) or looks_like_search_replace(line)):
                    foreign = self.at
                self.at += 1
        if found and foreign is not None:
            raise malformed(foreign + 1, f"{quoted(self.lines[foreign])} is not part of a diff; send it separately")
        return found

    # Headers

    def _git(self) -> Operation:
        header = _Header(self.at + 1, True, both_names(self.lines[self.at].removeprefix(GIT)))
        self.at += 1
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if self.starts_file(self.at):
                if header.names is None:
                    header.names = self._two_names()[:2]
                self.at += 2
                header.hunks = self.hunks()
                break
            if line.startswith("@@") and header.names is not None:
                # The names in the first line suffice, as for git.
                header.hunks = self.hunks()
                break
            if line.startswith(("Binary files ", "GIT binary patch")):
                raise malformed(self.at + 1, BINARY)
            if not self._extended(header, line):
                break
            self.at += 1
        return self._operation(header)

    def _extended(self, header: _Header, line: str) -> bool:
        """Parse one of git's own header lines; return `False` for any other line."""
        word = line.partition(" ")[0]
        if word in ("similarity", "dissimilarity"):
            return True
        if word == "index":
            found = _INDEX.match(line)
            if found and found[1]:
                header.old_mode = header.new_mode = self._mode(found[1])
            return found is not None
        for prefix, (attribute, read, flag) in _HEADERS.items():
            if line.startswith(prefix):
                setattr(header, attribute, read(self, line.removeprefix(prefix)))
                if flag is not None:
                    setattr(header, flag, True)
                return True
        return False

    def _mode(self, text: str) -> int:
        if not _MODE.fullmatch(text.strip()):
            raise malformed(self.at + 1, f"{quoted(text)} is not a mode; write one such as 100644")
        mode = int(text, 8)
        if mode & KIND == SUBMODULE:
            raise malformed(self.at + 1, SUBMODULE_CHANGED)
        return mode

    def _name(self, text: str) -> str:
        name = unquoted(text)
        if not name:
            raise malformed(
                self.at + 1, f"{quoted(text)} is not a name; write a path, with quotes only where git writes them"
            )
        return name

    def _two_names(self) -> tuple[str, str, bool, bool]:
        """Parse the names in the `---` and `+++` lines, and whether the text after each says that there is no file."""
        old, never_was = name_and_time(self.lines[self.at].removeprefix("--- "))
        new, is_gone = name_and_time(self.lines[self.at + 1].removeprefix("+++ "))
        for number, name in enumerate((old, new), self.at + 1):
            if not name:
                raise malformed(number, f"{quoted(self.lines[number - 1])} names no file; write a path after it")
        assert old is not None
        assert new is not None
        return old, new, never_was, is_gone

    def _plain(self) -> Operation:
        header = _Header(self.at + 1, False)
        old, new, never_was, is_gone = self._two_names()
        if old == new == NOTHING:
            raise malformed(self.at + 1, "neither name is a file; name at least one")
        header.names = old, new
        self.at += 2
        header.hunks = self.hunks()
        # Files of reproducible builds have the time of a missing file; only those without lines are missing.
        header.is_new = old == NOTHING or (never_was and _is_empty(header.hunks, "-"))
        header.is_deleted = new == NOTHING or (is_gone and not header.is_new and _is_empty(header.hunks, "+"))
        return self._operation(header)

    # The resulting operations

    def _operation(self, header: _Header) -> Operation:
        if header.source is not None or header.target is not None:
            return self._transfer(header)
        if header.names is None:
            raise malformed(header.line, f"the names in {quoted(self.lines[header.line - 1])} cannot be told apart")
        old, new = paths_of(*header.names)
        if (header.is_new or header.is_deleted) and not header.is_git:
            old, new = without_compared_directories(old, new)
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
            if_missing=self._added(header, new) if _adds_to_nothing(header, old, new) else None,
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


def _is_empty(hunks: list[Hunk], mark: str) -> bool:
    """Return whether all lines of a file are in hunks without any that is kept or has this mark."""
    return not any(line[0] in (" ", mark) for hunk in hunks for line in hunk.lines)


def _adds_to_nothing(header: _Header, old: str, new: str) -> bool:
    """Return whether a diff is the first text of a file: git and patch make the file if it is missing.

    A diff with a git header makes no file, because the header would say so; nor does one whose prefix leaves the path
    in doubt.
    """
    if header.is_git or old != new or len(header.hunks) != 1:
        return False
    is_certain = header.names != (old, new) or not new.startswith(("a/", "b/"))
    return is_certain and header.hunks[0].start == 0 and not header.hunks[0].old


def _other_paths(old: str, new: str) -> tuple[str, ...]:
    """Return other possible paths of a diff without a git header.

    They are the old name, and both without their first part; then all of them without a time or remark after the name.
    """
    names = new, old, new.partition("/")[2], old.partition("/")[2]
    others = dict.fromkeys((*names, *map(_without_remark, names)))
    return tuple(name for name in others if name and name != new)


def _without_remark(name: str) -> str:
    """Return a name without a time or "(remark)" that blanks separate from it, instead of the tab that diff writes."""
    bare = name.rstrip(" ")
    if bare.endswith(")"):
        return bare.rpartition(" (")[0].rstrip(" ")
    time = _TIME.search(bare)
    return bare[: time.start()].rstrip(" ") if time else bare


# The beginnings of git's own header lines: the attribute for what follows, how to read it, and an attribute to set.
_HEADERS: dict[str, tuple[str, Callable[[_Reader, str], int | str], str | None]] = {
    "old mode ": ("old_mode", _Reader._mode, None),
    "new mode ": ("new_mode", _Reader._mode, None),
    "new file mode ": ("new_mode", _Reader._mode, "is_new"),
    "deleted file mode ": ("old_mode", _Reader._mode, "is_deleted"),
    "rename from ": ("source", _Reader._name, None),
    "rename to ": ("target", _Reader._name, None),
    "copy from ": ("source", _Reader._name, "copies"),
    "copy to ": ("target", _Reader._name, None),
}
