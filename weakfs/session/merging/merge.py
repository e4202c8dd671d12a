"""Three-way merge, slice by slice, of two timelines that branched from one point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from attrs import evolve

from weakfs.session.conflicts.conflict_types import ConflictEntry, MergedPath
from weakfs.session.errors import MergeConflict
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.record_numbers import Renumbering, Shift
from weakfs.session.history.reduction import Row, changed, event_of
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.state_at import state_at
from weakfs.session.history.timeline import Point, Timeline
from weakfs.session.merging.resolver import Resolver
from weakfs.session.merging.sides import BranchHistory, Sides
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.events import SLICE_EVENTS, STATE_PLACES, Merged, SliceAppended, SliceSeeded
from weakfs.session.slices.log import Log
from weakfs.session.slices.slice import Conflict, Merge, SliceSpec, StateMerge, WholeMerge
from weakfs.session.slices.table import Table
from weakfs.session.slices.tags import tag_of
from weakfs.session.slices.type_registry import Shape

# The events that change one slice, by its tag.
DIRECT = {tag_of(type_) for type_ in SLICE_EVENTS}


def merge_states(rules: Rules, sides: Sides) -> Table:
    """Merge the STATE slices with each type's merge function. What remains in conflict is listed by the resolver."""
    base, ours, theirs, resolver = sides.base, sides.ours, sides.theirs, sides.resolver
    merged = ours
    for tag in sorted({*base, *theirs}):
        spec = rules.specs.get(tag)
        empty = spec.empty if spec is not None else Log[Any]()
        old, mine, other = base.get(tag, empty), ours.get(tag, empty), theirs.get(tag, empty)
        # Equal values may be different objects, for example if they were computed again from the records.
        if other.equals(old) or other is mine:
            continue
        listed = len(resolver.changes)
        try:
            values = _merged_slice(spec, tag, sides, (old, mine, other))
        except Conflict as conflict:
            values = other if _takes_theirs(rules, sides, tag, conflict.names or (tag,)) else mine
        if values is not mine:
            merged = merged.set(tag, values)
            if (
                resolver.wants_changes
                and len(resolver.changes) == listed
                and not isinstance(spec and spec.merge, StateMerge)
            ):
                resolver.changes.append(MergedPath(tag, "changed"))
    return merged


def _merged_slice(
    spec: SliceSpec | None, tag: str, sides: Sides, versions: tuple[Log[Any], Log[Any], Log[Any]]
) -> Log[Any]:
    """Return the merged values of a slice that their side changed.

    Raises `Conflict` if both sides changed it differently.
    """
    old, mine, other = versions
    if spec is not None and isinstance(spec.merge, StateMerge) and (mine is not old or sides.resolver.wants_changes):
        return spec.merge.merge(sides)
    if mine.equals(old):
        return other
    if spec is not None and spec.merge is not None and not isinstance(spec.merge, StateMerge):
        return _merged(spec.merge, old, mine, other)
    if tuple(mine) == tuple(old):
        return other
    if tuple(other) not in (tuple(old), tuple(mine)):
        raise Conflict
    return mine


def _takes_theirs(rules: Rules, sides: Sides, tag: str, names: tuple[str, ...]) -> bool:
    """Ask the resolver about a slice that conflicts as a whole.

    Return whether the answer for all of its names is "theirs".
    """
    cls = rules.specs[tag].cls if tag in rules.specs else None
    reduced = {tag_of(event) for event, steps in rules.steps.items() if any(step.tag == tag for step in steps)}

    def touched(event: str, values: tuple[Any, ...]) -> tuple[str, ...]:
        return (tag,) if event in reduced or (event in DIRECT and values[0] == tag) else ()

    history = sides.history
    calls: list[tuple[str, ...]] = []
    for of_ours in (True, False):
        found = history.calls(touched, of_ours=of_ours).get(tag, ()) if history is not None else ()
        calls.append(tuple(dict.fromkeys(cause for _, cause in found)))
    entries = [
        ConflictEntry(name, "slice", tag, our_calls=calls[0], their_calls=calls[1]) for name in dict.fromkeys(names)
    ]
    answers = {sides.resolver.resolve(entry) for entry in entries}
    if len(answers) > 1 and "raise" not in answers:
        raise ValueError(
            f"cannot take {tag!r} partly from each side: {cls.__name__ if cls else tag} is merged as a whole; choose "
            f"'ours' or 'theirs' for all of {', '.join(names[:5])}"
        )
    return answers == {"theirs"}


