"""The moments of a session: reading any of them, keeping some as snapshots, and rolling back to one.

A rollback also rolls back every attached filesystem.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from attrs import evolve

from weakfs.session.core import SessionCore
from weakfs.session.errors import RollbackIncomplete, SessionError, UnknownSnapshot
from weakfs.session.external_filesystems import Restoring, Reversible, Rewindable, RunsPrograms, snapshot_all
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.state_at import state_at
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.history.views import SessionSnapshot, SessionView
from weakfs.session.slices.events import Record, RolledBack
from weakfs.session.state import checked_text


class Snapshots(SessionCore):
    """The part of a session that reads past states, keeps snapshots, and rolls back."""

    __slots__ = ()

    def _one_commit(self) -> AbstractContextManager[object]:
        """Return a block that holds the lock, and whose changes are one commit of the session's storage.

        That includes changes in attached filesystems.
        """
        raise NotImplementedError

    def at(self, seq: int | str | SessionSnapshot) -> SessionView:
        """Return the slices as they were after a record, given by its number, or at a snapshot.

        Costs a replay from the nearest keyframe: at most 512 records or those of one merge near the present, and 4,096
        further back, or more if the states differ so much that more keyframes would take more memory than the records.
        A loaded history has fewer keyframes, up to 32,768 records apart; a history without keyframes is read once, as
        far as needed. A snapshot costs nothing.

        Raises `UnknownSnapshot` if there is no such record or snapshot.
        """
        with self.lock:
            view = self._reading(partial(self._at, seq))
        # The session may have caught up with records that others stored.
        self._notify()
        return view

    def _at(self, target: int | str | SessionSnapshot) -> SessionView:
        line = self._line()
        if type(target) is int:
            mark = state_at(line, self._rules, target)
            return SessionView(self._rules, target, mark.state, mark.logs)
        return self._at_entry(line, self._entry(line, target))

    def _at_entry(self, line: Timeline, entry: SnapshotEntry) -> SessionView:
        logs = state_at(line, self._rules, max(entry.seq, line.dropped)).logs
        return SessionView(self._rules, entry.seq, entry.state, logs)

    def view(self) -> SessionView:
        """Return the current slices, which stay as they are while the session continues. O(1)."""
        with self.lock:
            line = self._line()
            return self._present(line)

    def snapshot(self, tag: str | None = None) -> SessionSnapshot:
        """Keep the current state as a snapshot. O(1), by reference, plus a snapshot of each attached filesystem.

        Several snapshots may have the same tag; the tag then refers to the newest of them.
        """
        with self._one_commit():
            line = self._writable()
            checked_text("tag", tag)
            externals = snapshot_all(self._attached, tag) if self._attached else ()
            at = self.now()
            snapshot_id = self._next_id("s")
            number = self._number

            def keep(changed: Timeline) -> None:
                # What others have stored meanwhile is part of this moment: they may have dropped earlier records.
                changed.add_snapshot(SnapshotEntry(snapshot_id, number, changed.seq, at, tag, changed.state, externals))

            self._change_snapshots(line, keep)
            taken = SessionSnapshot(snapshot_id, line.seq, at, tag)
        self._notify()
        return taken

    @property
    def snapshots(self) -> tuple[SessionSnapshot, ...]:
        """The snapshots that are kept, oldest first."""
        return tuple(_describe(entry) for entry in ordered_snapshots(self._line()))

    def drop_snapshot(self, target: str | SessionSnapshot) -> None:
        """Drop a snapshot, given as an object, by its id or by its tag. Raises `UnknownSnapshot` if it is not kept."""
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

    def _entry(self, line: Timeline, target: int | str | SessionSnapshot) -> SnapshotEntry:
        if not isinstance(target, (str, SessionSnapshot)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"{target!r:.60} is not a moment; pass a snapshot of the session, its id or tag, or a record number"
            )
        wanted = target if isinstance(target, str) else target.snapshot_id
        try:
            return line.snapshots[wanted]
        except KeyError:
            entry = line.snapshots.newest(wanted) if isinstance(target, str) else None
        if entry is None:
            names = dict.fromkeys(e.tag or e.snapshot_id for e in ordered_snapshots(line))
            if not names:
                raise UnknownSnapshot(
                    f"session {self.session_id!r} has no snapshot {wanted!r}: no snapshots are kept; take one with "
                    f"snapshot(tag) first, or pass a record number"
                )
            known = ", ".join(map(repr, list(names)[-5:]))
            raise UnknownSnapshot(
                f"session {self.session_id!r} has no snapshot {wanted!r}: it may have been dropped; "
                f"the newest are {known}"
            )
        return entry

    def _go_to(
        self, target: int | str | SessionSnapshot, cause: str | None, aims: Callable[[int], Mapping[str, Any]] | None
    ) -> Record:
        """Go back to a moment; see `Session.rollback`.

        `aims` is called with the record number of the moment. It returns what some attached filesystems are to be
        restored to instead, by id.
        """
        with self._one_commit():
            line = self._writable()
            if type(target) is int:
                mark = state_at(line, self._rules, target)
                state, seq, snapshot_id = mark.state, target, None
                externals = self._externals_at(line, mark, target) if self._attached else ()
                if externals and self._quiesce(line, dict(externals)):
                    externals = self._externals_at(line, mark, target)
            else:
                entry = self._entry(line, target)
                state, seq, snapshot_id, externals = entry.state, entry.seq, entry.snapshot_id, entry.externals
                if externals:
                    self._quiesce(line, dict(externals))
            wanted = dict(externals)
            if wanted and aims is not None:
                wanted.update(aims(seq))
            record = self._roll_back(line, RolledBack(seq, snapshot_id, state), cause, wanted)
        self._notify()
        return record

    def _quiesce(self, line: Timeline, externals: dict[str, Any]) -> bool:
        """Stop the programs that run in the filesystems that are about to be restored.

        Return whether that made records.
        """
        missing = externals.keys() - {external.filesystem_id for external in self._attached}
        if missing:
            raise SessionError(
                f"cannot roll back: the snapshot covers the filesystems {sorted(missing)}, which are not attached to "
                f"session {self.session_id!r}; attach them first"
            )
        before = line.seq
        for external in self._attached:
            if external.filesystem_id in externals and isinstance(external, RunsPrograms):
                external.quiesce()
        return line.seq > before

    def _roll_back(self, line: Timeline, event: RolledBack, cause: str | None, externals: dict[str, Any]) -> Record:
        """Restore attached filesystems and record the rollback: both or neither."""
        if not externals:
            return Record(*self._apply(line, event, cause))
        restoring = Restoring()
        number = None
        before = self._present(line)
        try:
            try:
                restoring.run(self._attached, externals)
                event = evolve(event, foreign=self._changed_by_others(line, before, externals))
                line.externals = line.externals.set(line.seq, restoring.before)
                number = line.seq
                record = Record(*self._apply(line, event, cause))
                restoring.settled = True
            except BaseException as error:
                self._put_back(restoring, line, number, error)
                raise
        finally:
            if not restoring.settled:
                # An interrupt arrived between these lines.
                self._put_back(restoring, line, number, None)
        return record

    def _changed_by_others(self, line: Timeline, before: SessionView, names: Container[str]) -> tuple[str, ...] | None:
        """Return the external files that other programs changed, according to a scan."""
        now = self._present(line)
        found = {
            path
            for external in self._attached
            if isinstance(external, Reversible) and external.filesystem_id in names
            for path in external.differing(external.known(before, now), external.known(now, now))
        }
        return tuple(sorted(found)) or None

    def _present(self, line: Timeline) -> SessionView:
        return SessionView(self._rules, line.seq, line.state, line.logs)

    def _put_back(self, restoring: Restoring, line: Timeline, number: int | None, error: BaseException | None) -> None:
        if number is not None and line.seq > number:
            # The interrupt arrived after everything was done: the rollback took place.
            restoring.settled = True
            return
        repairs = restoring.put_back()
        self._repairs = {**self._repairs, **repairs}
        restoring.settled = True
        if repairs:
            raise RollbackIncomplete(restoring.states) from error

    def _externals_at(self, line: Timeline, mark: Mark, seq: int) -> tuple[tuple[str, Any], ...]:
        """Return what a rollback to record `seq` restores in attached filesystems: snapshots, or known files."""
        found = line.externals.get(seq)
        if found is None:
            found = next(
                (entry.externals for entry in ordered_snapshots(line) if entry.seq == seq and entry.externals), ()
            )
        kept = dict(found)
        then = SessionView(self._rules, seq, mark.state, mark.logs)
        now = self._present(line)
        for external in self._attached:
            name = external.filesystem_id
            if name not in kept:
                if not isinstance(external, Rewindable):
                    raise UnknownSnapshot(
                        f"cannot roll {name} back to record {seq}: no snapshot was taken there; roll back to a snapshot"
                    )
                kept[name] = external.known_at(then, now)
        return tuple(kept.items())


def _describe(entry: SnapshotEntry) -> SessionSnapshot:
    return SessionSnapshot(entry.snapshot_id, entry.seq, entry.at, entry.tag)
