"""Rollback: going back to a snapshot or a record, in the session and in every attached filesystem."""

from __future__ import annotations

from typing import Any

from weakfs.session.errors import RollbackIncomplete, SessionError, UnknownSnapshot
from weakfs.session.events import Record, RolledBack
from weakfs.session.external import Restoring, Rewindable, RunsPrograms
from weakfs.session.history.checkpoints import Mark
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.snapshots import Snapshots
from weakfs.session.views import SessionView, Snapshot


class Rollback(Snapshots):
    """The part of a session that goes back."""

    __slots__ = ()

    def rollback(self, target: int | str | Snapshot, *, cause: str | None = None) -> Record:
        """Go back to a snapshot, given the snapshot, its id or its tag, or to a record number; LOG slices stay.

        O(1) for a snapshot; a record number costs as much as `at`.

        The rollback is itself a record: rolling back to the record before it undoes it. Attached filesystems go back
        too: exactly to a snapshot; to a record, which has no snapshot, by undoing what was changed through the session
        since then. Processes that work in their files are ended first. If a filesystem fails, all return to their
        previous state and its error is raised.
        """
        with self.lock, self._one_commit():
            line = self._writable()
            if type(target) is int:
                mark = line.mark_at(self._rules, target)
                state, seq, snapshot_id = mark.state, target, None
                externals = self._externals_at(line, mark, target) if self._attached else ()
                if self._quiesce(line, dict(externals)):
                    externals = self._externals_at(line, mark, target)
            else:
                entry = self._entry(line, target)
                state, seq, snapshot_id, externals = entry.state, entry.seq, entry.snapshot_id, entry.externals
                self._quiesce(line, dict(externals))
            record = self._roll_back(line, RolledBack(seq, snapshot_id, state), cause, dict(externals))
        self._notify()
        return record

    def _quiesce(self, line: Timeline, externals: dict[str, Any]) -> bool:
        """End what works in the filesystems that are about to be restored; return whether that left records."""
        self._check_attached(externals)
        before = line.seq
        for external in self._attached:
            if external.filesystem_id in externals and isinstance(external, RunsPrograms):
                external.quiesce()
        return line.seq > before

    def _check_attached(self, externals: dict[str, Any]) -> None:
        missing = externals.keys() - {external.filesystem_id for external in self._attached}
        if missing:
            raise SessionError(
                f"cannot roll back: the snapshot holds the filesystems {sorted(missing)}, which are not attached to "
                f"session {self.session_id!r}; attach them first"
            )

    def _roll_back(self, line: Timeline, event: RolledBack, cause: str | None, externals: dict[str, Any]) -> Record:
        """Restore attached filesystems and record the rollback: both or neither."""
        if not externals:
            return Record(*self._apply(line, event, cause))
        restoring = Restoring()
        number = None
        try:
            try:
                restoring.run(self._attached, externals)
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

    def _put_back(self, restoring: Restoring, line: Timeline, number: int | None, error: BaseException | None) -> None:
        if number is not None and line.seq > number:
            # An interrupt that arrived when everything was done: the rollback took place.
            restoring.settled = True
            return
        repairs = restoring.put_back()
        self._repairs = {**self._repairs, **repairs}
        restoring.settled = True
        if repairs:
            raise RollbackIncomplete(restoring.states) from error

    def _externals_at(self, line: Timeline, mark: Mark, seq: int) -> tuple[tuple[str, Any], ...]:
        """Return what takes attached filesystems back to record `seq`: a snapshot from then, or what is known of it."""
        found = line.externals.get(seq)
        if found is None:
            found = next(
                (entry.externals for entry in ordered_snapshots(line) if entry.seq == seq and entry.externals), ()
            )
        kept = dict(found)
        then = SessionView(self._rules, seq, mark.state, mark.logs)
        now = SessionView(self._rules, line.seq, line.state, line.logs)
        for external in self._attached:
            name = external.filesystem_id
            if name not in kept:
                if not isinstance(external, Rewindable):
                    raise UnknownSnapshot(
                        f"cannot roll {name} back to record {seq}: no snapshot was taken there; roll back to a snapshot"
                    )
                kept[name] = external.known_at(then, now)
        return tuple(kept.items())
