"""Conflicts of a merge as values: what both sides have, who made it, and how it is to be resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from weakfs.class_decorators import frozen

ConflictKind = Literal[
    "content", "binary", "mode", "type", "deleted", "moved_twice", "moved_deleted", "name_taken", "cycle", "slice"
]
Side = Literal["ours", "theirs"]
# "markers" writes both versions into a text; "raise" leaves the conflict unresolved.
Choice = Literal["raise", "ours", "theirs", "markers"]
CHOICES: tuple[Choice, ...] = ("raise", "ours", "theirs", "markers")


@frozen
class ConflictHunk:
    """Lines that both sides changed differently, each with its line ending.

    `line` is the number, from 1, of the first of the `base` lines.
    """

    line: int
    base: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


@frozen
class ConflictEntry:
    """One thing that both sides of a merge changed differently.

    `path` is its path on our side, or on theirs if we do not have it. For a slice without paths, it is a name given by
    the merge function, or the slice's tag. `base`, `ours` and `theirs` are the contents: text, or bytes if they are not
    UTF-8, or the target of a link; `None` for a directory or a missing file. `our_calls` and `their_calls` are the
    causes of the records that changed it, oldest first.
    """

    path: str
    kind: ConflictKind
    slice: str
    base: str | bytes | None = None
    ours: str | bytes | None = None
    theirs: str | bytes | None = None
    hunks: tuple[ConflictHunk, ...] = ()
    base_path: str | None = None
    our_path: str | None = None
    their_path: str | None = None
    our_calls: tuple[str, ...] = ()
    their_calls: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths of the entry in the three versions, without duplicates."""
        found = (self.path, self.our_path, self.their_path, self.base_path)
        return tuple(dict.fromkeys(path for path in found if path is not None))


@frozen
class Resolution:
    """The content that resolves a conflict, in place of both sides; `None` deletes the file."""

    content: str | bytes | None


Resolve = Callable[[ConflictEntry], "Choice | Resolution"]
# How conflicts are resolved: all in the same way, by path or glob, or by a function.
OnConflict = Choice | Resolve | Mapping[str, "Choice | Resolution | Resolve"]


@frozen
class MergedPath:
    """One path that a merge changes on our side, with the lines that it adds to and removes from a text.

    `bytes_added` and `bytes_removed` are the sizes of these lines, or of the whole contents if they are not text.
    `source` is the former path of an entry that moves. For a slice without paths, `path` is its tag.
    """

    path: str
    change: Literal["added", "removed", "changed", "moved"]
    source: str | None = None
    lines_added: int = 0
    lines_removed: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0


@frozen
class MergeReport:
    """What a merge would do: the paths that it changes, and the conflicts that would remain.

    For entries that remain in conflict, our version is counted.
    """

    changes: tuple[MergedPath, ...] = ()
    conflicts: tuple[ConflictEntry, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that change."""
        return tuple(dict.fromkeys(change.path for change in self.changes))

    @property
    def lines_added(self) -> int:
        """The number of lines that are added."""
        return sum(change.lines_added for change in self.changes)

    @property
    def lines_removed(self) -> int:
        """The number of lines that are removed."""
        return sum(change.lines_removed for change in self.changes)

    @property
    def bytes_added(self) -> int:
        """The number of bytes that are added."""
        return sum(change.bytes_added for change in self.changes)

    @property
    def bytes_removed(self) -> int:
        """The number of bytes that are removed."""
        return sum(change.bytes_removed for change in self.changes)
