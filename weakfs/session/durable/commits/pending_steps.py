"""Steps in progress: a commit of which an event loop awaits one operation.

The session is unlocked in the meantime, but its trunk does not change: any other change to it completes the steps
first, with the synchronous store. That is possible at any point, since every operation can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from weakfs.class_decorators import define
from weakfs.storage.event_store import EventStore
from weakfs.storage.event_store_operations import Operation
from weakfs.storage.steps import Steps

T = TypeVar("T")


@define(eq=False)
class PendingSteps(Generic[T]):
    """Steps that were begun. Its methods are called under the session's lock."""

    _steps: Steps[T]
    # Called when somebody else has completed the steps.
    on_completed: Callable[[], object] = lambda: None
    # What the steps wait for, `None` once they have ended.
    operation: Operation | None = None
    # What the steps returned or raised.
    result: T | None = None
    error: BaseException | None = None

    def start(self) -> None:
        """Perform the steps up to the first operation."""
        self._go(lambda: next(self._steps))

    def advance(self, reply: object, error: BaseException | None) -> None:
        """Continue with what the operation returned or raised."""
        if error is None:
            self._go(lambda: self._steps.send(reply))
        else:
            self._go(lambda: self._steps.throw(error))

    def _go(self, step: Callable[[], Operation]) -> None:
        try:
            self.operation = step()
        except StopIteration as end:
            self.operation, self.result = None, end.value
        except BaseException as error:
            self.operation, self.error = None, error

    def complete(self, store: EventStore) -> None:
        """Complete the steps with a synchronous store."""
        while self.operation is not None:
            try:
                reply, error = self.operation.run(store), None
            except BaseException as failure:
                reply, error = None, failure
            self.advance(reply, error)
        self.on_completed()
