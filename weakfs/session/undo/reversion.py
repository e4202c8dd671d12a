"""Reversions: what undoing work changed, or would change."""

from __future__ import annotations

from typing import Literal

from weakfs.class_decorators import frozen
from weakfs.session.conflicts.conflict_types import MergeReport

How = Literal["undo", "redo", "revert", "restore", "rollback"]
# What to do with changes that other programs made in external files.
Foreign = Literal["keep", "replace"]
# How many paths a note names.
MOST_NAMED = 20


@frozen(kw_only=True)
class Reversion(MergeReport):
    """What was undone, or with `preview` would be undone: the paths that change, and the conflicts that would remain.

    `records` are the numbers of the first and last record of each operation that was undone. `foreign` names the
    external files that other programs had changed. `detached` names the external filesystems that the operations had
    changed too, but that are not attached: they stay as they are. `filesystems` are the ids of those with changes or
    conflicts, `None` for the session's own files. `record` is the last record of the reversion; `None` for a preview,
    or if a revert or restore had nothing to change.
    """

    how: How
    records: tuple[tuple[int, int], ...]
    foreign: tuple[str, ...] = ()
    detached: tuple[str, ...] = ()
    filesystems: frozenset[str | None] = frozenset()
    record: int | None = None

    @property
    def note(self) -> str:
        """A message for the model that says which files have changed."""
        left = f" Not attached, and left unchanged: {', '.join(self.detached)}." if self.detached else ""
        if not self.changes:
            return f"Nothing changed.{left}"
        shown = ", ".join(self.paths[:MOST_NAMED])
        more = len(self.paths) - MOST_NAMED
        shown += f" and {more} more" if more > 0 else ""
        return (
            f"Changed by {self.how} (+{self.lines_added} -{self.lines_removed} lines): {shown}. Read them again before "
            f"you rely on their contents.{left}"
        )
