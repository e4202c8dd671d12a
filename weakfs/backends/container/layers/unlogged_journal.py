"""A journal that logs nothing: for a change that another journal undoes as a whole, or that is repeated if it fails."""

from __future__ import annotations

import stat
from collections.abc import Iterable

from weakfs.reducers.tree.node import Segments
from weakfs.snapshots.undo_journal.journal import Journal


class UnloggedJournal(Journal):
    """A journal that does not keep the entries that its steps replace."""

    def absent(self, segments: Segments) -> None:
        """Do nothing."""

    def keep(self, segments: Segments) -> None:
        """Remove a directory, since otherwise nothing could be put in its place."""
        status = self.disk.status(segments)
        if status is not None and stat.S_ISDIR(status.st_mode):
            self.disk.remove(segments)

    def contents(self, segments: Segments, names: Iterable[Segments]) -> None:
        """Do nothing."""

    def moved(self, source: Segments, destination: Segments) -> None:
        """Do nothing."""

    def status(self, segments: Segments) -> None:
        """Do nothing."""
