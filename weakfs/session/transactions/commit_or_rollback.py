"""Transactions: blocks whose changes are merged into the enclosing timeline, or undone after an exception."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

from weakfs.session.current_timeline import ACTIVE, Conclusion, Transaction, current_owner, innermost
from weakfs.session.errors import RollbackIncomplete, SessionConflict, SessionError, TransactionCancelled
from weakfs.session.external_filesystems import Journal, begin_all, close_all, inexact_notes, undo_all
from weakfs.session.history.record_numbers import Renumbering, Shift
from weakfs.session.history.timeline import Timeline
from weakfs.session.interruption import uninterrupted
from weakfs.session.logger import logger
from weakfs.session.record_log import RecordLog
from weakfs.session.slices.events import RolledBack
from weakfs.session.slices.log import Log
from weakfs.session.state import MERGING, checked_text
from weakfs.session.transactions.block import TransactionBlock
from weakfs.session.transactions.cancellation import Cancellation, in_own_thread
from weakfs.storage.errors import StorageError
from weakfs.storage.steps import Steps, run, supplied

if TYPE_CHECKING:
    from weakfs.session.durable.commits.commit_log import CommitLog

T = TypeVar("T")


class Transactions(RecordLog):
    """The part of a session that runs blocks of changes as a whole or not at all."""

    __slots__ = ()

    def transaction(
        self, *, cause: str | None = None, cancellation: Cancellation | None = None, shared: bool = False
    ) -> TransactionBlock[Self]:
        """Run the block as a transaction: an exception rolls back everything it did, here and in attached filesystems.

        Other threads and tasks do not see the changes until the transaction ends, and are not affected by a rollback.
        If they changed the same things in the meantime, leaving the block raises `MergeConflict` and the whole
        transaction is rolled back. Transactions may be nested. Tasks and threads started inside, such as those of
        `asyncio.gather` or `to_thread`, do not join, unless the transaction is `shared` with everything that runs in a
        copy of this context; those that outlive a failed transaction are refused. With `cancellation` another thread
        can roll it back while the code inside still runs.

        With `async with`, leaving the block awaits the commit of a session that was opened with `aopen`. If that is
        cancelled, everything is rolled back unless the commit is in the storage already.
        """
        return TransactionBlock(self, cause, cancellation, shared)

    def _one_commit(self) -> AbstractContextManager[object]:
        # Sessions in memory need no transaction: `rollback` and `snapshot` undo their own changes.
        return self.lock if self._log is None else self._one_stored_commit()

    @contextmanager
    def _one_stored_commit(self) -> Iterator[None]:
        with self.lock, self.transaction() if self._attached and not self.in_transaction else nullcontext():
            yield

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

    def _conclude(self, conclusion: Conclusion) -> None:
        """Add records at the end of the running transaction, which are committed with it or not at all.

        When it ends, `conclusion` is called with the merged timeline, and returns events and their causes.
        """
        own = innermost(self, ACTIVE.get())
        if own is None:
            raise SessionError("there is no transaction to end; open one first")
        own.conclusion = conclusion

    def _end(self, own: Transaction, error: BaseException | None) -> None:
        """End a transaction; `error` is what its block raised, if anything. Raises what keeps it from being merged."""
        try:
            own.leave()
            if error is None:
                try:
                    self._commit(own)
                except BaseException as failure:
                    self._fail(own, failure)
                    raise
                self._settle(own)
            else:
                self._fail(own, error)
        finally:
            self._finish(own)

    async def _aend(self, own: Transaction, error: BaseException | None) -> None:
        """End a transaction as `_end` does, and await its commit.

        If that is cancelled, the transaction is undone, unless it is in the storage already.
        """
        queue = self._queue
        if error is not None and own.journals:
            own.leave()
            # Restoring files may take a long time.
            await in_own_thread(partial(self._end, own, error))
            return
        if error is not None or queue is None or not queue.is_here or self._outside(own) is not None:
            self._end(own, error)
            return
        try:
            own.leave()
            try:
                with self.lock:
                    self._check_end(own)
                    own.is_ending = True
                await queue.commit(own)
            except BaseException as failure:
                if not own.is_stored:
                    self._fail(own, failure)
                raise
            finally:
                if own.is_stored:
                    self._settle(own)
        finally:
            self._finish(own)

    @property
    def _awaits_commits(self) -> bool:
        """Whether the running code is on the event loop that awaits the commits of the session."""
        return self._queue is not None and self._queue.is_here

    @property
    def _needs_no_thread(self) -> bool:
        """Whether using the session never waits for storage, apart from commits that are awaited."""
        log = self._log
        return log is None or log.is_brief or (self._awaits_commits and not log.has_unread)

    def _dispatch_all(self, conclusion: Conclusion) -> None:
        """Apply events, which `conclusion` returns as for `_conclude`."""
        with self.lock:
            line = self._writable()
            for event, cause in conclusion(line):
                self._apply(self._writable(), event, cause)
        self._notify()

    async def _adispatch_all(self, conclusion: Conclusion) -> None:
        """Apply events as `_dispatch_all` does, and await their commit."""
        queue = self._queue
        if queue is None or self.in_transaction or not queue.is_here:
            self._dispatch_all(conclusion)
        else:
            await queue.record(self._last_part(conclusion))

    def _dispatch_soon(self, conclusion: Conclusion) -> None:
        """Apply events as `_dispatch_all` does. If an event loop awaits commits, do not wait for this one."""
        queue = self._queue
        if queue is None:
            self._dispatch_all(conclusion)
        else:
            queue.keep(self._last_part(conclusion))

    def _last_part(self, conclusion: Conclusion) -> Transaction:
        """Return a transaction that has ended and adds only these events."""
        with self.lock:
            line = self._writable()
            return Transaction(self, None, line.branch(is_fork=False), line.point(), None, (0, None), {}, conclusion)

    def _settle(self, own: Transaction) -> None:
        if own.journals:
            close_all(own.journals)
        own.settled = True

    def _finish(self, own: Transaction) -> None:
        own.leave()
        if not own.settled:
            # An interrupt arrived when the transaction was ending.
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
            if own.settled or own.joined is not None or own.is_ending:
                return False
            own.cancel(reason)
            self._abandon(own, None)
        self._notify()
        return True

    def _commit(self, own: Transaction) -> None:
        with self.lock:
            self._check_end(own)
            if own.outer is not None:
                own.outer.merged += own.merged
            log = self._log
            if not self._join_at_once(own) and log is not None:
                self._perform(log, self._committed(own))

    def _check_end(self, own: Transaction) -> None:
        if own.cancelled is not None:
            raise TransactionCancelled(f"cannot end a transaction of the session: {own.cancelled}")
        if own.outer is not None and not own.outer.open:
            raise SessionError("the enclosing transaction has already ended; end the inner transaction first")
        if self._closed is not None:
            self._refuse()

    def _perform(self, log: CommitLog, steps: Steps[T]) -> T:
        """Perform the steps of a change, with the session locked until they end."""
        log.complete_pending()
        return run(steps, log.store)

    def _committed(self, own: Transaction) -> Steps[None]:
        try:
            yield from self._join(own, own.journals)
        except BaseException as error:
            # An interrupt that arrived after everything was done is raised too.
            if not (yield from self._is_committed(own, error)) or not isinstance(error, StorageError):
                raise
        finally:
            if self._log is not None:
                self._log.prepared = None

    def _is_committed(self, own: Transaction, error: BaseException) -> Steps[bool]:
        """Return whether a transaction that ended with an error is in the storage; if so, its work outside is kept.

        If that cannot be determined, its work outside is neither kept nor undone before `repair`.
        """
        log = self._log
        if log is None or log.prepared is None or self._outside(own) is not None:
            return False
        if own.joined is not None and own.joined is self._trunk:
            return True
        place, journals = log.prepared, own.journals
        try:
            own.is_stored = yield from log.was_stored(self, place)
        except StorageError as failure:
            own.settled = True
            states = dict.fromkeys(journals, f"in doubt, as its commit may be stored in {place.url!r}: {failure}")

            def settle() -> None:
                if self._perform(log, log.was_stored(self, place)):
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
                # The interrupt arrived after everything was done: the transaction took place.
                close_all(own.journals)
                own.settled = True
                return
            repairs, states, undone = undo_all(own.journals)
            for note in inexact_notes(own.journals):
                logger().warning("%s", note)
                if error is not None:
                    error.add_note(note)
            for fork, base in reversed(own.merged):
                fork._base = base
            own.line.snapshots = own.base.snapshots
            own.conclusion = None
            if own.line.seq > own.base.seq:
                self._apply(own.line, RolledBack(own.base.seq, None, own.base.state, failed=True), None)
                self._join_failed(own, error)
            # What an outer rollback restored needs no repair any more.
            left = {name: step for name, step in self._repairs.items() if name not in undone}
            self._repairs = {**left, **repairs}
            own.settled = True
        if repairs:
            raise RollbackIncomplete(states) from error

    def _join_failed(self, own: Transaction, error: BaseException | None) -> None:
        """Add the records of a transaction that was rolled back.

        On an event loop, do not wait until they are stored. The session stays as it is if they cannot be stored.
        """
        queue = self._queue
        if queue is not None and self._outside(own) is None:
            is_failure = isinstance(error, Exception) and not isinstance(error, (StorageError, SessionConflict))
            # If the commit was cancelled or could not be stored, its records cannot be stored either.
            if is_failure or not own.is_ending:
                queue.keep(Transaction(self, None, own.line, own.base, None, (0, None), {}))
            return
        if self._log is None:
            self._join_at_once(own)
            return
        try:
            self._perform(self._log, self._join(own, {}))
        except (StorageError, SessionError) as failure:
            # The state is what it was before; only the records of the failed transaction are lost.
            logger().warning("the records of a failed transaction could not be stored: %s", failure)

    def _outside(self, own: Transaction) -> Transaction | None:
        """Return the next enclosing transaction that is still open."""
        outer = own.outer
        while outer is not None and not outer.open:
            outer = outer.outer
        return outer

    def _line_outside(self, own: Transaction) -> Timeline:
        outer = self._outside(own)
        return self._trunk if outer is None else outer.line

    def _join(self, own: Transaction, journals: Mapping[str, Journal]) -> Steps[None]:
        """Merge a transaction into the enclosing timeline.

        `journals` are the undo journals of its work outside the session, which takes effect with it or not at all.
        """
        failed = yield from self._join_all((own,), journals)
        if failed:
            raise failed[own]

    def _join_at_once(self, own: Transaction) -> bool:
        """Merge a transaction into the enclosing timeline. Return false, with nothing changed, if that takes steps.

        It takes steps if its commit is more than a frame of plain records, which is rare.
        """
        log, line = self._log, self._line_outside(own)
        is_stored = log is not None and line is self._trunk
        if log is not None and (log.is_awaited or (is_stored and (own.journals or log.plain_rules is not self._rules))):
            return False
        after, shift = self._joined(own, line)
        if log is not None and is_stored and not log.commit_plain(self, line, after):
            return False
        self._replace_line(line, after, ((own, shift),))
        return True

    def _commit_group(self, group: Sequence[Transaction]) -> Steps[dict[Transaction, Exception]]:
        """Commit several transactions, or a single one that has work outside the session.

        Return the errors of those that cannot be merged.
        """
        if not group[0].journals:
            return (yield from self._join_all(group, {}))
        yield from self._committed(group[0])
        return {}

    def _join_all(
        self, group: Sequence[Transaction], journals: Mapping[str, Journal]
    ) -> Steps[dict[Transaction, Exception]]:
        """Merge transactions into the timeline that encloses all of them, one after another, in one commit.

        They are prepared on copies, then assigned in one step. Return the errors of those that cannot be merged.
        """
        log = self._log
        while True:
            line = last = self._line_outside(group[0])
            rules = self._rules
            joined: list[tuple[Transaction, Timeline, Shift]] = []
            failed: dict[Transaction, Exception] = {}
            for own in group:
                step = partial(self._joined, own, last)
                try:
                    last, shift = step() if log is None or not log.is_awaited else (yield from supplied(step))
                except Exception as error:
                    failed[own] = error
                else:
                    joined.append((own, last, shift))
            is_trunk = log is not None and line is self._trunk
            afters = [after for _, after, _ in joined]
            if not joined or not is_trunk or log is None or (yield from log.commit_all(self, afters, journals)):
                break
        if rules is not self._rules and is_trunk:
            # While the commit was awaited.
            last.rules_change(rules, self._rules)
        if joined:
            self._replace_line(line, last, [(own, shift) for own, _, shift in joined])
        return failed

    def _replace_line(self, line: Timeline, after: Timeline, joined: Iterable[tuple[Transaction, Shift]]) -> None:
        """Replace the timeline that encloses transactions with one into which they were merged."""
        outer = None
        for own, shift in joined:
            # For the forks that were made or merged inside.
            own.line.numbering.shift = shift
            own.joined = after
            outer = self._outside(own)
        if outer is None:
            self._trunk = after
            self._post_since(after, line.seq)
        else:
            outer.line = after

    def _joined(self, own: Transaction, line: Timeline) -> tuple[Timeline, Shift]:
        """Return a copy of a timeline with a transaction merged into it, and how its records were renumbered."""
        base, branch = own.base, own.line
        joined = line.copy()
        # Nothing is renumbered if either the transaction or everybody else made no records.
        shift = Shift(base.seq + 1, 0, line.numbering)
        renumbering: Renumbering | None = None
        if branch.rows is not base.rows:
            if line.rows is base.rows:
                joined.adopt(branch)
            else:
                # Imported only when others changed something: usually a new process works alone.
                from weakfs.session.merging.merge import absorb

                at, cause = self.now(), branch.cause
                with self._while_running(MERGING):
                    _, _, renumbering = absorb(
                        self._rules, joined, base, branch, fork=self.session_id, at=at, cause=cause
                    )
                shift = renumbering.shifts[-1]
        if branch.touches_snapshots_since(base):
            if renumbering is None:
                renumbering = Renumbering(base.numbering, Log((shift,)), line.numbering)
            from weakfs.session.merging.merge import drop_snapshots, merge_snapshots

            merge_snapshots(
                self._rules, base, joined, branch, renumbering=renumbering, number=lambda entry: entry.number
            )
            drop_snapshots(base, joined, branch)
        if own.conclusion is not None:
            for event, cause in own.conclusion(joined):
                self._apply(joined, event, cause)
        return joined, shift
