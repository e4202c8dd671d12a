"""Reduction: apply events to the tables of slices, one by one or a run at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from weakfs.messages import a_type, named_type
from weakfs.session.codec.savable_events import accepted
from weakfs.session.errors import SessionError, UnknownType
from weakfs.session.history.keyframes import Mark, PackedMark
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.events import SLICE_EVENTS, Merged, RolledBack, SliceAppended, SliceCleared, SliceSeeded
from weakfs.session.slices.log import Log
from weakfs.session.slices.plan import Plan, Step
from weakfs.session.slices.slice import SliceSpec
from weakfs.session.slices.table import Table
from weakfs.short_repr import clipped_repr

if TYPE_CHECKING:
    from weakfs.session.history.batch_reduction import Runs

Row = tuple[int, "str | None", str, tuple[Any, ...]]


def changed(
    rules: Rules,
    state: Table,
    logs: Table,
    event: Any,
    *,
    logs_only: bool = False,
    steps: tuple[Step, ...] | None = None,
) -> tuple[Table, Table]:
    """Run every reducer of `event`, or only those in `steps`, and return the resulting tables.

    The arguments are not changed. The state tables of `RolledBack` and `Merged` are taken from the event. The cost is
    that of the reducers.
    """
    type_ = type(event)
    for step in rules.steps.get(type_, ()) if steps is None else steps:
        if step.test is not None and not step.test(event):
            continue
        if step.is_log:
            before = logs.get(step.tag, step.empty)
            after = step.react(before, event)
            if after is not before:
                logs = logs.set(step.tag, after)
        elif not logs_only:
            before = state.get(step.tag, step.empty)
            after = step.react(before, event)
            if after is not before:
                state = state.set(step.tag, after)
    built_in = OWN_EVENTS.get(type_)
    if built_in is not None:
        state, logs = built_in(rules, state, logs, event, logs_only)
    return state, logs


def check_slices(
    rules: Rules, steps: Iterable[Step], event: Any, before: tuple[Table, Table], after: tuple[Table, Table]
) -> None:
    """Raise `TypeError` if a reducer returned a value that a file cannot hold. Only checks new values."""
    for step in steps:
        old, new = before[step.is_log].get(step.tag, step.empty), after[step.is_log].get(step.tag, step.empty)
        if new is old:
            continue
        cls = rules.specs[step.tag].cls
        shape = rules.registry.by_type[cls]
        # The contents of the previous value were checked when it was added, unless it is the slice's initial value.
        last = None if old is step.empty else old.last()
        was = shape.pack(last) if type(last) is cls else None
        for value in step.new_values(old, new):
            if value is event and type(value) is cls:
                continue
            try:
                if type(value) is not cls:
                    raise TypeError(f"$ is {clipped_repr(value)}, {a_type(value)}; return {named_type(cls)}")
                accepted(shape, value, shape.pack(value), rules.registry, was)
            except (TypeError, ValueError) as error:
                raise type(error)(
                    f"cannot change the slice {step.tag!r}: its reducer of {type(event).__name__} returned a value "
                    f"that a session file cannot hold: {error}"
                ) from None


def _on_state_taken(
    rules: Rules, state: Table, logs: Table, event: RolledBack | Merged, logs_only: bool
) -> tuple[Table, Table]:
    return (state if logs_only else event.state), logs


def _on_slice_changed(rules: Rules, state: Table, logs: Table, event: Any, logs_only: bool) -> tuple[Table, Table]:
    spec = rules.specs.get(event.slice)
    if spec is None:
        rules.registry.shape(event.slice)  # raises UnknownType with its remedy
        raise UnknownType(f"the slice {event.slice!r} is not installed; call session.install on its type first")
    table = logs if spec.kind == "log" else state
    if spec.kind == "state" and logs_only:
        return state, logs
    before = table.get(spec.tag, spec.empty)
    if isinstance(event, SliceSeeded):
        after = Log(_of_type(spec, item) for item in event.items)
    elif isinstance(event, SliceAppended):
        after = before.append(_of_type(spec, event.item))
    else:
        after = Log()
    table = table.set(spec.tag, after)
    return (state, table) if spec.kind == "log" else (table, logs)


def _of_type(spec: SliceSpec, value: Any) -> Any:
    if type(value) is not spec.cls:
        raise TypeError(
            f"cannot put {clipped_repr(value)} into the slice {spec.tag!r}: it holds values of type "
            f"{spec.cls.__name__}; pass one of those"
        )
    return value


OWN_EVENTS = {
    RolledBack: _on_state_taken,
    Merged: _on_state_taken,
    SliceSeeded: _on_slice_changed,
    SliceAppended: _on_slice_changed,
    SliceCleared: _on_slice_changed,
}


def event_of(rules: Rules, row: Row) -> Any:
    """Build the event of a row."""
    return rules.registry.shape(row[2]).build(*row[3])


def advance(rules: Rules, mark: Mark | PackedMark, rows: Iterable[Row], stops: Iterable[int]) -> Iterator[Mark]:
    """Apply `rows` in order to the slices of `mark`, and yield the slices after each record in `stops`.

    Events that a slice type can fold wait until its value is needed.
    """
    upcoming = iter(stops)
    stop = next(upcoming, None)
    if stop is None:
        return
    seq, logs, block_end = mark.seq, mark.logs, mark.block_end
    from weakfs.session.history.batch_reduction import Runs

    runs = Runs(rules)
    state = runs.begin(mark.state) if isinstance(mark, PackedMark) else mark.state
    if stop == seq:
        yield Mark(seq, runs.reduced(state), logs, block_end)
        return
    waiting = {tag: runs.of(tag) for tag in rules.folds}
    plans: dict[str, Plan] = {}
    for row in rows:
        seq += 1
        _, _, tag, fields = row
        plan = plans.get(tag) or plans.setdefault(tag, rules.plan(tag))
        part = plan.if_none if plan.place is not None and fields[plan.place] is None else plan.if_set
        if part.appended_to is not None:
            runs.appended_to(part.appended_to).append(fields)
        elif seq <= block_end and not plan.is_logged:
            pass
        elif part.only is not None and seq > block_end:
            waiting[part.only].append((seq, plan.shape.cls, fields))
        else:
            event, state, logs = _advanced(rules, runs, seq, row, state, logs, logs_only=seq <= block_end)
            if type(event) is Merged and seq > block_end:
                block_end = seq + event.count
        if seq == stop:
            state, logs = runs.reduced(state), runs.extended(logs)
            yield Mark(seq, state, logs, block_end)
            stop = next(upcoming, None)
            if stop is None:
                return


def _advanced(
    rules: Rules, runs: Runs, seq: int, row: Row, state: Table, logs: Table, *, logs_only: bool
) -> tuple[object, Table, Table]:
    """Apply one row that is not just an event to be folded."""
    plan = rules.plan(row[2])
    part = plan.if_none if plan.place is not None and row[3][plan.place] is None else plan.if_set
    try:
        event = plan.shape.build(*row[3])
        touched = [step.tag for step in part.steps] + ([event.slice] if type(event) in SLICE_EVENTS else [])
        logs = runs.extended(logs, touched)
        if logs_only:
            return event, *changed(rules, state, logs, event, logs_only=True)
        if type(event) in (RolledBack, Merged):
            runs.forget()
        else:
            state = runs.reduced(state, touched)
        for step in part.folds:
            runs.of(step.tag).append((seq, plan.shape.cls, row[3]))
        return event, *changed(rules, state, logs, event, steps=part.steps)
    except SessionError:
        raise
    except Exception as error:
        from weakfs.session.history.batch_reduction import unreadable

        raise unreadable(seq, row[2], error) from error