def _merged(merge: Merge | WholeMerge, base: Log[Any], ours: Log[Any], theirs: Log[Any]) -> Log[Any]:
    if isinstance(merge, WholeMerge):
        return merge.merge(base, ours, theirs)
    if not ours or not theirs or tuple(ours)[:-1] != tuple(theirs)[:-1]:
        # A side may have rebuilt an equal value.
        if tuple(theirs) == tuple(base):
            return ours
        if tuple(ours) == tuple(base):
            return theirs
        # A merge function only handles latest values: not a slice that one side emptied, nor any other values.
        raise Conflict
    merged = merge(base.last(), ours.last(), theirs.last())
    return ours.prefix(len(ours) - 1) if merged is None else ours.replace_last(merged)


def merge_snapshots(
    rules: Rules,
    base: Point,
    line: Timeline,
    branch: Timeline,
    *,
    renumbering: Renumbering,
    number: Callable[[SnapshotEntry], int],
) -> None:
    """Add the snapshots of a branch to a timeline, with the record numbers of that timeline.

    O(snapshots that the branch took or dropped), however many are kept.
    """
    found = [branch.snapshots.get(snapshot_id) for snapshot_id in touched_since(base, branch)]
    taken = [entry for entry in found if entry is not None and entry.snapshot_id not in base.snapshots]
    for entry in sorted(taken, key=attrgetter("age")):
        state = renumbered_table(rules, entry.state, renumbering)
        line.keep_snapshot(evolve(entry, seq=renumbering(entry.seq), number=number(entry), state=state))


def drop_snapshots(base: Point, line: Timeline, branch: Timeline) -> None:
    """Drop from a timeline the snapshots that a branch dropped. O(snapshots that the branch took or dropped)."""
    for snapshot_id in touched_since(base, branch):
        if snapshot_id in base.snapshots and snapshot_id not in branch.snapshots:
            line.forget_snapshot(snapshot_id)


def touched_since(base: Point, branch: Timeline) -> set[str]:
    """Return the ids of the snapshots that a branch took or dropped since it was at `base`."""
    return set(branch.touched.since(base.touched)) if branch.touched is not None else set()


def absorb(
    rules: Rules,
    line: Timeline,
    base: Point,
    branch: Timeline,
    *,
    fork: str,
    at: int,
    cause: str | None,
    own: str | None = None,
    resolver: Resolver | None = None,
) -> tuple[int, Merged, Renumbering]:
    """Merge `branch`, which left `line` at `base`.

    Return the number and the event of the `Merged` record, and the mapping from the branch's record numbers to those of
    `line`. The branch's own records follow that record with new numbers, and its events are reduced again into the LOG
    slices, after the values that these already hold. Raises `MergeConflict`, with `line` unchanged, if both sides
    changed the same thing differently. `own` is the id of the session, `None` for the end of one of its transactions.

    Snapshots of attached filesystems from before a rollback in the branch (`Timeline.externals`) are dropped: the
    merged slices at a record of the branch never existed together with these filesystems. Rolling them back to such a
    record is refused.
    """
    resolver = resolver or Resolver()
    state, rows, renumbering = merged_state(rules, line, base, branch, fork=fork, own=own or fork, resolver=resolver)
    if resolver.conflicts:
        raise MergeConflict(resolver.sorted_conflicts())
    event = Merged(fork, renumbering(base.seq), len(rows), state, renumbered=True, resolutions=resolver.answers())
    _, logs = changed(rules, state, line.logs, event)
    after = logs
    for row in rows:
        if rules.plan(row[2]).is_logged:
            _, after = changed(rules, state, after, event_of(rules, row), logs_only=True)
    shape = rules.registry.by_type[Merged]
    block_end = line.seq + 1 + len(rows)
    seq = line.add((at, cause, shape.tag, shape.pack(event)), state, logs, mark=True, block_end=block_end)
    line.add_merged(rows, after)
    line.add_keyframe(Mark(line.seq, state, after, block_end))
    return seq, event, renumbering


