"""The state at an earlier record: a replay from the nearest keyframe before it."""

from __future__ import annotations

from weakfs.platforms import garbage_collection_paused
from weakfs.session.errors import UnknownSnapshot
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules


def state_at(line: Timeline, rules: Rules, seq: int) -> Mark:
    """Return the slices of a timeline as they were after record `seq`.

    A history that was loaded gets keyframes on the way. Raises `UnknownSnapshot` if there is no such record or it was
    compacted away.
    """
    if not line.dropped <= seq <= line.seq:
        raise UnknownSnapshot(
            f"there is no state at record {seq}: the session holds {line.dropped} to {line.seq}; pass one of these"
        )
    if seq == line.seq:
        return Mark(seq, line.state, line.logs, 0)
    mark = line.keyframes.before(seq)
    if mark is None:
        mark, line.past = line.past.nearest(rules, line.base, line.rows, seq)
    if isinstance(mark, Mark) and mark.seq == seq:
        return mark
    with garbage_collection_paused():
        return next(line.past.advance(rules, mark, line.rows.since(mark.seq - line.dropped), (seq,)))
