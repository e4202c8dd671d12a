"""The timeline that a piece of code works on: the session's own, or the branch of its transaction.

A transaction belongs to the context that opened it. `contextvars` copies a context into tasks and threads
that are started from it, so a transaction also remembers its thread and task: others see the session's timeline.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from threading import get_ident
from typing import Any
from weakref import ref

from attrs import field

from weakfs.class_decorators import define
from weakfs.session.errors import TransactionCancelled
from weakfs.session.external_filesystems import Journal
from weakfs.session.history.timeline import Point, Timeline

# Returns events and their causes, given the timeline to which they are added.
Conclusion = Callable[[Timeline], Iterable[tuple[object, str | None]]]


@define(eq=False)
class Transaction:
    """One open transaction: its branch, and the point where the branch left its timeline."""

    session: Any
    # The delivery to that session's subscribers, which is held back while this is open.
    delivery: object
    line: Timeline
    base: Point
    # The transaction that this one is nested in.
    outer: Transaction | None
    owner: tuple[int, object]
    journals: dict[str, Journal]
    # Returns the events and the causes of the last records, once everything else is merged.
    conclusion: Conclusion | None = None
    # Forks that were merged inside, with their earlier bases: a fork may be merged again after a rollback.
    merged: list[tuple[Any, Point | None]] = field(factory=list)
    open: bool = True
    # Whether everything that the end of the transaction requires is done, in the session and outside.
    settled: bool = False
    # Whether the transaction is in the session's storage, even if storing it raised an error.
    is_stored: bool = False
    # Whether the code of the transaction has ended, and an event loop awaits the commit.
    is_ending: bool = False
    # The timeline that it was merged into, once it was.
    joined: Timeline | None = None
    # Whether tasks and threads that run in a copy of the opening context share it.
    shared: bool = False
    # The transaction nested inside this one.
    inner: Transaction | None = None
    # Why the transaction was ended while its code, or other code that it started, was still running.
    cancelled: str | None = None
    _refused: ref[Any] | None = None

    def __attrs_post_init__(self) -> None:
        self.session._began(self)

    def leave(self) -> None:
        """Leave the transaction in the running context.

        A token of the context variable would not work: generators may leave in any order, or in a context other than
        the one that they entered in.
        """
        self.open = False
        stack = ACTIVE.get()
        if stack:
            ACTIVE.set(stack[:-1] if stack[-1] is self else tuple(other for other in stack if other is not self))

    def is_own(self) -> bool:
        """Return whether the running thread and task opened it."""
        thread, task = current_owner()
        return self.owner[0] == thread and self.owner[1] is task

    def refuses(self, session: object) -> bool:
        """Return whether code that is still running inside must no longer use a session."""
        if self.cancelled is None:
            return False
        return self.session is session or (self._refused is not None and self._refused() is session)

    def cancel(self, reason: str) -> None:
        """Make every further use of the session by the code inside raise."""
        running: Transaction | None = self
        while running is not None:
            running.open, running.cancelled = False, reason
            running = running.inner

    def forget(self) -> None:
        """Drop the reference to the session: contexts that were copied inside may live much longer."""
        if self.outer is not None and self.outer.inner is self:
            self.outer.inner = None
        if self.shared and self.cancelled is not None:
            # Code that is still running in one of them has to be refused as long as it runs.
            self._refused = ref(self.session)
        self.session = self.outer = self.inner = self.conclusion = None
        self.line, self.base = NOWHERE, NO_POINT
        self.journals, self.merged = {}, []


# Replaces the timeline of a transaction that has ended.
NOWHERE = Timeline()
NO_POINT = NOWHERE.point()


# Innermost last. A tuple, so that a copied context never sees transactions that are opened elsewhere later.
ACTIVE: ContextVar[tuple[Transaction, ...]] = ContextVar("weakfs_transactions", default=())


def current_owner() -> tuple[int, object]:
    """Return the ids of the running thread and asyncio task, without importing asyncio for it."""
    asyncio = sys.modules.get("asyncio")
    # Not `current_task` alone: outside a loop it raises, which takes 1.2 µs.
    running = asyncio is not None and asyncio._get_running_loop() is not None
    return get_ident(), asyncio.current_task() if asyncio is not None and running else None


def innermost(session: object, stack: tuple[Transaction, ...]) -> Transaction | None:
    """Return the transaction of `session` that the running code is in, if any.

    Raises `TransactionCancelled` if it was cancelled.
    """
    for transaction in reversed(stack):
        concerns = (transaction.session is session and transaction.open) or transaction.refuses(session)
        if concerns and (transaction.shared or transaction.is_own()):
            if transaction.cancelled is not None:
                raise TransactionCancelled(f"cannot continue in a transaction of the session: {transaction.cancelled}")
            return transaction
    return None
