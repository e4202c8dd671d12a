"""The moments of a session: reading any of them, and the snapshots that keep some."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from weakfs.session.core import SessionCore, checked_text
from weakfs.session.errors import UnknownSnapshot
from weakfs.session.external import snapshot_all
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.views import SessionView, Snapshot


class Snapshots(SessionCore):
    """The part of a session that reads and keeps its moments."""

    __slots__ = ()

    def _one_commit(self) -> AbstractContextManager[object]:
        """Return a block whose changes, here and in attached filesystems, are one commit of the session's storage."""
        raise NotImplementedError

    def at(self, target: int | str | Snapshot) -> SessionView:
        """Return the slices as they were after a record, or at a snapshot.

        Costs a replay from the nearest checkpoint: at most 512 records or those of one merge near the present, 4,096
        further back, and more if the states differ so much that keeping more of them would outweigh the records. The
        first read of a loaded history reads it once, as far as needed. A snapshot costs nothing.

        Raise `UnknownSnapshot` if there is no such record or snapshot.
        """
        with self.lock:
            line = self._line()
            if type(target) is int:
                mark = line.mark_at(self._rules, target)
                return SessionView(self._rules, target, mark.state, mark.logs)
            entry = self._entry(line, target)
            logs = line.mark_at(self._rules, max(entry.seq, line.dropped)).logs
            return SessionView(self._rules, entry.seq, entry.state, logs)

    def view(self) -> SessionView:
        """Return the current slices, which stay as they are while the session continues. O(1)."""
        with self.lock:
            line = self._line()
            return SessionView(self._rules, line.seq, line.state, line.logs)

    def snapshot(self, tag: str | None = None) -> Snapshot:
        """Keep this moment: O(1), by reference, plus the cost of a snapshot of each attached filesystem.

        Several snapshots may have the same tag; the tag then refers to the newest of them.
        """
        with self.lock, self._one_commit():
            line = self._writable()
            checked_text("tag", tag)
            externals = snapshot_all(self._attached, tag) if self._attached else ()
            at, seq = self.now(), line.seq
            snapshot_id = self._next_id("s")
            entry = SnapshotEntry(snapshot_id, self._counter, seq, at, tag, line.state, externals)
            self._change_snapshots(line, lambda changed: changed.keep_snapshot(entry))
            taken = Snapshot(snapshot_id, seq, at, tag)
        self._notify()
        return taken

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots that are kept, oldest first."""
        return tuple(_describe(entry) for entry in ordered_snapshots(self._line()))

    def drop_snapshot(self, target: str | Snapshot) -> None:
        """Drop a snapshot, given the snapshot, its id or its tag. Raise `UnknownSnapshot` if it is not kept."""
        with self.lock:
            line = self._writable()
            entry = self._entry(line, target)
            self._change_snapshots(line, lambda changed: changed.forget_snapshot(entry.snapshot_id))

    def _change_snapshots(self, line: Timeline, change: Callable[[Timeline], None]) -> None:
        if self._log is None or line is not self._trunk:
            change(line)
            return
        after = line.copy()
        change(after)
        while not self._stored(line, after):
            after = line.copy()
            change(after)
        line.snapshots, line.touched = after.snapshots, after.touched

    def _entry(self, line: Timeline, target: int | str | Snapshot) -> SnapshotEntry:
        if not isinstance(target, (str, Snapshot)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{target!r:.60} is not a moment; pass a snapshot, its id, its tag or a record number")
        wanted = target if isinstance(target, str) else target.snapshot_id
        entry = line.snapshots.get(wanted)
        if entry is None and isinstance(target, str):
            entry = line.snapshots.newest(target)
        if entry is None:
            names = dict.fromkeys(e.tag or e.snapshot_id for e in ordered_snapshots(line))
            if not names:
                raise UnknownSnapshot(
                    f"session {self.session_id!r} has no snapshot {wanted!r}: none was taken; take one with "
                    f"snapshot({wanted!r}) first, or give a record number"
                )
            known = ", ".join(map(repr, list(names)[-5:]))
            raise UnknownSnapshot(
                f"session {self.session_id!r} has no snapshot {wanted!r}: it may have been dropped; "
                f"the newest are {known}"
            )
        return entry


def _describe(entry: SnapshotEntry) -> Snapshot:
    return Snapshot(entry.snapshot_id, entry.seq, entry.at, entry.tag)
