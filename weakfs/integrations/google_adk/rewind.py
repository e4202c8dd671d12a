"""Rewinds of Google's ADK that also restore the files of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from google.adk.agents.invocation_context import new_invocation_context_id
from google.adk.events import Event
from google.adk.plugins.base_plugin import BasePlugin

from weakfs.session import Session
from weakfs.shield import run_in_thread, shielded

if TYPE_CHECKING:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.runners import Runner

# The key in an event's `custom_metadata` for the number of the session's last record before the invocation.
RECORD = "weakfs_record"
# The key in the `custom_metadata` of the event that follows a rewind whose files were restored immediately.
RESTORED = "weakfs_restored"


class RewindPlugin(BasePlugin):
    """Restore the files of `session` when a conversation of the ADK is rewound.

    The first event of each invocation has the number of the session's last record in its `custom_metadata`. After
    `Runner.rewind_async`, the files are restored when the next run begins; `rewind` does both at once. The restore is
    recorded, so that `session.undo()` reverses it. Changes made by other programs in a host directory are kept.

    Use a separate weakfs session for each ADK session: a rewind undoes everything that happened in it since.
    """

    def __init__(self, session: Session, *, name: str = "weakfs_rewind") -> None:
        super().__init__(name)
        self._session = session
        # The number of the last record before each invocation that has no event yet.
        self._began: dict[str, int] = {}

    async def rewind(self, runner: Runner, *, user_id: str, session_id: str, rewind_before_invocation_id: str) -> None:
        """Rewind a conversation as `Runner.rewind_async` does, and restore the files immediately."""
        await runner.rewind_async(
            user_id=user_id, session_id=session_id, rewind_before_invocation_id=rewind_before_invocation_id
        )
        conversation = await runner.session_service.get_session(
            app_name=runner.app_name, user_id=user_id, session_id=session_id
        )
        if conversation is not None:
            await self._restore(conversation.events)
            # The next run, perhaps of another process, must not undo what is changed until then.
            restored = Event(
                author="user", invocation_id=new_invocation_context_id(), custom_metadata={RESTORED: self._session.seq}
            )
            await runner.session_service.append_event(conversation, restored)

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Restore the files if the conversation was rewound since the last run."""
        await self._restore(invocation_context.session.events)
        self._began[invocation_context.invocation_id] = self._session.seq

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        """Add the number of the last record before the invocation to its first event."""
        record = None if event.partial else self._began.pop(invocation_context.invocation_id, None)
        if record is not None:
            event.custom_metadata = {**(event.custom_metadata or {}), RECORD: record}

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Forget an invocation that had no event."""
        self._began.pop(invocation_context.invocation_id, None)

    async def _restore(self, events: Sequence[Event]) -> None:
        record = _pending_record(events)
        if record is not None and record < self._session.seq:
            # Restoring files on the host takes a while.
            await shielded(run_in_thread(partial(self._session.restore, record, foreign="keep")))


def _pending_record(events: Sequence[Event]) -> int | None:
    """Return the number of the record to restore after the rewinds since the last run or restore, if any."""
    last = max((number for number, event in enumerate(events) if _follows_restore(event)), default=-1)
    rewound = [event.actions.rewind_before_invocation_id for event in events[last + 1 :]]
    found = [_record_before(events[: last + 1], invocation) for invocation in rewound if invocation is not None]
    return min((record for record in found if record is not None), default=None)


def _record_before(events: Sequence[Event], invocation_id: str) -> int | None:
    """Return the number of the last record before an invocation, as noted for it or for the next one that has it."""
    start = next((number for number, event in enumerate(events) if event.invocation_id == invocation_id), len(events))
    return next((record for event in events[start:] if (record := _record_of(event)) is not None), None)


def _record_of(event: Event) -> int | None:
    record = (event.custom_metadata or {}).get(RECORD)
    return record if isinstance(record, int) else None


def _follows_restore(event: Event) -> bool:
    """Return whether the files belong to the conversation before an event: a run begins, or they were restored."""
    return _record_of(event) is not None or RESTORED in (event.custom_metadata or {})
