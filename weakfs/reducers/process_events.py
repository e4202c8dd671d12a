"""The events of background processes: which were started and how they ended.

Both are also the values of their slices. Rolling back past the start of a process removes it from the slices, but the
records still show that it ran.
"""

from __future__ import annotations

from weakfs.class_decorators import frozen
from weakfs.session import event
from weakfs.session.slices.slice import Declaration, append_all, merge_appended, stay


@event("fs/process_started")
@frozen
class ProcessStarted:
    """A process began to work in the files of an external filesystem. `at` is in integer nanoseconds."""

    process_id: str
    command: str
    workdir: str
    at: int
    filesystem: str


@event("fs/process_ended")
@frozen
class ProcessEnded:
    """The end of a process was noticed. `reason` is why it ended, unless it ended by itself.

    `exit_code` is 128 + n if signal n killed it, and `None` if it is unknown.
    """

    process_id: str
    exit_code: int | None
    reason: str | None
    at: int
    filesystem: str


PROCESS_EVENTS = (ProcessStarted, ProcessEnded)

# A process has run even if its changes are undone.

PROCESS_SLICES = tuple(
    Declaration(kind, merge=merge_appended, reducers={kind: append_all}, go_back=stay) for kind in PROCESS_EVENTS
)
