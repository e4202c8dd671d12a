"""The history of a session: reading any moment, snapshots, rollback, replay and compaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from weakfs.session.core import SessionCore, checked_text, reducing
from weakfs.session.errors import RollbackIncomplete, SessionError, UnknownSnapshot
from weakfs.session.events import Record, RolledBack
from weakfs.session.external import Restoring, Rewindable, snapshot_all
from weakfs.session.files.content_references import check_contents
from weakfs.session.history.checkpoints import Mark
from weakfs.session.history.garbage_collection import collector_at_rest
from weakfs.session.history.replay import Replay
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.transaction import ACTIVE, innermost
from weakfs.session.views import Records, SessionView, Snapshot


class History(SessionCore):
    """The part of a session that deals with its past."""

    __slots__ = ()

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
        with self.lock:
            line = self._writable()
            checked_text("tag", tag)
            externals = snapshot_all(self._attached, tag) if self._attached else ()
            at, seq = self.now(), line.seq
            snapshot_id = self._next_id("s")
            entry = SnapshotEntry(snapshot_id, self._counter, seq, at, tag, line.state, externals)
            self._change_snapshots(line, lambda changed: changed.keep_snapshot(entry))
            return Snapshot(snapshot_id, seq, at, tag)

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
        after = line.copy()
        change(after)
        while not self._stored(line, after):
            after = line.copy()
            change(after)
        line.snapshots, line.touched = after.snapshots, after.touched

    def rollback(self, target: int | str | Snapshot, *, cause: str | None = None) -> Record:
        """Go back to a snapshot, given the snapshot, its id or its tag, or to a record number; LOG slices stay.

        O(1) for a snapshot; a record number costs as much as `at`.

        The rollback is itself a record: rolling back to the record before it undoes it. Attached filesystems go back
        too: exactly to a snapshot; to a record, which has no snapshot, by undoing what was changed through the session
        since then. If one of them fails, all return to their previous state and its error is raised.
        """
        with self.lock:
            line = self._writable()
            if type(target) is int:
                mark = line.mark_at(self._rules, target)
                state, seq, snapshot_id = mark.state, target, None
                externals = self._externals_at(line, mark, target) if self._attached else ()
            else:
                entry = self._entry(line, target)
                state, seq, snapshot_id, externals = entry.state, entry.seq, entry.snapshot_id, entry.externals
            record = self._roll_back(line, RolledBack(seq, snapshot_id, state), cause, dict(externals))
        self._notify()
        return record

    def _roll_back(self, line: Timeline, event: RolledBack, cause: str | None, externals: dict[str, Any]) -> Record:
        """Restore attached filesystems and record the rollback: both or neither."""
        if not externals:
            return Record(*self._apply(line, event, cause))
        missing = externals.keys() - {external.filesystem_id for external in self._attached}
        if missing:
            raise SessionError(
                f"cannot roll back: the snapshot holds the filesystems {sorted(missing)}, which are not attached to "
                f"session {self.session_id!r}; attach them first"
            )
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

    def replay(self, records: Iterable[Record]) -> None:
        """Apply recorded events with their own numbers, times and causes, through the reducers alone.

        No handler runs, neither clock nor ids are used, and attached filesystems are not touched. A new session with
        the same slices that replays `other.records` ends up with the same slices, records and snapshots as `other`. If
        `other` was compacted, the replay starts from the earliest state that it keeps. Other iterables bring no
        snapshots and start with record 1.

        The records must follow the newest one here without a gap. All or nothing: the session stays as it was when
        this raises `SessionError` for a gap, `UnknownType` for an event whose type is not registered, `MissingBlob`
        for a missing blob that a record needs, or whatever a reducer raises.
        """
        with self.lock:
            if self._closed is not None or self._repairs:
                self._refuse()
            own = innermost(self, ACTIVE.get())
            target = self._line()
            before = target.rows
            line = target.copy()
            replay = Replay(self._rules, line)
            origin = records.origin if isinstance(records, Records) else None
            is_new = own is None and self._base is None and not target.seq
            if origin is not None and (is_new or origin.base.seq == target.seq):
                replay.begin_with(origin)
            if self._reducing:
                raise reducing("replay")
            self._reducing = True
            try:
                with collector_at_rest():
                    replay.apply_all(records)
            finally:
                self._reducing = False
            if origin is not None:
                replay.take_snapshots(origin)
            check_contents(self._rules.registry, line, behind=target.seq)
            if self._line() is not target or target.rows is not before:
                raise SessionError(
                    "cannot replay: the iterable of records changed the session; pass records that do not"
                )
            if origin is not None and origin.session_id == self.session_id:
                self._counter = max(self._counter, origin.counter)
            if own is None:
                if not self._stored(target, line):
                    raise SessionError("cannot replay: others have changed the session; replay into a new one")
                self._trunk = line
            else:
                own.line = line

    def compact(self, *, keep: int, keep_calls: int | None = None) -> int:
        """Drop all records but the newest `keep`, and blobs that nothing else refers to; return the number of records.

        Snapshots stay usable, and a fork keeps what is not merged yet.
        Dropped records can no longer be read or rolled back to.

        With `keep_calls`, tool calls are dropped too, except for that many of the newest; a call stays as long as its
        record does. By default all calls stay.
        """
        if keep < 0:
            raise ValueError(f"cannot keep {keep} records; pass a number of at least 0")
        if keep_calls is not None and keep_calls < 0:
            raise ValueError(f"cannot keep {keep_calls} calls; pass a number of at least 0, or None for all")
        with self.lock:
            line = self._writable()
            if line is not self._trunk:
                raise SessionError("cannot compact inside a transaction: it may still be rolled back; compact after it")
            if self._base is not None:
                # What is not merged yet is still needed.
                keep = max(keep, line.seq - self._base.seq)
            if self._log is None:
                return line.compact(self._rules, keep, keep_calls)
            after = line.copy()
            count = after.compact(self._rules, keep, keep_calls)
            while not self._stored(line, after):
                after = line.copy()
                count = after.compact(self._rules, keep, keep_calls)
            self._trunk = after
            return count

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
