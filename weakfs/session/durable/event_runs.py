"""Runs of events in LOG slices: values that are events of the history, referred to by their place there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from weakfs.session.history.log import Log
from weakfs.session.history.packing import are_same
from weakfs.session.history.timeline import Timeline
from weakfs.session.replay.reduction import Row
from weakfs.session.slices.schema import Rules


@frozen(eq=False)
class EventRun:
    """How the values of a LOG slice are referred to: `head` values, then `count` events, preceded by `first` others."""

    head: int
    first: int
    count: int
    values: Log[Any]


def event_runs(
    rules: Rules,
    line: Timeline,
    counts: Mapping[str, int],
    kept_from: Mapping[str, int],
    before: Mapping[str, EventRun],
    rows: Iterable[Row],
) -> dict[str, EventRun]:
    """Return the runs of events in LOG slices. `rows` are the records since `before` was computed.

    `counts` are the numbers of events so far, `kept_from` those before the first frame that is kept. A slice that holds
    anything other than its own events starts a new run.
    """
    tags = {spec.tag for spec in rules.specs.values() if spec.kind == "log" and rules.registry.by_tag.get(spec.tag)}
    fields: dict[str, list[tuple[Any, ...]]] = {tag: [] for tag in tags}
    for row in rows:
        if row[2] in fields:
            fields[row[2]].append(row[3])
    runs: dict[str, EventRun] = {}
    for tag in tags:
        values = line.logs.get(tag)
        if values is None:
            continue
        total = counts.get(tag, 0)
        shape = rules.registry.by_tag[tag]
        new = fields[tag]
        old = before.get(tag) or EventRun(max(len(values) - len(new), 0), total - len(new), 0, Log())
        length = old.head + old.count
        is_run = (
            len(values) == length + len(new)
            and total == old.first + old.count + len(new)
            and continues(values, old.values)
            and all(
                type(value) is shape.cls and are_same(shape.pack(value), own)
                for value, own in zip(values.since(length), new, strict=True)
            )
        )
        run = EventRun(old.head, old.first, old.count + len(new), values)
        if not is_run:
            run = EventRun(len(values), total, 0, values)
        # The frames of dropped records are deleted, so their events are written out.
        lost = min(max(kept_from.get(tag, 0) - run.first, 0), run.count)
        runs[tag] = EventRun(run.head + lost, run.first + lost, run.count - lost, values)
    return runs


def continues(values: Log[Any], before: Log[Any]) -> bool:
    """Return whether a log begins with the items of another, judged by the stretches that they share. O(log n)."""
    length = len(before)
    if not length:
        return True
    if length > len(values):
        return False
    mine, theirs = values._stretch.at(length - 1), before._stretch
    if mine is theirs:
        return True
    if mine.start != theirs.start or mine.base is not theirs.base:
        return False
    count = length - mine.start
    return all(one is other for one, other in zip(mine.read()[:count], theirs.read()[:count], strict=True))
