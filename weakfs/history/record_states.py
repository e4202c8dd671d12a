"""The state of a session before and after each of its records, read in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.session import Merged, Record, RolledBack, Session, SessionError, SessionView
from weakfs.session.history.reduction import Row, changed, event_of
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.table import EMPTY_TABLE, Table
from weakfs.session.slices.tags import tag_of

MERGED = tag_of(Merged)


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


@frozen
class RowStates:
    """One record with its event, the rules under which it was made, and the slices before and after it.

    A record of a merged fork has the slices of the fork; they are `None` if they are not known. `fork` and `base` are
    those of `Step`.
    """

    seq: int
    row: Row
    rules: Rules
    event: Any
    before: Table | None
    after: Table | None
    logs_before: Table
    logs_after: Table
    fork: str
    base: int | None


# Returns the state and the logs after a record, from those before it. The state is `None` if it is unknown.
Apply = Callable[[Rules, int, Row, Any, Table | None, Table], tuple[Table | None, Table]]


def row_states(line: Timeline, rules: Rules, owner: str, apply: Apply) -> Iterator[RowStates]:
    """Yield the records of a timeline in order; `owner` is the id of its session. O(records)."""
    state: Table | None = line.base.state
    logs = line.base.logs
    kept = _Kept(set(_fork_points(line, rules, owner)))
    blocks = Blocks(owner)
    kept.keep(owner, line.dropped, state)
    if line.base.block_end > line.dropped:
        # The first records belong to a merge that was compacted away.
        blocks.begin_inside(line.base.block_end, state)
        state = None
    for seq, row in enumerate(line.rows, line.dropped + 1):
        own = line.past.rules_at(seq, rules)
        event = event_of(own, row)
        before, logs_before = state, logs
        state, logs = apply(own, seq, row, event, before, logs_before)
        if isinstance(event, Merged | RolledBack):
            # Known even in a fork whose other states are not.
            state = event.state
        base = blocks.base_of(event) if isinstance(event, Merged) and event.count else None
        yield RowStates(seq, row, own, event, before, state, logs_before, logs, blocks.inside, base)
        kept.keep(blocks.inside, seq, state)
        if isinstance(event, Merged) and base is not None:
            around = [owner, *(block.fork for block in blocks.open), event.fork]
            state, outside = kept.find(reversed(around), base), state
            blocks.enter(seq, event, outside)
        for block in blocks.leave(seq):
            state = block.outside
            kept.keep(blocks.inside, seq, state)


def steps_of(session: Session) -> Iterator[Step]:
    """Yield each record with the state before and after it, by running their reducers again. O(records)."""
    rules, line, own = session._parts()
    for one in row_states(line, rules, own["session_id"], _applied):
        before = None if one.before is None else SessionView(rules, one.seq - 1, one.before, one.logs_before)
        after = None if one.after is None else SessionView(rules, one.seq, one.after, one.logs_after)
        yield Step(Record(one.seq, one.row[0], one.event, one.row[1]), before, after, one.fork, one.base)


def _applied(
    rules: Rules, seq: int, row: Row, event: Any, state: Table | None, logs: Table
) -> tuple[Table | None, Table]:
    try:
        if state is None:
            return None, changed(rules, EMPTY_TABLE, logs, event, logs_only=True)[1]
        return changed(rules, state, logs, event)
    except SessionError:
        raise
    except Exception as error:
        # Custom reducers may raise any exception.
        raise SessionError(f"cannot read history: record {seq} ({row[2]}) cannot be applied: {error!r}") from error


def fork_points(session: Session) -> Iterator[int]:
    """Yield the number of each record from which a later merged fork started."""
    rules, line, own = session._parts()
    return _fork_points(line, rules, own["session_id"])


def _fork_points(line: Timeline, rules: Rules, owner: str) -> Iterator[int]:
    blocks = Blocks(owner)
    if line.base.block_end > line.dropped:
        blocks.begin_inside(line.base.block_end, None)
    for seq, row in enumerate(line.rows, line.dropped + 1):
        if row[2] == MERGED:
            event = event_of(rules, row)
            if event.count:
                yield blocks.base_of(event)
                blocks.enter(seq, event, None)
        for _ in blocks.leave(seq):
            pass
