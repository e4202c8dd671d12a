"""The state of a session before and after each of its records, read in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.session import Merged, Record, Session, SessionError, SessionView
from weakfs.session.history.reduction import Row, changed, event_of
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.table import EMPTY_TABLE, Table


@frozen
class Step:
    """One record with the slices before and after it, which are `None` if its fork's state was compacted away.

    A record of a merged fork has the slices of that fork, without the changes of others. `fork` is the name of the
    fork, or of the session for its own records. For a merge followed by the fork's records, `base` is the number, in
    this session, of the record after which the fork branched off.
    """

    record: Record
    before: SessionView | None
    after: SessionView | None
    fork: str
    base: int | None = None


@define
class _Block:
    """The records of one merge. `fork` branched off after the record with the number `left_at` in the fork.

    `last` is the number of the last record, `shift` what the merge added to the fork's own numbers, and `outside` the
    state after the merge. `is_fork` is false for a transaction that was merged with concurrent changes.
    """

    last: int
    shift: int
    left_at: int
    fork: str
    is_fork: bool
    outside: Table | None = None


@define
class Blocks:
    """The merges to which the current record belongs, outermost first."""

    owner: str
    open: list[_Block] = field(factory=list[_Block])
    # The ends of forks that keep their own numbers, by the number of their last record: see `Merged`.
    _ended: dict[tuple[str, int], int] = field(factory=dict[tuple[str, int], int])

    @property
    def inside(self) -> str:
        """The session or fork whose records are being read."""
        return self.open[-1].fork if self.open else self.owner

    def enter(self, seq: int, event: Merged, outside: Table | None) -> None:
        shift = 0 if event.renumbered else seq - event.base
        is_fork = event.fork != self.inside
        self.open.append(_Block(seq + event.count, shift, event.base, event.fork, is_fork, outside))

    def begin_inside(self, last: int, outside: Table | None) -> None:
        """Begin inside a merge that was compacted away, whose records end with `last`."""
        self.open.append(_Block(last, 0, last, "", False, outside))

    def leave(self, seq: int) -> Iterator[_Block]:
        """Yield the blocks that end with a record, innermost first."""
        while self.open and self.open[-1].last == seq:
            block = self.open.pop()
            if block.is_fork and block.shift:
                self._ended[block.fork, seq - block.shift] = seq
            yield block

    def base_of(self, event: Merged) -> int:
        """Return the number, in this session, of the record from which a fork started."""
        if event.renumbered:
            return event.base
        ended = self._ended.get((event.fork, event.base)) if event.fork != self.inside else None
        return self._in_session(event.base) if ended is None else ended

    def _in_session(self, seq: int) -> int:
        """Return the number, in this session, of record `seq` of the fork whose records are being read."""
        for block in reversed(self.open):
            if block.shift and seq > block.left_at:
                return seq + block.shift
        return seq


@define
class _Kept:
    """The states after the records where forks started, as seen by the session or fork that made the record."""

    wanted: set[int]
    states: dict[tuple[str, int], Table] = field(factory=dict[tuple[str, int], Table])

    def keep(self, name: str, seq: int, state: Table | None) -> None:
        if seq in self.wanted and state is not None:
            self.states[name, seq] = state

    def find(self, names: Iterable[str], seq: int) -> Table | None:
        """Return the state after a record, as seen by the first of these names that has it."""
        return next((self.states[name, seq] for name in names if (name, seq) in self.states), None)


def steps_of(session: Session) -> Iterator[Step]:
    """Yield each record with the state before and after it, by running their reducers again. O(records)."""
    rules, line, own = session._parts()
    state: Table | None = line.base.state
    logs = line.base.logs
    kept = _Kept(set(fork_points(session)))
    blocks = Blocks(own["session_id"])
    kept.keep(blocks.owner, line.dropped, state)
    if line.base.block_end > line.dropped:
        # The first records belong to a merge that was compacted away.
        blocks.begin_inside(line.base.block_end, state)
        state = None
    for seq, row in enumerate(line.rows, line.dropped + 1):
        event = event_of(rules, row)
        before = None if state is None else SessionView(rules, seq - 1, state, logs)
        if state is None:
            _, logs = _applied(rules, seq, row, EMPTY_TABLE, logs, logs_only=True)
        else:
            state, logs = _applied(rules, seq, row, state, logs)
        after = None if state is None else SessionView(rules, seq, state, logs)
        base = blocks.base_of(event) if isinstance(event, Merged) and event.count else None
        yield Step(Record(seq, row[0], event, row[1]), before, after, blocks.inside, base)
        if isinstance(event, Merged):
            state = event.state
        kept.keep(blocks.inside, seq, state)
        if isinstance(event, Merged) and base is not None:
            around = [blocks.owner, *(block.fork for block in blocks.open), event.fork]
            state, outside = kept.find(reversed(around), base), state
            blocks.enter(seq, event, outside)
        for block in blocks.leave(seq):
            state = block.outside
            kept.keep(blocks.inside, seq, state)


def _applied(
    rules: Rules, seq: int, row: Row, state: Table, logs: Table, *, logs_only: bool = False
) -> tuple[Table, Table]:
    try:
        return changed(rules, state, logs, event_of(rules, row), logs_only=logs_only)
    except SessionError:
        raise
    except Exception as error:
        # Custom reducers may raise any exception.
        raise SessionError(f"cannot read history: record {seq} ({row[2]}) cannot be applied: {error!r}") from error


def fork_points(session: Session) -> Iterator[int]:
    """Yield the number of each record from which a later merged fork started."""
    blocks = Blocks(session.session_id)
    line = session._parts()[1]
    if line.base.block_end > line.dropped:
        blocks.begin_inside(line.base.block_end, None)
    for record in session.records:
        if isinstance(record.event, Merged) and record.event.count:
            yield blocks.base_of(record.event)
            blocks.enter(record.seq, record.event, None)
        for _ in blocks.leave(record.seq):
            pass
