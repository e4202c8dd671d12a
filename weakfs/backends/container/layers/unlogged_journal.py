"""A journal that logs nothing: for a change that another journal undoes as a whole, or that is repeated if it fails."""

from __future__ import annotations

import stat
from collections.abc import Iterable

from weakfs.reducers.tree.node import Segments
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.entries import is_temporary
from weakfs.snapshots.undo_journal.journal import Journal
from weakfs.snapshots.undo_journal.journal_directory import Journals
from weakfs.snapshots.undo_journal.undo import RestoreManifest


class UnloggedJournal(Journal):
    """A journal that does not keep the entries that its steps replace.

    `whole` is the journal that undoes the change. No scan finds temporary entries, so these are logged in it.
    """

    def __init__(
        self,
        disk: HostDirectory,
        journals: Journals,
        restore_manifest: RestoreManifest,
        *,
        whole: Journal | None = None,
    ) -> None:
        super().__init__(disk, journals, restore_manifest)
        self._whole = whole

    def absent(self, segments: Segments) -> None:
        """Log a temporary entry, and nothing else."""
        if self._whole is not None and is_temporary(segments[-1]):
            self._whole.absent(segments)

    def keep(self, segments: Segments, temporary: Segments | None = None) -> None:
        """Remove a directory, since otherwise nothing could be put in its place."""
        if temporary is not None:
            self.absent(temporary)
        status = self.disk.status(segments)
        if status is not None and stat.S_ISDIR(status.st_mode):
            self.disk.remove(segments)

    def contents(self, segments: Segments, names: Iterable[Segments]) -> None:
        """Do nothing."""

    def moved(self, source: Segments, destination: Segments) -> None:
        """Do nothing."""

    def status(self, segments: Segments) -> None:
        """Do nothing."""
