"""The state of a session before and after each of its records, read in one pass."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field, frozen

from weakfs.session import Merged, Record, Session, SessionError, SessionView
from weakfs.session.history.timeline import Row, changed, event_of
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.table import Table


@frozen
class Step:
    """One record with the slices before and after it; `None` if the state of its fork was compacted away.

    The record of a merged fork has the slices of that fork, without the changes of others.
    """

    record: Record
    before: SessionView | None
    after: SessionView | None


@define
class _Block:
    """The records of one merge. `fork` left after the record that it knows as `left_at`.

    `last` is the number of the last of them, `shift` what the merge added to the fork's own numbers, and `outside` the
    state after the merge. `is_fork` is false for a transaction that was merged with what others did meanwhile.
    """

    last: int
    shift: int
    left_at: int
    fork: str
    is_fork: bool
    outside: Table | None = None


@define
class _Blocks:
    """The blocks around the record that is being read, outermost first."""

    owner: str
    open: list[_Block] = field(factory=list[_Block])

    def enter(self, seq: int, event: Merged, outside: Table | None) -> None:
        inside = self.open[-1].fork if self.open else self.owner
        shift = seq - event.base
        self.open.append(_Block(seq + event.count, shift, event.base, event.fork, event.fork != inside, outside))

    def leave(self, seq: int) -> Iterator[_Block]:
        """Give the blocks that end with a record, innermost first."""
        while self.open and self.open[-1].last == seq:
            yield self.open.pop()

    def in_line(self, seq: int) -> int:
        """Give the number in the line of what those who made the current records call record `seq`."""
        for block in reversed(self.open):
            if seq > block.left_at:
                return seq + block.shift
        return seq


def steps_of(session: Session) -> Iterator[Step]:
    """Go through the records with the state on both sides of each. O(records), by running their reducers again."""
    rules, line, own = session.parts()
    wanted = set(_fork_points(session))
    state: Table | None = line.base.state
    logs = line.base.logs
    kept = {line.dropped: line.base.state}
    # Where forks stood when they were merged: they may be merged again, with what they did since.
    merged: dict[tuple[str, int], Table] = {}
    blocks = _Blocks(own["session_id"])
    for seq, row in enumerate(line.rows, line.dropped + 1):
        event = event_of(rules, row)
        before = None if state is None else SessionView(rules, seq - 1, state, logs)
        if state is not None:
            state, logs = _applied(rules, seq, row, state, logs)
        after = None if state is None else SessionView(rules, seq, state, logs)
        yield Step(Record(seq, row[0], event, row[1]), before, after)
        if isinstance(event, Merged):
            state = event.state
        if state is not None and seq in wanted:
            kept[seq] = state
        if isinstance(event, Merged) and event.count:
            point = kept.get(blocks.in_line(event.base))
            blocks.enter(seq, event, state)
            state = merged.get((event.fork, event.base), point) if blocks.open[-1].is_fork else point
        for block in blocks.leave(seq):
            if block.is_fork and state is not None:
                merged[block.fork, seq - block.shift] = state
            state = block.outside


def _applied(rules: Rules, seq: int, row: Row, state: Table, logs: Table) -> tuple[Table, Table]:
    try:
        return changed(rules, state, logs, event_of(rules, row))
    except SessionError:
        raise
    except Exception as error:
        # Reducers of a user's own may raise anything.
        raise SessionError(f"cannot read history: record {seq} ({row[2]}) cannot be applied: {error!r}") from error


def _fork_points(session: Session) -> Iterator[int]:
    """Give the number of each record after which a fork left that was merged later."""
    blocks = _Blocks(session.session_id)
    for record in session.records:
        if isinstance(record.event, Merged) and record.event.count:
            yield blocks.in_line(record.event.base)
            blocks.enter(record.seq, record.event, None)
        for _ in blocks.leave(record.seq):
            pass
