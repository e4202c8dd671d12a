"""Telling subscribers: every record once, in order, after it was applied, outside the session's lock."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Protocol

from weakfs.session.events import Record
from weakfs.session.transaction import ACTIVE

logger = logging.getLogger("weakfs.session")

Handler = Callable[[Record], object]


class Bus(Protocol):
    """Where a session publishes its records besides its own subscribers."""

    def publish(self, record: Record) -> object: ...


class Delivery:
    """Subscribers of one session and the records that they are still to see.

    A handler that raises never breaks a dispatch: the error is logged under `weakfs.session` with its
    traceback, and the others are told all the same. A handler may dispatch; what it dispatches is told
    after what it is being told.
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
        own = (event, handler)
        with self._changing:
            self._handlers = (*self._handlers, own)
            self.wanted = True

        def unsubscribe() -> None:
            with self._changing:
                self._handlers = tuple(known for known in self._handlers if known is not own)

        return unsubscribe

    def post(self, records: Iterable[Record]) -> None:
        """Put records in line; called under the session's lock, so that the line is in their order."""
        self._outbox.extend(records)

    @property
    def waiting(self) -> bool:
        """Whether records are in line."""
        return bool(self._outbox)

    def pending(self) -> None:
        """Tell what is in line, now that nobody here holds the session's lock.

        Not from inside a transaction of the session: what a handler did would join it, and be rolled back with it.
        """
        if self._outbox and not any(own.open and own.delivery is self for own in ACTIVE.get()):
            self.deliver()

    def deliver(self) -> None:
        """Tell what is in line, unless somebody is telling it already."""
        mine = False
        try:
            while self._outbox:
                # A lock of C in a `with`, and two plain stores: an interrupt finds it taken by us, or not at all.
                with self._changing:
                    if self._telling:
                        return
                    self._telling = mine = True
                while self._outbox:
                    self._tell(self._outbox.popleft())
                self._telling = mine = False
        finally:
            if mine:
                self._telling = False

    def _tell(self, record: Record) -> None:
        kinds = (type(record.event), object)
        handlers = [handler for event, handler in self._handlers if event in kinds]
        if self._bus is not None:
            handlers.append(self._bus.publish)
        for handler in handlers:
            try:
                handler(record)
            except Exception:
                logger.exception("a handler of record %d (%s) failed", record.seq, _name(record.event))


def _name(event: Any) -> str:
    return type(event).__name__
