"""Joining two lines of history that left from one point: slice by slice, three-way."""

from __future__ import annotations

from weakfs.session.errors import MergeConflict
from weakfs.session.events import Merged
from weakfs.session.log import Log
from weakfs.session.registry import tag_of
from weakfs.session.rules import Rules
from weakfs.session.slices import Conflict
from weakfs.session.table import Table
from weakfs.session.timeline import Mark, Timeline


def merge_states(rules: Rules, base: Table, ours: Table, theirs: Table) -> Table:
    """Merge the STATE slices with the merge function of each type; `MergeConflict` lists all that differ."""
    merged = ours
    conflicts: list[str] = []
    for tag in sorted(theirs):
        empty = rules.specs[tag].empty if tag in rules.specs else Log[object]()
        old, mine, other = base.get(tag, empty), ours.get(tag, empty), theirs[tag]
        if other is old or other is mine:
            continue
        if mine is old:
            merged = merged.set(tag, other)
            continue
        merge = rules.specs[tag].merge if tag in rules.specs else None
        if merge is not None:
            try:
                merged = merged.set(tag, Log((merge(old.last(), mine.last(), other.last()),)))
            except Conflict as conflict:
                conflicts.extend(conflict.names)
        elif tuple(mine) != tuple(other):
            conflicts.append(tag)
    if conflicts:
        raise MergeConflict(tuple(conflicts))
    return merged


def merge_logs(base: Table, ours: Table, theirs: Table) -> Table:
    """Concatenate the LOG slices: what the fork added goes behind what this side has."""
    merged = ours
    conflicts: list[str] = []
    for tag in sorted(theirs):
        old, mine, other = base.get(tag, Log()), ours.get(tag, Log()), theirs[tag]
        if other is old:
            continue
        if mine is old:
            merged = merged.set(tag, other)
        elif other.extends(old):
            merged = merged.set(tag, mine.extend(other.since(len(old))))
        else:
            conflicts.append(tag)
    if conflicts:
        raise MergeConflict(tuple(conflicts))
    return merged


def absorb(
    rules: Rules, line: Timeline, base: Timeline, branch: Timeline, *, fork: str, at: int, cause: str | None
) -> int:
    """Merge `branch`, which left `line` when it stood at `base`, and give the number of the `Merged` record.

    The branch's own records follow that record, renumbered. Raises `MergeConflict` with `line` as it was.
    """
    state = merge_states(rules, base.state, line.state, branch.state)
    logs = merge_logs(base.logs, line.logs, branch.logs)
    rows = tuple(branch.rows.since(len(base.rows)))
    event = Merged(fork, base.seq, len(rows), state)
    shape = rules.registry.by_type[Merged]
    seq = line.add(
        (at, cause, tag_of(Merged), shape.pack(event)),
        state,
        line.logs,
        mark=True,
        block_end=line.seq + 1 + len(rows),
    )
    line.rows = line.rows.extend(rows)
    line.logs = logs
    line.marks = line.marks.append(Mark(line.seq, state, logs, 0))
    shift = seq - base.seq
    for snapshot_id in sorted(set(branch.snapshots) - set(base.snapshots)):
        entry = branch.snapshots[snapshot_id]
        line.snapshots = line.snapshots.set(snapshot_id, entry.moved(shift))
    return seq
