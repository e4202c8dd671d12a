"""The contents of a parsed patch: operations on files and their hunks, with their line numbers in the patch."""

from __future__ import annotations

from collections.abc import Container

from attrs import Factory, evolve, field

from weakfs.class_decorators import frozen
from weakfs.editing.patches.line_search.line_index import Run
from weakfs.fast_init import fast_init


def _old(hunk: Hunk) -> list[str]:
    return [line[1:] for line in hunk.lines if line[0] != "+"]


def _runs(hunk: Hunk) -> list[Run]:
    runs: list[Run] = []
    added: list[str] = []
    start = at = 0
    for line in (*hunk.lines, " "):
        mark = line[0]
        if mark == " ":
            if added or at > start:
                runs.append((start, at, added))
                added = []
            start = at = at + 1
        elif mark == "-":
            at += 1
        else:
            added.append(line[1:])
    return runs


@fast_init
@frozen
class Hunk:
    """Lines to find in a file, and their replacement.

    Each of `lines` starts with " " (kept), "-" (removed) or "+" (added). `anchors` are lines to find first,
    `at_end` ties the hunk to the end of the file. The first `leading_blanks` and the last `trailing_blanks` lines are
    empty in the patch: they may be context, or only separate the hunk from its surroundings. Lines in `unmarked` (by
    number, from 0) had no mark and were taken as context; `body` is the line of the patch where the lines begin.
    `start` is the line (from 1) that a unified diff names; `old_unended` and `new_unended` are true if the diff says
    that the file ends without a newline. `notes` are sentences on what was ignored in parsing it.

    `old` are the lines to find, and `runs` the runs of them to replace, counted from the first; not to be modified.
    """

    line: int
    lines: tuple[str, ...]
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    trailing_blanks: int = 0
    leading_blanks: int = 0
    unmarked: tuple[int, ...] = ()
    body: int = 0
    start: int | None = None
    old_unended: bool = False
    new_unended: bool = False
    notes: tuple[str, ...] = ()
    # Computed once: a patch needs them several times for each hunk.
    old: list[str] = field(init=False, eq=False, repr=False, default=Factory(_old, takes_self=True))
    runs: list[Run] = field(init=False, eq=False, repr=False, default=Factory(_runs, takes_self=True))

    @property
    def is_blank(self) -> bool:
        """Whether all lines are empty: then this is not a hunk, unless they are context."""
        return self.trailing_blanks == len(self.lines)

    @property
    def new(self) -> list[str]:
        """The lines after the change. O(lines)."""
        return [line[1:] for line in self.lines if line[0] != "-"]

    def with_context_unmarked(self, numbers: Container[int]) -> Hunk:
        """Return the hunk with the marks of these lines, as far as they are context, as part of the lines."""
        lines = tuple(
            " " + line if line[0] == " " and line[1:] and at in numbers and at not in self.unmarked else line
            for at, line in enumerate(self.lines)
        )
        return evolve(self, lines=lines, unmarked=())

    def without_blanks(self, leading: int, trailing: int) -> Hunk:
        """Return the hunk without this many of its first and last lines, which are empty."""
        if not leading and not trailing:
            return self
        return evolve(
            self,
            lines=self.lines[leading : len(self.lines) - trailing],
            leading_blanks=self.leading_blanks - leading,
            trailing_blanks=self.trailing_blanks - trailing,
            unmarked=tuple(at - leading for at in self.unmarked),
            body=self.body + leading,
        )

    def readings(self) -> tuple[Hunk, ...]:
        """Return the interpretations of the hunk: empty lines at both ends as context, then only as separators."""
        first, last = self.leading_blanks, self.trailing_blanks
        if not (first or last) or self.is_blank:
            return (self,)
        # Around lines that are only added, empty lines separate hunks: as context they would match any blank line.
        if all(line[0] == "+" for line in self.lines[first : len(self.lines) - last]):
            return (self.without_blanks(first, last),)
        ends = dict.fromkeys((0, min(1, last), last))
        return tuple([self.without_blanks(start, end) for start in dict.fromkeys((0, first)) for end in ends])


@frozen
class Block:
    """Whole lines to find in a file, and the lines that replace them; `number` counts the blocks of the file from 1."""

    number: int
    line: int
    search: tuple[str, ...]
    replacement: tuple[str, ...]

    @property
    def old(self) -> list[str]:
        """The lines to find, without carriage returns at their ends. O(lines)."""
        return [line.removesuffix("\r") for line in self.search]

    @property
    def new(self) -> list[str]:
        """The lines that replace them, without carriage returns at their ends. O(lines)."""
        return [line.removesuffix("\r") for line in self.replacement]


@frozen
class AddFile:
    """A new file, or with `is_link` a symbolic link to `lines`; `mode` is `None` if the patch does not say.

    With `only_if_empty` it does not replace a file that has contents.
    """

    path: str
    line: int
    lines: tuple[str, ...]
    ended: bool = True
    mode: int | None = None
    is_link: bool = False
    only_if_empty: bool = False


@frozen
class DeleteFile:
    """A file to delete; `hunks` are its contents according to a unified diff, `None` if the patch does not say."""

    path: str
    line: int
    hunks: tuple[Hunk, ...] | None = None
    is_link: bool = False


@fast_init
@frozen
class UpdateFile:
    """A file that changes: its lines, its mode, its path. With `copies` the file at the old path stays as it is.

    `other_paths` are tried if the first does not exist. If `from_before` is true, a move or copy uses the file as it
    was before the patch, as in git's diffs. `blocks` are those of a SEARCH/REPLACE patch, in place of hunks.
    `if_missing` is done instead if there is no file.
    """

    path: str
    line: int
    hunks: tuple[Hunk, ...]
    move_to: str | None = None
    copies: bool = False
    mode: int | None = None
    is_link: bool = False
    other_paths: tuple[str, ...] = ()
    from_before: bool = False
    blocks: tuple[Block, ...] = ()
    if_missing: AddFile | None = None


Operation = AddFile | DeleteFile | UpdateFile
