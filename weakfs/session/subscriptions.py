"""Subscriptions: delivery of every record once, in order, after it was applied, outside the session's lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Protocol

from weakfs.session.current_timeline import ACTIVE
from weakfs.session.logger import logger
from weakfs.session.slices.events import Record

Handler = Callable[[Record], object]


class Bus(Protocol):
    """A place where a session publishes its records in addition to its own subscribers."""

    def publish(self, record: Record) -> object: ...


class Delivery:
    """The subscribers of one session, and the records still to be delivered.

    A handler that raises never breaks a dispatch: the error is logged under `weakfs.session` with its
    traceback, and the other handlers still run. A handler may dispatch; the new records are delivered after the one
    being delivered.
    """

    def __init__(self, bus: Bus | None) -> None:
        self._bus = bus
        self._handlers: tuple[tuple[type, Handler], ...] = ()
        self._changing = Lock()
        self._outbox: deque[Record] = deque()
        self._telling = False
        self.wanted = bus is not None

    def subscribe(self, event: type, handler: Handler) -> Callable[[], None]:
        """Call `handler` with each record of `event` (of every type for `object`) from now on."""
        subscription = (event, handler)
        with self._changing:
            self._handlers = (*self._handlers, subscription)
            self.wanted = True

        def unsubscribe() -> None:
            with self._changing:
                self._handlers = tuple(other for other in self._handlers if other is not subscription)

        return unsubscribe

    def post(self, records: Iterable[Record]) -> None:
        """Queue records for delivery; called under the session's lock, so that they are queued in order."""
        self._outbox.extend(records)

    @property
    def waiting(self) -> bool:
        """Whether records are queued."""
        return bool(self._outbox)

    def pending(self) -> None:
        """Deliver queued records, once no caller in this thread holds the session's lock.

        Do nothing inside a transaction of the session: what a handler did would join it, and be rolled back with it.
        """
        if self._outbox and not any(transaction.open and transaction.delivery is self for transaction in ACTIVE.get()):
            self.deliver()

    def deliver(self) -> None:
        """Deliver queued records, unless another call is already delivering them."""
        mine = False
        try:
            while self._outbox:
                # A lock written in C and two plain assignments: at an interrupt, the lock is either held by us or not
                # held.
                with self._changing:
                    if self._telling:
                        return
                    self._telling = mine = True
                while self._outbox:
                    self._deliver_one(self._outbox.popleft())
                self._telling = mine = False
        finally:
            if mine:
                self._telling = False

    def _deliver_one(self, record: Record) -> None:
        kinds = (type(record.event), object)
        handlers = [handler for event, handler in self._handlers if event in kinds]
        if self._bus is not None:
            handlers.append(self._bus.publish)
        for handler in handlers:
            try:
                handler(record)
            except Exception:
                logger().exception("a handler of record %d (%s) failed", record.seq, _name(record.event))


def _name(event: Any) -> str:
    return type(event).__name__
