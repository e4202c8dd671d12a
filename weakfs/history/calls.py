"""The tool calls of a session, numbered in the order in which they ended, with the records that each made."""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.class_decorators import define, frozen
from weakfs.session import Merged, Record, Session, UnknownType
from weakfs.tools import ToolCall


@frozen
class NumberedCall:
    """One call of a session. Calls are numbered from 1, in the order in which they ended.

    `record` is the record of the call itself, `None` if it was compacted away. `first` and `last` are the numbers of
    the first and last record that the call made, including its merge; `None` if it made none or they were compacted
    away.
    """

    number: int
    call: ToolCall
    record: Record | None
    first: int | None = None
    last: int | None = None
    is_merged: bool = False

    @property
    def records(self) -> range:
        """The numbers of the records that the call made."""
        return range(0) if self.first is None or self.last is None else range(self.first, self.last + 1)

    @property
    def last_state(self) -> int | None:
        """The record after which the changes of the call are in effect: the merge, for records of a fork."""
        return self.first if self.is_merged else self.last


def calls_of(session: Session) -> list[NumberedCall]:
    """List the calls of a session. O(records)."""
    try:
        every = session[ToolCall].all()
    except UnknownType:
        # A custom registry may lack this type.
        return []
    recorded = [*_call_records(session)]
    # Calls whose records were compacted away come first; their changes are unknown.
    gone = max(len(every) - len(recorded), 0)
    found = [NumberedCall(number, call, None) for number, call in enumerate(every[:gone], 1)]
    dropped = session.seq - len(session.records)
    merges = {record.seq: record for record in session.records if isinstance(record.event, Merged)}
    for number, (record, call, shift) in enumerate(recorded, gone + 1):
        first, last = call.first_seq, call.last_seq
        if first is None or last is None or first + shift <= dropped:
            found.append(NumberedCall(number, call, record))
            continue
        first, last = first + shift, last + shift
        merge = merges.get(first - 1)
        is_merged = merge is not None and merge.cause == call.call_id and merge.event.count == last - first + 1
        found.append(NumberedCall(number, call, record, first - is_merged, last, is_merged))
    return found


def _call_records(session: Session) -> Iterator[tuple[Record, ToolCall, int]]:
    """Yield the record of each call, and the offset to add to the record numbers in it.

    A call made in a fork has the fork's numbers, shifted as its `Merged` record says.
    """
    blocks: list[tuple[int, int]] = []
    for record in session.records:
        while blocks and blocks[-1][0] < record.seq:
            blocks.pop()
        event = record.event
        if isinstance(event, Merged):
            blocks.append((record.seq + event.count, 0 if event.renumbered else record.seq - event.base))
        elif isinstance(event, ToolCall):
            yield record, event, blocks[-1][1] if blocks else 0


@define
class CallCounter:
    """A counter that numbers the calls of a session as they are made, exactly as `calls_of` does afterwards."""

    count: int = 0
    _last_count: int = 0

    @classmethod
    def of(cls, session: Session) -> CallCounter:
        """Start counting the calls of a session that has none yet."""
        counter = cls()
        session.subscribe(ToolCall, counter._on_call)
        return counter

    def _on_call(self, _: Record) -> None:
        self.count += 1

    def number(self) -> int | None:
        """Return the number of the call made since this was last called; `None` if there was none."""
        if self.count == self._last_count:
            return None
        self._last_count = self.count
        return self.count
