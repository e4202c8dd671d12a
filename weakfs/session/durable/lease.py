"""The lease of a stream while a session holds it."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from attrs import field

from weakfs.class_decorators import define
from weakfs.session.durable.commits.operations import TakeLease
from weakfs.session.transactions.steps import Steps
from weakfs.storage.event_store import EventStore, Lease


@define(eq=False)
class HeldLease:
    """A lease that is renewed when it is used in its second half."""

    store: EventStore
    lease: Lease
    clock: Callable[[], float] = monotonic
    _renewed: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._renewed = self.clock()

    def fencing(self) -> Steps[int]:
        """Return the number that appends carry. Raise `LeaseLost` if the lease expired and somebody else took it."""
        now = self.clock()
        if now - self._renewed > self.lease.seconds / 2:
            self.lease = yield TakeLease(self.lease.stream, self.lease.owner, self.lease.seconds)
            self._renewed = now
        return self.lease.fencing

    def release(self) -> None:
        """Release the lease."""
        self.store.release(self.lease)
