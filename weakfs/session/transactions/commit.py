"""Transactions: blocks whose changes join the timeline that they left, or are undone by an exception."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import TracebackType
from typing import Generic, Self, TypeVar

from weakfs.session.errors import RollbackIncomplete, SessionConflict, SessionError, TransactionCancelled
from weakfs.session.events import RolledBack
from weakfs.session.external import Journal, begin_all, close_all, inexact_notes, undo_all
from weakfs.session.history.log import Log
from weakfs.session.history.record_numbers import Renumbering, Shift
from weakfs.session.history.timeline import Timeline
from weakfs.session.interruption import interruptible, uninterrupted
from weakfs.session.merging.merge import absorb, drop_snapshots, merge_snapshots
from weakfs.session.record_log import RecordLog
from weakfs.session.state import checked_text
from weakfs.session.transactions.cancellation import Cancellation
from weakfs.session.transactions.transaction import ACTIVE, Transaction, current_owner, innermost
from weakfs.storage.errors import StorageError

logger = logging.getLogger("weakfs.session")

B = TypeVar("B", bound="Transactions")


class Transactions(RecordLog):
    """The part of a session that runs blocks of changes as a whole or not at all."""

    __slots__ = ()

    def transaction(
        self, *, cause: str | None = None, cancellation: Cancellation | None = None, shared: bool = False
    ) -> AbstractContextManager[Self]:
        """Run the block as a transaction: an exception rolls back everything it did, here and in attached filesystems.

        Other threads and tasks do not see the changes before the transaction ends, and are not affected by a rollback.
        If they changed the same things in the meantime, the end raises `MergeConflict` and the whole transaction is
        rolled back. Transactions may be nested. Tasks and threads started inside, such as those of `asyncio.gather` or
        `to_thread`, do not join, unless the transaction is `shared` with everything that runs in a copy of this
        context; those that outlive a failed transaction are refused. With `cancellation` another thread can roll it
        back while the code inside still runs.
        """
        return TransactionBlock(self, cause, cancellation, shared)

    def _one_commit(self) -> AbstractContextManager[object]:
        # Sessions in memory need no transaction: what `rollback` and `snapshot` do, they undo themselves.
        is_needed = self._log is not None and self._attached and not self.in_transaction
        return self.transaction() if is_needed else nullcontext()

    def _begin(self, cause: str | None, shared: bool) -> Transaction:
        with self.lock:
            parent = self._writable()
            line = parent.branch(is_fork=False)
            line.cause = parent.cause if cause is None else checked_text("cause", cause)
            outer = innermost(self, ACTIVE.get())
            journals = begin_all(self._attached, {} if outer is None else outer.journals) if self._attached else {}
            own = Transaction(
                self, self._delivery, line, parent.point(), outer, current_owner(), journals, shared=shared
            )
            if outer is not None:
                outer.inner = own
        return own

    def _conclude(self, conclusion: Callable[[int], tuple[object, str]]) -> None:
        """Let the running transaction end with one more record, which is committed with it or not at all.

        When it ends, `conclusion` is called with the number of its last record, and returns an event and its cause.
        """
        own = innermost(self, ACTIVE.get())
        if own is None:
            raise SessionError("there is no transaction that could end; open one first")
        own.conclusion = conclusion

    def _end(self, own: Transaction, error: BaseException | None) -> None:
        """End a transaction whose block raised `error`, if it is not `None`. Raise what keeps it from being merged."""
        try:
            own.leave()
            if error is None:
                try:
                    self._commit(own)
                except BaseException as failure:
                    self._fail(own, failure)
                    raise
                if own.journals:
                    close_all(own.journals)
                own.settled = True
            else:
                self._fail(own, error)
        finally:
            own.leave()
            if not own.settled:
                # An interrupt arrived between these lines.
                self._abandon(own, None)
            own.forget()
            self._notify()

    def _fail(self, own: Transaction, error: BaseException) -> None:
        own.leave()
        if own.shared and own.cancelled is None:
            own.cancel("it failed, and its changes were rolled back")
        self._abandon(own, error)

    def _cancel(self, own: Transaction, reason: str) -> bool:
        """Undo a transaction while its code may still run. Return false if it has already ended by itself."""
        with self.lock:
            if own.settled or own.joined is not None:
                return False
            own.cancel(reason)
            self._abandon(own, None)
        self._notify()
        return True

    def _commit(self, own: Transaction) -> None:
        with self.lock:
            if own.cancelled is not None:
                raise TransactionCancelled(f"cannot end a transaction of the session: {own.cancelled}")
            if own.outer is not None and not own.outer.open:
                raise SessionError("the enclosing transaction has already ended; end the inner transaction first")
            if self._closed is not None:
                self._refuse()
            if own.outer is not None:
                own.outer.merged += own.merged
            try:
                self._join(own, own.journals)
            except BaseException as error:
                if not self._is_committed(own, error):
                    raise
                if not isinstance(error, StorageError):
                    # An interrupt that arrived when everything was done.
                    raise
            finally:
                if self._log is not None:
                    self._log.prepared = None

    def _is_committed(self, own: Transaction, error: BaseException) -> bool:
        """Return whether a transaction is in the storage that ended with an error; what it did outside is then kept.

        If that cannot be found out, its work outside is neither kept nor undone before `repair`.
        """
        log = self._log
        if log is None or log.prepared is None or self._outside(own) is not None:
            return False
        if own.joined is not None and own.joined is self._trunk:
            return True
        place, journals = log.prepared, own.journals
        try:
            with uninterrupted():
                own.is_stored = log.was_stored(self, place)
        except StorageError as failure:
            own.settled = True
            states = dict.fromkeys(journals, f"in doubt, as its commit may be stored in {place.url!r}: {failure}")

            def settle() -> None:
                if log.was_stored(self, place):
                    close_all(journals)
                else:
                    for journal in reversed(list(journals.values())):
                        journal.undo()

            self._repairs = {**self._repairs, **dict.fromkeys(journals, settle)}
            raise RollbackIncomplete(states) from error
        return own.is_stored

    def _abandon(self, own: Transaction, error: BaseException | None) -> None:
        """Undo a transaction: its records stay, followed by the rollback that undoes them."""
        with self.lock, uninterrupted():
            if own.settled:
                return
            if own.is_stored or (own.joined is not None and own.joined is self._line_outside(own)):
                # An interrupt that arrived when everything was done: the transaction took place.
                close_all(own.journals)
                own.settled = True
                return
            repairs, states, undone = undo_all(own.journals)
            for note in inexact_notes(own.journals):
                logger.warning("%s", note)
                if error is not None:
                    error.add_note(note)
            for fork, base in reversed(own.merged):
                fork._base = base
            own.line.snapshots = own.base.snapshots
            own.conclusion = None
            if own.line.seq > own.base.seq:
                self._apply(own.line, RolledBack(own.base.seq, None, own.base.state), None)
                try:
                    self._join(own, {})
                except (StorageError, SessionConflict) as failure:
                    # Everything is as it was before; only the records of what failed are lost.
                    logger.warning("the records of a transaction that failed could not be stored: %s", failure)
            # What an outer rollback restored needs no repair any more.
            left = {name: step for name, step in self._repairs.items() if name not in undone}
            self._repairs = {**left, **repairs}
            own.settled = True
        if repairs:
            raise RollbackIncomplete(states) from error

    def _outside(self, own: Transaction) -> Transaction | None:
        """Return the next enclosing transaction that is still open."""
        outer = own.outer
        while outer is not None and not outer.open:
            outer = outer.outer
        return outer

    def _line_outside(self, own: Transaction) -> Timeline:
        outer = self._outside(own)
        return self._trunk if outer is None else outer.line

    def _join(self, own: Transaction, journals: Mapping[str, Journal]) -> None:
        """Merge a transaction into the enclosing timeline: prepared on a copy, then assigned in one step.

        `journals` are those of its work outside the session, which is stored with it or not at all.
        """
        line, base, branch = self._line_outside(own), own.base, own.line
        joined = line.copy()
        # Nothing is renumbered if nothing was done, or if nobody else did anything.
        shift = Shift(base.seq + 1, 0, line.numbering)
        renumbering: Renumbering | None = None
        if branch.rows is not base.rows:
            if line.rows is base.rows:
                joined.adopt(branch)
            else:
                at, cause = self.now(), branch.cause
                _, renumbering = absorb(self._rules, joined, base, branch, fork=self.session_id, at=at, cause=cause)
                shift = renumbering.shifts[-1]
        if branch.touches_snapshots_since(base):
            if renumbering is None:
                renumbering = Renumbering(base.numbering, Log((shift,)), line.numbering)
            merge_snapshots(
                self._rules, base, joined, branch, renumbering=renumbering, number=lambda entry: entry.number
            )
            drop_snapshots(base, joined, branch)
        if own.conclusion is not None:
            self._apply(joined, *own.conclusion(joined.seq))
        if not self._stored(line, joined, journals):
            # Others changed the session in its storage first: join what it is now.
            self._join(own, journals)
            return
        # For the forks that were made or merged inside.
        branch.numbering.shift = shift
        own.joined = joined
        outer = self._outside(own)
        if outer is None:
            self._trunk = joined
            self._post_since(joined, line.seq)
        else:
            outer.line = joined


class TransactionBlock(Generic[B]):
    """The block of a transaction. A class: a generator takes 1.5 µs more for each."""

    __slots__ = ("_cancellation", "_cause", "_interruptible", "_own", "_session", "_shared")

    def __init__(self, session: B, cause: str | None, cancellation: Cancellation | None, shared: bool) -> None:
        self._session = session
        self._cause = cause
        self._cancellation = cancellation
        self._shared = shared
        self._interruptible: interruptible | None = None
        self._own: Transaction | None = None

    def __enter__(self) -> B:
        session, cancellation = self._session, self._cancellation
        self._own = own = session._begin(self._cause, self._shared)
        try:
            if cancellation is not None:
                cancellation.govern(partial(session._cancel, own))
            # Inside the try block, so that an interrupt never leaves it active.
            ACTIVE.set((*ACTIVE.get(), own))
            if cancellation is not None:
                self._interruptible = interruptible(cancellation.check)
                self._interruptible.__enter__()
        except BaseException as error:
            self._end(own, error)
            raise
        return session

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # It may have ended with an error before.
        if self._own is not None and self._own.session is not None:
            self._end(self._own, error)

    def _end(self, own: Transaction, error: BaseException | None) -> None:
        try:
            if self._interruptible is not None:
                self._interruptible.__exit__()
        finally:
            self._session._end(own, error)
        self._own = None

    def __del__(self) -> None:
        # An interrupt arrived before `__exit__` ran, or the generator that had entered the block was dropped.
        if self._own is not None and self._own.session is not None:
            self._end(self._own, GeneratorExit("the block was left"))
