"""Joining two lines of history that left from one point: slice by slice, three-way."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from weakfs.session.errors import MergeConflict
from weakfs.session.events import Merged
from weakfs.session.history.checkpoints import Mark
from weakfs.session.history.log import Log
from weakfs.session.history.timeline import Point, SnapshotEntry, Timeline, changed, event_of
from weakfs.session.slices.registry import tag_of
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.slice import Conflict, Merge, StateMerge, WholeMerge
from weakfs.session.slices.table import Table


def merge_states(rules: Rules, base: Table, ours: Table, theirs: Table) -> Table:
    """Merge the STATE slices with the merge function of each type; `MergeConflict` lists all that differ."""
    merged = ours
    conflicts: list[str] = []
    for tag in sorted({*base, *theirs}):
        spec = rules.specs.get(tag)
        empty = spec.empty if spec is not None else Log[Any]()
        old, mine, other = base.get(tag, empty), ours.get(tag, empty), theirs.get(tag, empty)
        if other is old or other is mine:
            continue
        if mine is old:
            merged = merged.set(tag, other)
        elif spec is not None and spec.merge is not None:
            try:
                if isinstance(spec.merge, StateMerge):
                    merged = merged.set(tag, spec.merge.merge(base, ours, theirs))
                else:
                    merged = merged.set(tag, _merged(spec.merge, old, mine, other))
            except Conflict as conflict:
                conflicts.extend(conflict.names or (tag,))
        elif tuple(mine) == tuple(old):
            merged = merged.set(tag, other)
        elif tuple(other) not in (tuple(old), tuple(mine)):
            conflicts.append(tag)
    if conflicts:
        raise MergeConflict(tuple(conflicts))
    return merged


def _merged(merge: Merge | WholeMerge, base: Log[Any], ours: Log[Any], theirs: Log[Any]) -> Log[Any]:
    if isinstance(merge, WholeMerge):
        return merge.merge(base, ours, theirs)
    if not ours or not theirs or tuple(ours)[:-1] != tuple(theirs)[:-1]:
        # A merge function answers for the latest values: not for a slice that one side emptied, nor for the others.
        raise Conflict
    merged = merge(base.last(), ours.last(), theirs.last())
    return ours.prefix(len(ours) - 1) if merged is None else ours.replace_last(merged)


def merge_snapshots(
    base: Point, line: Timeline, branch: Timeline, *, shift: int, number: Callable[[SnapshotEntry], int]
) -> None:
    """Put the snapshots that a branch took into a line, as of the record numbers that they have there.

    Costs what the branch took and dropped, whatever is kept.
    """
    found = [branch.snapshots.get(snapshot_id) for snapshot_id in touched_since(base, branch)]
    taken = [entry for entry in found if entry is not None and entry.snapshot_id not in base.snapshots]
    for entry in sorted(taken, key=attrgetter("age")):
        line.keep_snapshot(entry.moved(shift, number(entry)))


def drop_snapshots(base: Point, line: Timeline, branch: Timeline) -> None:
    """Drop from a line the snapshots that a branch dropped. Costs what the branch took and dropped."""
    for snapshot_id in touched_since(base, branch):
        if snapshot_id in base.snapshots and snapshot_id not in branch.snapshots:
            line.forget_snapshot(snapshot_id)


def touched_since(base: Point, branch: Timeline) -> set[str]:
    """Give the ids of the snapshots that a branch took or dropped since it stood at `base`."""
    return set(branch.touched.since(base.touched)) if branch.touched is not None else set()


def absorb(
    rules: Rules, line: Timeline, base: Point, branch: Timeline, *, fork: str, at: int, cause: str | None
) -> int:
    """Merge `branch`, which left `line` when it stood at `base`, and give the number of the `Merged` record.

    The branch's own records follow that record, renumbered, and its events are reduced into the LOG slices
    once more, behind what those hold. Raises `MergeConflict` with `line` as it was.
    """
    state = merge_states(rules, base.state, line.state, branch.state)
    rows = tuple(branch.rows.since(base.seq - branch.dropped))
    event = Merged(fork, base.seq, len(rows), state)
    _, logs = changed(rules, state, line.logs, event)
    after = logs
    logging = {rules.registry.by_type[type_].tag for type_ in rules.logging if type_ in rules.registry.by_type}
    for row in rows:
        if row[2] in logging:
            _, after = changed(rules, state, after, event_of(rules, row), logs_only=True)
    shape = rules.registry.by_type[Merged]
    block_end = line.seq + 1 + len(rows)
    seq = line.add((at, cause, tag_of(Merged), shape.pack(event)), state, logs, mark=True, block_end=block_end)
    line.rows = line.rows.extend(rows)
    line.logs = after
    line.checkpoint(Mark(line.seq, state, after, block_end))
    return seq