def merged_state(
    rules: Rules, line: Timeline, base: Point, branch: Timeline, *, fork: str, own: str, resolver: Resolver
) -> tuple[Table, list[Row], Renumbering]:
    """Merge the STATE slices of `branch` into those of `line`, and change neither.

    Return the merged slices, the branch's records with their numbers mapped, and that mapping.
    """
    shift = Shift(base.seq + 1, line.seq + 1 - base.seq, line.numbering)
    renumbering = Renumbering(base.numbering, base.shifts.append(shift), line.numbering)
    rows = [renumbered_row(rules, row, renumbering) for row in branch.rows.since(base.seq - branch.dropped)]

    def ours_since(number: int) -> Iterator[tuple[int, Row]]:
        return enumerate(line.rows.since(number - line.dropped), number + 1) if number >= line.dropped else iter(())

    def our_state(number: int) -> Table | None:
        if number < line.dropped:
            return None
        mark = state_at(line, rules, number)
        return mark.state if mark.block_end <= number else None

    def history() -> BranchHistory:
        first = base.shifts[0].first - 1 if base.shifts else base.seq
        return BranchHistory(
            own, fork, renumbering(first), renumbering(base.seq), ours_since, rows, our_state, line.seq
        )

    sides = Sides(
        renumbered_table(rules, base.state, renumbering),
        line.state,
        renumbered_table(rules, branch.state, renumbering),
        resolver,
        history,
    )
    return merge_states(rules, sides), rows, renumbering


def renumbered_row(rules: Rules, row: Row, renumbering: Renumbering) -> Row:
    """Return a row with the record numbers in its event mapped; the same row if there are none."""
    at, cause, tag, values = row
    shape = rules.registry.shape(tag)
    mapped = _mapped(shape, values, renumbering)
    if tag in STATE_PLACES:
        place = STATE_PLACES[tag]
        mapped = (*mapped[:place], renumbered_table(rules, mapped[place], renumbering), *mapped[place + 1 :])
    elif shape.cls is SliceAppended:
        mapped = (values[0], _renumbered(rules, values[1], renumbering))
    elif shape.cls is SliceSeeded:
        mapped = (values[0], tuple(_renumbered(rules, item, renumbering) for item in values[1]))
    return row if mapped is values else (at, cause, tag, mapped)


def renumbered_table(rules: Rules, table: Table, renumbering: Renumbering) -> Table:
    """Return a table of STATE slices with the record numbers in their values mapped.

    O(values) for slices whose type declares record numbers (see `weakfs.session.slices.tags.event`), and free for all
    others.
    """
    for tag in rules.numbered:
        values: Log[Any] | None = table.get(tag)
        if values is not None:
            mapped = [_renumbered(rules, value, renumbering) for value in values]
            if any(one is not other for one, other in zip(mapped, values, strict=True)):
                table = table.set(tag, Log(mapped))
    return table


def _renumbered(rules: Rules, value: Any, renumbering: Renumbering) -> Any:
    """Return an event, or a slice's value, with its record numbers mapped."""
    shape = rules.registry.by_type.get(type(value))
    if shape is None:
        return value
    values = shape.pack(value)
    mapped = _mapped(shape, values, renumbering)
    return value if mapped is values else shape.build(*mapped)


def _mapped(shape: Shape, values: tuple[Any, ...], renumbering: Renumbering) -> tuple[Any, ...]:
    """Return the fields of an event with its record numbers mapped; the same tuple if none changes."""
    if not shape.numbers:
        return values
    changes = {place: _mapped_field(values[place], renumbering) for place in shape.numbers}
    if all(values[place] == number for place, number in changes.items()):
        return values
    return tuple(changes.get(place, value) for place, value in enumerate(values))


def _mapped_field(value: Any, renumbering: Renumbering) -> Any:
    if type(value) is int:
        return renumbering(value)
    return tuple(_mapped_field(item, renumbering) for item in value) if type(value) is tuple else value
