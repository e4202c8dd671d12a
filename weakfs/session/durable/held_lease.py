"""The lease of a stream while a session holds it: for as long as the session is open, or for one compaction."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from attrs import field

from weakfs.class_decorators import define
from weakfs.storage.errors import LeaseLost, OutcomeUnknown, StorageError
from weakfs.storage.event_store import EventStore, Lease
from weakfs.storage.event_store_operations import Append, Head, ReleaseLease, TakeLease, Wait
from weakfs.storage.steps import Steps

# The prefix of the owners of leases that are held for one compaction. Other writers wait for these leases.
COMPACTION = "compaction-"
# How long such a lease lasts: this many times as long as an attempt takes, within these limits in seconds. If the
# process is killed, others have to wait until then.
FACTOR, LEAST, MOST = 4, 2.0, 30.0
# How long others wait for it, and the interval at which they check whether it was released, in seconds.
PATIENCE, PAUSE = 60.0, 0.05
# How many times to take or renew a lease if the outcome is unknown each time.
ATTEMPTS = 3


@define(eq=False)
class HeldLease:
    """A lease that is renewed when it is used in its second half.

    The lease of a session is also renewed while the session is not used, until `stop_renewal` is called.
    """

    store: EventStore
    lease: Lease
    clock: Callable[[], float] = monotonic
    stop_renewal: Callable[[], None] = lambda: None
    _renewed: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._renewed = self.clock()

    @property
    def is_of_compaction(self) -> bool:
        """Whether the lease is released after one compaction."""
        return self.lease.owner.startswith(COMPACTION)

    @property
    def is_due(self) -> bool:
        """Whether `fencing` is going to renew the lease."""
        return self.clock() - self._renewed > self.lease.seconds / 2

    def fencing(self) -> Steps[int]:
        """Return the number that appends carry. Raises `LeaseLost` if the lease expired and somebody else took it."""
        now = self.clock()
        if self.is_due:
            self.renew((yield from taken(TakeLease(self.lease.stream, self.lease.owner, self.lease.seconds))), now)
        return self.lease.fencing

    def renew(self, lease: Lease, now: float) -> None:
        """Use a lease that was granted to a request at the time `now`."""
        # Two renewals at once may end in any order.
        if lease.fencing >= self.lease.fencing:
            self.lease, self._renewed = lease, now

    def release(self) -> None:
        """Release the lease."""
        self.stop_renewal()
        self.store.release(self.lease)


def taken(take: TakeLease) -> Steps[Lease]:
    """Take or renew a lease once no compaction holds it. Raises `LeaseLost` if others hold it."""
    attempt = 1
    while True:
        try:
            lease: Lease = yield from patiently(take)
            return lease
        except OutcomeUnknown:
            # The same owner gets the same lease again.
            if attempt == ATTEMPTS:
                raise
            attempt += 1


def given_up(take: TakeLease) -> Steps[None]:
    """Release a lease that was taken for something that has failed, or that may have been taken by a failed request."""
    # A lease that cannot be released expires.
    with suppress(StorageError):
        # Taken once more, since the answer to the first request may have been lost.
        yield ReleaseLease((yield take))


def patiently(operation: Append | TakeLease) -> Steps[Any]:
    """Perform an operation once no compaction holds the lease of the stream. Raises `LeaseLost` if others hold it."""
    end = monotonic() + PATIENCE
    while True:
        try:
            return (yield operation)
        except LeaseLost as lost:
            if not lost.owner.startswith(COMPACTION) or monotonic() > end:
                raise
        # Nearly always, the wait ends when the compaction appends its frame.
        yield Wait(operation.stream, (yield Head(operation.stream)), PAUSE)


def compaction_seconds(spent: float, most: float = MOST) -> float:
    """Return how long to lease a stream for a compaction, in seconds, if an attempt took `spent` seconds."""
    return min(max(LEAST, FACTOR * spent), most)
