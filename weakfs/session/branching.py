"""Working on a branch: transactions, which end in the line that they left, and forks, which are sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import Token
from typing import Self

from weakfs.session.delivery import Delivery
from weakfs.session.errors import RollbackIncomplete
from weakfs.session.events import Record, RolledBack
from weakfs.session.externals import undo_all
from weakfs.session.history import History
from weakfs.session.merging import absorb
from weakfs.session.transaction import ACTIVE, Transaction, current_owner
from weakfs.session.views import Records


class Branching(History):
    """The part of a session that works side by side with itself."""

    __slots__ = ()

    @contextmanager
    def transaction(self, *, cause: str | None = None) -> Iterator[Self]:
        """Do everything inside or nothing: an exception rolls back what was done, here and in attached filesystems.

        Others neither see what is done inside before it ends nor are undone by it; if they changed the
        same things meanwhile, the end raises `MergeConflict` and all of it is rolled back. May be nested.
        """
        with self.lock:
            parent = self._writable()
            line = parent.branch()
            line.cause = parent.cause if cause is None else cause
            own = Transaction(self, line, parent.branch(), parent, current_owner())
            for external in self._attached:
                own.journals[external.filesystem_id] = external.begin()
        token = ACTIVE.set((*ACTIVE.get(), own))
        try:
            try:
                yield self
            finally:
                own.open = False
                _leave(token)
        except BaseException:
            self._abandon(own)
            raise
        try:
            self._commit(own)
        except BaseException:
            self._abandon(own)
            raise
        self._delivery.deliver()

    def _commit(self, own: Transaction) -> None:
        with self.lock:
            self._join(own)
            for journal in own.journals.values():
                journal.close()

    def _abandon(self, own: Transaction) -> None:
        """Undo a transaction: the records that it made stay, followed by the rollback that undoes them."""
        with self.lock:
            repairs, states = undo_all(own.journals)
            if own.line.seq > own.base.seq:
                event = RolledBack(own.base.seq, None, own.base.state)
                self._apply(own.line, event, None, mark=True)
                self._join(own)
            if repairs:
                self._repairs = {**self._repairs, **repairs}
        self._delivery.deliver()
        if repairs:
            raise RollbackIncomplete(states)

    def _join(self, own: Transaction) -> None:
        parent = own.parent
        if parent.rows is own.base.rows:
            self._adopt(parent, own.line)
        else:
            before = parent.seq
            name = self.session_id
            absorb(self._rules, parent, own.base, own.line, fork=name, at=self._clock(), cause=own.line.cause)
            self._post_since(parent, before)

    def fork(self, name: str | None = None) -> Self:
        """Give an independent session that starts where this one stands. O(1)."""
        with self.lock:
            if self._closed is not None:
                self._refuse()
            line = self._line()
            fork = type(self).__new__(type(self))
            name = self._next_id(name or "f")
            fork._start(name, self.origin_id, self._clock, self._rules, line.branch(), Delivery(None))
            fork._base = line.branch()
            fork._parent_id = self.session_id
            return fork

    def merge(self, fork: Branching, *, cause: str | None = None) -> Record:
        """Take over what a fork of this session did since it was forked or last merged.

        STATE slices merge three-way with the merge function of their type, LOG slices concatenate, and
        the fork's records follow the record that this returns. Raises `MergeConflict`, which lists what both
        sides changed differently, with nothing changed; `ValueError` if `fork` was not forked from here.
        """
        with self.lock, fork.lock:
            line = self._writable()
            if fork._base is None or fork._parent_id != self.session_id:
                raise ValueError(
                    f"cannot merge {fork.session_id!r} into {self.session_id!r}: it was not forked from it; "
                    f"merge it into {fork._parent_id!r}"
                )
            self._rules = self._rules.joined(fork._rules)
            before = line.seq
            at = self._clock()
            seq = absorb(self._rules, line, fork._base, fork._trunk, fork=fork.session_id, at=at, cause=cause)
            fork._base = fork._trunk.branch()
            record = Records(self._rules, line.rows, line.dropped)[seq - line.dropped - 1]
            self._post_since(line, before)
        self._delivery.deliver()
        return record


def _leave(token: Token[tuple[Transaction, ...]]) -> None:
    # A generator may be closed in another context than it was started in; there is nothing to reset then.
    with suppress(ValueError):
        ACTIVE.reset(token)
