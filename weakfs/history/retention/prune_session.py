"""Retention of a session: selecting records, calls and snapshots, and dropping them in one step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from attrs import evolve

from weakfs.class_decorators import frozen
from weakfs.history.retention.contents import Contents
from weakfs.history.retention.policy import PruneReport, Retention
from weakfs.session import Session, SessionError
from weakfs.session.history.compaction import compact
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.slices.event_reducers import Rules


@frozen
class _Cut:
    """What to drop: the records up to number `seq`, and snapshots by id."""

    seq: int
    snapshots: frozenset[str]


def prune_session(session: Session, retention: Retention, *, preview: bool) -> PruneReport:
    """Drop what exceeds the limits from a session; see `prune`."""
    with session.lock:
        session._check_writable()
        if session._base is not None:
            raise SessionError(
                "cannot prune a fork: it needs the records that are not merged yet; merge or close it first"
            )
        now, rules = session.now(), session._rules
        if preview:
            return evolve(_shorten(session._line().copy(), rules, retention, now), preview=True)
        return session._shortened(lambda line: _shorten(line, rules, retention, now))


def _shorten(line: Timeline, rules: Rules, retention: Retention, now: int) -> PruneReport:
    """Drop from a timeline what exceeds the limits."""
    before = line.copy()
    contents = Contents(before)
    cut = _within_limits(before, retention, retention.oldest(now))
    excess = 0
    if retention.max_bytes is not None:
        cut = _within_size(contents, rules, retention, cut)
    _apply(line, rules, cut, retention)
    bytes_after = contents.size(line)
    if retention.max_bytes is not None:
        excess = max(bytes_after - retention.max_bytes, 0)
    return PruneReport(
        False,
        len(before.rows) - len(line.rows),
        _number_of_calls(before, rules) - _number_of_calls(line, rules),
        tuple(one for one in contents.holders(before) if one.name in cut.snapshots and one.kind == "snapshot"),
        contents.holders(line),
        contents.size(before),
        bytes_after,
        excess,
    )


def _within_limits(line: Timeline, retention: Retention, oldest: int | None) -> _Cut:
    """Return the cut after which the limits on number and age are met."""
    snapshots = ordered_snapshots(line)
    seq = line.dropped
    if retention.max_records is not None:
        seq = max(seq, line.seq - retention.max_records)
    gone: set[str] = set()
    if retention.max_snapshots is not None:
        gone = _droppable(snapshots[: max(len(snapshots) - retention.max_snapshots, 0)], retention)
    if oldest is not None:
        seq = max(seq, line.dropped + _number_older(line, oldest))
        gone |= _droppable([one for one in snapshots if one.at < oldest], retention)
    return _Cut(seq, frozenset(gone))


def _number_older(line: Timeline, oldest: int) -> int:
    """Return how many of the first records are older; records can only be dropped from the beginning."""
    return next((place for place, row in enumerate(line.rows) if row[0] >= oldest), len(line.rows))


def _droppable(snapshots: Sequence[SnapshotEntry], retention: Retention) -> set[str]:
    return {one.snapshot_id for one in snapshots if one.tag is None or not retention.keep_tags}


def _within_size(contents: Contents, rules: Rules, retention: Retention, least: _Cut) -> _Cut:
    """Return the smallest cut, at least `least`, after which the rest fits into `max_bytes`; everything if none does.

    O(log n) sizes are computed, by binary search.
    """
    line = contents.line
    snapshots = ordered_snapshots(line)

    def at(seq: int) -> _Cut:
        older = _droppable([one for one in snapshots if one.seq <= seq], retention)
        return _Cut(seq, least.snapshots | older)

    def fits(cut: _Cut) -> bool:
        after = line.copy()
        _apply(after, rules, cut, retention)
        return contents.size(after) <= (retention.max_bytes or 0)

    if fits(least):
        return least
    return at(least.seq + bisect_left(range(least.seq, line.seq), True, key=lambda seq: fits(at(seq))))


def _apply(line: Timeline, rules: Rules, cut: _Cut, retention: Retention) -> None:
    for snapshot_id in cut.snapshots:
        line.forget_snapshot(snapshot_id)
    calls = _number_of_calls(line, rules)
    count = compact(line, rules, line.seq - cut.seq, None if retention.keep_calls else 0)
    if cut.snapshots and not count and calls == _number_of_calls(line, rules):
        # A new base, so that storage rewrites the session and frees what only these snapshots needed.
        base = line.base
        line.base = Mark(base.seq, base.state, base.logs, base.block_end)


def _number_of_calls(line: Timeline, rules: Rules) -> int:
    return sum(len(line.logs.get(tag, ())) for tag in rules.call_tags)
