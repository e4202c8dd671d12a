"""The trunk of a session: the part of its state that a commit log stores, and that storage may bring up to date."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from threading import RLock
from typing import Any

from weakfs.session.history.timeline import Timeline
from weakfs.session.history.views import Records
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.subscriptions import Delivery


class SessionTrunk:
    """The committed timeline of a session, and what its records need: rules, clock, id counter, and delivery."""

    __slots__ = (
        "__weakref__",
        "_call_number",
        "_clock",
        "_delivery",
        "_id_suffix",
        "_number",
        "_rules",
        "_trunk",
        "lock",
        "origin_id",
        "session_id",
    )

    session_id: str
    # The session from which this one was forked, through any number of forks.
    origin_id: str
    # Held while reading, deciding and dispatching as one step; reentrant.
    lock: RLock
    _clock: Callable[[], int]
    _rules: Rules
    # `None` in a fork until its first subscriber: most forks are merged and discarded without one.
    _delivery: Delivery | None
    _trunk: Timeline
    # The last number in the id of a call, and that in any other id: counted apart, so that the numbers of calls have no
    # gaps.
    _call_number: int
    _number: int
    # Distinguishes the ids made by this process from those of other processes that work on the same session.
    _id_suffix: str

    def now(self) -> int:
        """Return the session clock's time in integer nanoseconds. Raises `TypeError` if it returns anything else."""
        at = self._clock()
        if type(at) is not int:
            raise TypeError(f"the clock returned {at!r}; pass a clock of integer nanoseconds, such as time.time_ns")
        return at

    def next_id(self, name: str) -> str:
        """Return a new id under the session's own, unique within the session: `next_id("call")` is `SESSION/call7`.

        Each "/" in the name becomes "-", because an id with another slash could be one that a fork of this session
        makes.
        """
        with self.lock:
            return self._next_id(name)

    def _next_id(self, name: str) -> str:
        # "x1" and 2 would otherwise be the same id as "x" and 12.
        separator = "-" if name[-1:].isdigit() else ""
        if name == "call":
            self._call_number = number = self._call_number + 1
        else:
            number = self._next_number()
        return f"{self.session_id}/{name.replace('/', '-')}{separator}{number}{self._id_suffix}"

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    @property
    def _counter(self) -> int:
        """The highest number in an id so far. Files of the session hold only this number."""
        return max(self._number, self._call_number)

    def _count_from(self, counter: int) -> None:
        """Number new ids above `counter`, the highest number that was stored, of whatever kind of id."""
        self._number, self._call_number = max(self._number, counter), max(self._call_number, counter)

    def _count_like(self, other: SessionTrunk) -> None:
        """Number new ids as another session with the same id would."""
        self._number, self._call_number = other._number, other._call_number

    def _post_since(self, line: Timeline, seq: int, last: int | None = None) -> None:
        if self._delivery is not None and self._delivery.wanted and line is self._trunk:
            records = Records(self._rules, line.rows, line.dropped).since(seq)
            self._delivery.post(records if last is None else islice(records, last - seq))

    def _notify(self) -> None:
        """Deliver undelivered records to subscribers, once no caller in this thread holds the session's lock.

        Every method that changes the session calls this at its end. Code that holds the lock around several of them
        calls it afterwards: a handler that waits for another thread must not lock that thread out of the session.
        """
        delivery = self._delivery
        if delivery is not None and delivery.waiting and not _is_held(self.lock):
            delivery.pending()


def _is_held(lock: Any) -> bool:
    # What `threading.Condition` checks on a lock; there is no public way.
    return bool(lock._is_owned())
