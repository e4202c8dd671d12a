"""The records of a session as a whole: replaying those of another session, and dropping old ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import TypeVar

from weakfs.platforms import garbage_collection_paused
from weakfs.session.current_timeline import ACTIVE, innermost
from weakfs.session.errors import MissingBlob, RecordsDropped, SessionError
from weakfs.session.history.compaction import compact
from weakfs.session.history.timeline import Timeline
from weakfs.session.history.views import Records
from weakfs.session.slices.events import Record
from weakfs.session.snapshots_and_rollback import Snapshots
from weakfs.session.state import REPLAYING

T = TypeVar("T")

# How many times to try to store a shorter history while other processes change the session. From the second attempt on,
# a lease keeps most of them waiting.
ATTEMPTS = 20


class RecordLog(Snapshots):
    """The part of a session that fills its log of records from another, and compacts it."""

    __slots__ = ()

    def replay(self, records: Iterable[Record]) -> None:
        """Apply recorded events with their own numbers, times and causes, through the reducers alone.

        No handler runs, neither clock nor ids are used, and attached filesystems are not touched. A new session with
        the same slices that replays `other.records` ends up with the same slices, records and snapshots as `other`. If
        `other` was compacted, the replay starts from the earliest state that it keeps. Any other iterable must start
        with record 1, and provides no snapshots.

        The records must follow the newest one here without a gap. If this raises, the session stays as it was. Raises
        `SessionError` for a gap, `UnknownType` for an event whose type is not registered, `MissingBlob` for a missing
        blob that a record needs, and whatever a reducer raises.
        """
        from weakfs.session.files.needed_blobs import check_contents
        from weakfs.session.replay.replay import Replay

        with self.lock:
            if self._closed is not None or self._repairs or self._running is not None:
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
            with self._while_running(REPLAYING), garbage_collection_paused():
                replay.apply_all(records)
            if origin is not None:
                replay.take_snapshots(origin)
            check_contents(self._rules.registry, line, behind=target.seq)
            if self._line() is not target or target.rows is not before:
                raise SessionError(
                    "cannot replay: the iterable of records changed the session; pass records that do not"
                )
            if origin is not None and origin.session_id == self.session_id:
                self._count_from(origin.counter)
            if own is None:
                if not self._stored(target, line):
                    raise SessionError("cannot replay: other processes have changed the session; replay into a new one")
                self._trunk = line
            else:
                own.line = line

    def compact(self, *, keep: int, keep_calls: int | None = None) -> int:
        """Drop all records but the newest `keep`, and blobs that nothing else refers to; return how many were dropped.

        Snapshots stay usable, and a fork keeps the records that are not merged yet. Dropped records can no longer be
        read or rolled back to.

        With `keep_calls`, tool calls are dropped too, except for that many of the newest; a call stays as long as its
        record does. By default all calls stay. Raises `SessionError` inside a transaction, and if other processes write
        so much in the meantime that the shorter history cannot be stored.
        """
        if type(keep) is not int or keep < 0:
            raise ValueError(f"cannot keep {keep!r} records; pass a number of at least 0")
        if keep_calls is not None and (type(keep_calls) is not int or keep_calls < 0):
            raise ValueError(f"cannot keep {keep_calls!r} calls; pass a number of at least 0, or None for all")
        with self.lock:
            line = self._writable()
            if line is not self._trunk:
                raise SessionError(
                    "cannot compact inside a transaction, which may still be rolled back; compact after the transaction"
                )
            if self._base is not None:
                # Records that are not merged yet are still needed.
                keep = max(keep, line.seq - self._base.seq)
            if self._log is None:
                return compact(line, self._rules, keep, keep_calls)
            return self._shortened(lambda after: compact(after, self._rules, keep, keep_calls))

    def _shortened(self, shorten: Callable[[Timeline], T]) -> T:
        """Let `shorten` drop history from a copy of the trunk, then store the copy and replace the trunk with it.

        Return the result of `shorten`. It is called again if another process stored changes in the meantime; other
        processes then wait for a lease. Raises `SessionError`, with nothing changed, if that happens on every attempt.
        """
        with self.lock:
            if self._writable() is not self._trunk:
                raise SessionError(
                    "cannot drop history inside a transaction, which may still be rolled back; drop it afterwards"
                )
            log = self._log
            try:
                for _ in range(ATTEMPTS):
                    began = monotonic()
                    line = self._trunk
                    after = line.copy()
                    try:
                        result = shorten(after)
                        if self._stored(line, after):
                            self._trunk = after
                            return result
                    except (RecordsDropped, MissingBlob):
                        # Another process may have dropped history.
                        if log is None or not log.catch_up(self):
                            raise
                    if log is not None:
                        log.take_compaction_lease(monotonic() - began)
            finally:
                if log is not None:
                    log.release_compaction_lease()
            raise SessionError(
                f"cannot drop history of session {self.session_id!r}: other processes changed it during each of "
                f"{ATTEMPTS} attempts; try again when they write less, or open it with exclusive=True"
            )
