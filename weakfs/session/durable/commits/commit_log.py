"""The commit log of a durable session: every change is one frame of a stream, appended before it takes effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import cast

from weakfs.session.durable.checkpoints.checkpoints import LEAST
from weakfs.session.durable.commits.append import append
from weakfs.session.durable.commits.log_state import LogState, StoredChange
from weakfs.session.durable.commits.refresh import refreshed, retract, settled
from weakfs.session.durable.commits.reset import PART, start_anew
from weakfs.session.durable.commits.uncertain_commits import was_stored
from weakfs.session.durable.frames.reader import undeclared_slices
from weakfs.session.durable.frames.writer import Change
from weakfs.session.errors import SessionConflict
from weakfs.session.external_filesystems import CommitPlace, Journal
from weakfs.session.history.reduction import Row
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.slice import SliceSpec
from weakfs.session.slices.table import Table
from weakfs.session.stored_state import SessionTrunk
from weakfs.storage.event_store import DirectEventStore
from weakfs.storage.steps import Steps, run, supplied

NO_JOURNALS: Mapping[str, Journal] = {}
NO_CONTENTS: Mapping[str, bytes] = {}


class CommitLog(LogState):
    """Writes the changes of one session to its stream. Methods are called under the session's lock, except `close`."""

    __slots__ = ()

    def commit(self, session: SessionTrunk, after: Timeline, journals: Mapping[str, Journal] = NO_JOURNALS) -> bool:
        """Store the change to `after`; see `SessionCore._stored`."""
        if self.complete_pending():
            return False
        return run(self.commit_all(session, (after,), journals), self.store)

    def commit_all(
        self, session: SessionTrunk, afters: Sequence[Timeline], journals: Mapping[str, Journal] = NO_JOURNALS
    ) -> Steps[bool]:
        """Store the changes from the trunk to each of these timelines in turn: all of them or none.

        Returns false if, instead, the session was brought up to date with what others stored.
        """
        retract(self, session)
        before = session._trunk
        first = afters[0]
        is_long = first.seq > before.seq + PART and not before.seq and not self.is_awaited
        if first.base is not before.base or is_long:
            return start_anew(self, session, first, journals)
        changes: list[tuple[Timeline, Timeline, Sequence[Row]]] = []
        for after in afters:
            rows = after.rows.after(before.rows._length) if after.rows is not before.rows else ()
            changes.append((before, after, rows))
            before = after
        return (yield from self._commit(session, changes, journals))

    def commit_plain(self, session: SessionTrunk, before: Timeline, after: Timeline) -> bool:
        """Store the change from the trunk to `after`; return false, with nothing changed, if `commit_all` has to."""
        rows = after.rows.after(before.rows._length)
        return after.base is before.base and self._append_rows(session, before, after, rows)

    def commit_row(self, session: SessionTrunk, row: Row, state: Table, logs: Table) -> bool:
        """Store one row that is about to be added to the trunk, with the slices that it leads to."""
        before = session._trunk
        if self.pending_steps is not None:
            base = before.point(), before.copy()
            self.complete_pending()
            self.base = base
            return False
        if self._append_rows(session, before, before, (row,)):
            return True
        after = before.copy()
        after.state, after.logs = state, logs
        return run(self._commit(session, ((before, after, (row,)),)), self.store)

    def _append_rows(self, session: SessionTrunk, before: Timeline, after: Timeline, rows: Sequence[Row]) -> bool:
        """Store plain records, which is all that nearly every call adds.

        Return false, with nothing changed, if `_commit` has to store the change. This takes a third of the time of
        `_commit`.
        """
        seq, last = before.base.seq + before.rows._length, self.stored_last
        if last is not None and last[2] == seq:
            retract(self, session)
        if (
            session._rules is not self.plain_rules
            or after.externals is not self.externals
            or after.snapshots is not before.snapshots
        ):
            return False
        if not rows:
            # A frame without records could not be distinguished from a change that was interrupted before it was
            # adopted.
            return True
        name, append = self.next_name(session), self._append_next
        if append is None:
            append = self._append_next = cast(DirectEventStore, self.store).appender(self.stream)
        written = self.frame_writer.plain(rows, name, seq, session._counter)
        if written is None:
            return False
        data, blobs = written
        contents, size = None, len(data)
        if blobs is not None:
            if blobs.stored:
                return False
            contents = blobs.by_digest
        self.stored_last = (self.head, (name,), seq, len(rows), before.snapshots)
        try:
            if not append(self.head, data, contents):
                self.stored_last = None
                self._append_next = None
                return False
            self.head = number = self.head + 1
        except BaseException:
            self.uncertain.add(name)
            raise
        checkpoints = self.checkpoints
        checkpoints.pending = pending = checkpoints.pending + size
        if pending > LEAST and pending > checkpoints.due:
            self.plain_rules = None
        if contents:
            size += sum(map(len, contents.values()))
        checkpoints.history.add(number, seq, rows, size)
        return True

    def _commit(
        self,
        session: SessionTrunk,
        changes: Sequence[tuple[Timeline, Timeline, Sequence[Row]]],
        journals: Mapping[str, Journal] = NO_JOURNALS,
    ) -> Steps[bool]:
        """Append a frame for each change: the timelines before and after it, and its rows."""
        checkpoints, rules = self.checkpoints, session._rules
        if checkpoints.pending > checkpoints.due:
            checkpoints.begin(session, self.head)
        is_known = rules is self._rules and not self._undeclared
        installed, undeclared = news = ((), self._undeclared) if rules is self._rules else self._new_slices(rules)
        externals = self.externals
        names: list[str] = []
        frames: list[bytes] = []
        sizes: list[int] = []
        contents = NO_CONTENTS
        for before, after, rows in changes:
            name = self.next_name(session)
            written = None
            if is_known and after.externals is externals and after.snapshots is before.snapshots:
                written = self.frame_writer.plain(rows, name, before.seq, session._counter)
            if written is None:
                change = Change(before, after, rows, externals, installed, undeclared)
                written = self.frame_writer.frame(rules, change, name, session._counter)
            data, blobs = written
            names.append(name)
            frames.append(data)
            size = len(data)
            if blobs is not None:
                size += sum(map(len, blobs.by_digest.values()))
                contents = {**contents, **blobs.by_digest} if contents else blobs.by_digest
                if blobs.stored:
                    found = {digest: own.values() for digest, own in blobs.stored.items()}
                    missing = partial(self.contents.missing_of, found, including_known=True)
                    contents = {**contents, **(yield from supplied(missing))}
            sizes.append(size)
            externals, installed = after.externals, ()
        start, end, count = changes[0][0], changes[-1][1], sum(len(rows) for _, _, rows in changes)
        stored: StoredChange | None = None
        if count or end.snapshots is not start.snapshots:
            stored = (self.head, names, start.seq, count, start.snapshots)
        if not (yield from append(self, session, names, frames, contents, journals)):
            return False
        self.stored_last = stored
        if rules is not self._rules:
            # Only now: readers do not learn of these slices if the frame was not stored.
            self._rules, self._undeclared = rules, undeclared
            self.known_slices |= {spec.tag for spec in news[0]}
        self.externals = externals
        for number, ((before, _, rows), size) in enumerate(
            zip(changes, sizes, strict=True), self.head - len(frames) + 1
        ):
            if rows:
                checkpoints.history.add(number, before.seq, rows, size)
        checkpoints.pending += sum(map(len, frames))
        is_unusual = self._undeclared or checkpoints.pending > checkpoints.due or self.lease or self.is_awaited
        self.plain_rules = rules if self._is_direct and not is_unusual else None
        return True

    def was_stored(self, session: SessionTrunk, place: CommitPlace) -> Steps[bool]:
        """Return whether a commit is in this stream, and read what the session has not read yet.

        Raises `StorageError` if that cannot be determined.
        """
        fencing = None if self.lease is None else self.lease.lease.fencing
        found = yield from was_stored(self.store.url, place, fencing=fencing)
        if found:
            # The commit must be read and not rolled back: what was done outside the session stays too.
            self.uncertain.discard(place.name)
        if session._trunk.seq == place.after and self.head >= place.number:
            # The session was interrupted after storing the commit and before adopting it.
            self.head = place.number - 1
        if self.head < place.number:
            yield from refreshed(self, session)
        return found

    def _new_slices(self, rules: Rules) -> tuple[tuple[SliceSpec, ...], frozenset[str]]:
        """Return the slices that readers do not know about yet, and those whose reducers they cannot know."""
        installed = tuple(spec for tag, spec in sorted(rules.specs.items()) if tag not in self.known_slices)
        return installed, undeclared_slices(rules)

    def refresh(self, session: SessionTrunk) -> int:
        """Apply what others stored, and return the number of new records."""
        self.complete_pending()
        before = session._trunk.seq
        run(refreshed(self, session), self.store)
        return session._trunk.seq - before

    def catch_up(self, session: SessionTrunk) -> bool:
        """Apply what others stored, and return whether there was anything.

        Raises `SessionConflict` if there is and the session does not merge.
        """
        found = self.store.head(self.stream)
        if found <= self.head:
            return False
        if not self.merges:
            raise SessionConflict(session.session_id, self.head, found)
        self.refresh(session)
        return True

    def checkpoint(self, session: SessionTrunk) -> None:
        """Write a checkpoint and wait for it; not to be called under the session's lock."""
        self.checkpoints.wait()
        with session.lock:
            retract(self, session)
            if self.head:
                self.checkpoints.begin(session, self.head, is_forced=True)
        self.checkpoints.wait()

    def flush(self) -> None:
        """Make everything durable; not to be called under the session's lock.

        Raises `StorageError` if what was stored is no longer there.
        """
        self.checkpoints.wait()
        self.store.flush()
        if self.flushed != self.head:
            self.check_end(self.store.head(self.stream))

    def close(self, session: SessionTrunk) -> None:
        """Undo what failed but was stored nevertheless, make everything durable, and release the lease and storage."""
        if self.is_closed:
            return
        self.is_closed = True
        with ExitStack() as stack:
            if self.owns_store:
                stack.callback(self.store.close)
            if self.lease is not None:
                stack.callback(self.lease.release)
            with session.lock:
                run(settled(self, session), self.store)
            self.flush()
