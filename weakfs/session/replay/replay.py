"""Replaying records into a timeline: through the reducers alone, so that no side effect is repeated.

The states after merges and rollbacks are taken from their records;
`weakfs.session.replay.verification` recomputes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import evolve, field

from weakfs.class_decorators import define
from weakfs.session.codec.savable_events import accepted
from weakfs.session.errors import SessionError, UnknownType
from weakfs.session.history.reduction import changed
from weakfs.session.history.timeline import Timeline
from weakfs.session.history.views import Origin
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.events import Merged, Record
from weakfs.session.slices.table import Table
from weakfs.session.slices.type_registry import Shape
from weakfs.session.state import checked_text


@define(eq=False)
class Replay:
    """One replay into `line`, which nothing else can see until it is complete."""

    rules: Rules
    line: Timeline
    # The states that snapshots hold, by record number.
    _wanted: frozenset[int] = frozenset()
    _kept: dict[int, Table] = field(factory=dict[int, Table])

    def begin_with(self, origin: Origin) -> None:
        """Start where a session's records start: after those that were compacted away, with the state at that point."""
        base, line = origin.base, self.line
        if base.seq != line.seq:
            for kind, table in (("state", base.state), ("log", base.logs)):
                self._check_table(kind, table)
            line.base, line.state, line.logs, line.block_end = base, base.state, base.logs, base.block_end
        self._wanted = frozenset(entry.seq for entry in origin.snapshots.values())

    def apply_all(self, records: Iterable[Record]) -> None:
        """Apply records in order. If one fails, the error names it, and `line` must be discarded."""
        line = self.line
        # This may be the last record of a merge: a snapshot there may belong to the fork, with a different state.
        behind_merge = max(line.block_end, line.seq)
        if not line.seq:
            self._keep(0, line.state)
        for record in records:
            seq = line.seq + 1
            shape = self._shape(record, seq)
            event = record.event
            inside = seq <= line.block_end
            values = shape.pack(event)
            try:
                kept = accepted(shape, event, values, self.rules.registry)
                if kept is not event:
                    event, values = kept, shape.pack(kept)
                state, logs = changed(self.rules, line.state, line.logs, event, logs_only=inside)
            except Exception as error:
                error.add_note(f"record {seq} ({shape.tag}) cannot be replayed")
                raise
            line.add((record.at, checked_text("cause", record.cause), shape.tag, values), state, logs)
            if isinstance(event, Merged) and not inside:
                line.block_end = behind_merge = seq + max(event.count, 0)
            if seq > behind_merge:
                self._keep(seq, state)
        line.forget_keyframes()

    def take_snapshots(self, origin: Origin) -> None:
        """Keep the snapshots of the session, with the states that were rebuilt."""
        line = self.line
        for snapshot_id, entry in origin.snapshots.items():
            if snapshot_id in line.snapshots:
                raise SessionError(
                    f"cannot replay: a snapshot {snapshot_id!r} already exists; replay into a new session"
                )
            state = self._kept.get(entry.seq, entry.state)
            line.keep_snapshot(evolve(entry, state=state))

    def _keep(self, seq: int, state: Table) -> None:
        if seq in self._wanted:
            self._kept[seq] = state

    def _shape(self, record: Any, seq: int) -> Shape:
        if type(record) is not Record:
            raise TypeError(f"cannot replay {record!r:.60}: it is not a Record; pass the records of a session")
        if record.seq != seq:
            begins = " Records that start later are replayed with the state before them: pass session.records itself."
            raise SessionError(
                f"cannot replay record {record.seq!r:.60}: record {seq} comes next; pass the records without gaps, to "
                f"a new session or to one that ends where they start.{begins if seq == 1 else ''}"
            )
        if type(record.at) is not int:
            raise TypeError(f"cannot replay record {seq}: its time is {record.at!r:.60}; pass integer nanoseconds")
        shape = self.rules.registry.by_type.get(type(record.event))
        if shape is None:
            name = type(record.event).__name__
            raise UnknownType(
                f"cannot replay record {seq}: its type {name} is not registered, so its changes would be lost; "
                f"install the slice that it changes, or pass registry=Registry.standard().with_types({name})"
            )
        return shape

    def _check_table(self, kind: str, table: Table) -> None:
        for tag in table:
            spec = self.rules.specs.get(tag)
            if spec is None or spec.kind != kind:
                raise UnknownType(
                    f"cannot replay: the {kind} slice {tag!r} holds values from before the first record and is not "
                    f"installed; call session.install on its type first"
                )
