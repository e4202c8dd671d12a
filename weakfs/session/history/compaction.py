"""The compaction of a timeline: old records are dropped, and so are old calls."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from pyrsistent import pmap

from weakfs.session.history.keyframes import Mark, PackedMark
from weakfs.session.history.state_at import state_at
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import Table


def compact(line: Timeline, rules: Rules, keep: int, keep_calls: int | None) -> int:
    """Drop all records of a timeline but the newest `keep`, and return how many were dropped.

    Unless `keep_calls` is `None`, drop calls as well: see `Session.compact`.
    """
    count = max(len(line.rows) - keep, 0)
    if count:
        base = state_at(line, rules, line.dropped + count)
        past = line.past
        line.keyframes = line.keyframes.behind(base.seq)
        line.past = past.until(past.seq, Log(mark for mark in past.lasting if mark.seq > base.seq))
        line.rows = line.rows.without_first(count)
        line.base = base
        line.externals = pmap({seq: kept for seq, kept in line.externals.items() if seq >= base.seq})
    if keep_calls is not None:
        for tag in rules.call_tags:
            _shorten(line, tag, keep_calls)
    return count


def _shorten(line: Timeline, tag: str, keep: int) -> None:
    """Drop the oldest values of a LOG slice, here and at every keyframe, except for those of kept records."""
    values: Log[Any] = line.logs.get(tag, Log())
    before = len(line.base.logs.get(tag, ()))
    count = min(len(values) - keep, before)
    if count <= 0:
        return
    remaining = values.without_first(count)

    def shortened(logs: Table) -> Table:
        known = logs.get(tag)
        if known is None:
            return logs
        shares = values.extends(known)
        return logs.set(tag, remaining.prefix(len(known) - count) if shares else known.without_first(count))

    line.logs = line.logs.set(tag, remaining)
    base = line.base
    line.base = Mark(base.seq, base.state, shortened(base.logs), base.block_end)
    line.keyframes = line.keyframes.with_logs(shortened)
    kept = (mark for mark in line.past.lasting if isinstance(mark, PackedMark))
    line.past = line.past.until(line.past.seq, Log(evolve(mark, logs=shortened(mark.logs)) for mark in kept))
