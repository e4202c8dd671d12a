"""Writing frames: the changes of one commit of a session, as JSON with the names and forms of a session file.

A frame holds the new records, the blobs in them, and what records do not contain: snapshots, installed slices, ids. A
state, such as that of a rollback, is written as its difference from the state before the frame. Frames are written
under the session's lock, so this is fast: the values in nearly all rows are JSON already, except for blobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import attrs
import orjson

from weakfs.class_decorators import frozen
from weakfs.session.blobs.blob import Stored
from weakfs.session.codec.blob_table import Json
from weakfs.session.codec.encoder import AS_IT_IS, Writing
from weakfs.session.durable.frames.frame_blobs import INLINE, FrameBlobs, KnownDigests, inline
from weakfs.session.durable.frames.state_difference import pools_that_compare, write_table
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.reduction import Row
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.events import Merged, RolledBack
from weakfs.session.slices.slice import SliceSpec
from weakfs.session.slices.table import EMPTY_TABLE, Table
from weakfs.session.slices.tags import stored_name, tag_of
from weakfs.session.slices.type_registry import Registry, Shape

ATOMS: frozenset[Any] = frozenset({str, int, bool, type(None)})
# The types of values that JSON does not have.
BLOBS: frozenset[Any] = frozenset({bytes, Stored, tuple})
PLAIN = ATOMS | BLOBS

NO_EXTERNALS = Timeline().externals

# How plain events of a type are written: the names of their fields, and the places of those that may hold blobs.
PlainFields = tuple[str, tuple[int, ...]]


class FrameWriting(Writing):
    """Encodes the values of one frame after another. Building its converter takes milliseconds."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry, self._state, lambda row: EMPTY_TABLE)
        self.write_state: Callable[[Table], Json] = lambda table: None

    def _state(self, table: Table) -> Json:
        return self.write_state(table)

    def begin(self, blobs: FrameBlobs) -> None:
        """Start a frame."""
        self.blobs = blobs
        for pool, _ in [*self.pools.values()]:
            self.pools[pool.cls] = (pool, pool.writer(blobs))

    def row(self, value: Any, type_: type) -> Json:
        """Return a value as JSON; it was checked when it was dispatched."""
        if type_ in self.pools and type(value) is type_:
            return self._pooled(value)
        return self._converter.unstructure(value, unstructure_as=type_)


@frozen(eq=False)
class Change:
    """The contents of a frame: the change from one timeline to the one that continues it, and its rows.

    `externals` are the entries of `Timeline.externals` that were stored, `installed` the slices that readers do not
    know about. The values of `undeclared` slices are part of the frame. A frame that is part of a history has no
    states.
    """

    before: Timeline
    after: Timeline
    rows: Sequence[Row]
    externals: Mapping[int, Any]
    installed: tuple[SliceSpec, ...] = ()
    undeclared: frozenset[str] = frozenset()
    is_part: bool = False


class FrameWriter:
    """Writes the frames of one session."""

    def __init__(self) -> None:
        self._known = KnownDigests()
        self._events: dict[str, PlainFields | None] = {}
        self._writing: FrameWriting | None = None

    def plain(self, rows: Sequence[Row], name: str, after: int, counter: int) -> tuple[bytes, FrameBlobs | None] | None:
        """Return the frame of rows that follow record `after`, and its blobs; `None` if `frame` has to write it.

        This writes what nearly every call adds, in half the time that `frame` takes.
        """
        events, blobs = self._events, None
        fields: dict[str, str] = {}
        written: list[Json] = []
        for row in rows:
            at, cause, tag, values = row
            known = events.get(tag)
            if known is None:
                return None
            fields[tag], places = known
            changed: list[Json] | None = None
            for place in places:
                value = values[place]
                kind = type(value)
                if kind in BLOBS:
                    changed = changed or [*values]
                    if kind is bytes and len(value) <= INLINE:
                        changed[place] = inline(value)
                    else:
                        blobs = blobs or FrameBlobs(self._known)
                        changed[place] = blobs.plain(value)
            written.append(row if changed is None else (at, cause, tag, changed))
        frame: dict[str, Json] = {"id": name, "after": after, "counter": counter, "fields": fields, "rows": written}
        if blobs is not None and blobs.rows:
            frame["blobs"] = blobs.rows
        try:
            return orjson.dumps(frame, option=AS_IT_IS), blobs
        except (TypeError, ValueError):
            return None

    def frame(self, rules: Rules, change: Change, name: str, counter: int) -> tuple[bytes, FrameBlobs]:
        """Return the frame of a change, and its blobs. `name` identifies it among all frames."""
        try:
            return self._frame(rules, change, name, counter, fast=True)
        except (TypeError, ValueError):
            # For a value that JSON cannot represent, such as a large number: the slow path marks it.
            return self._frame(rules, change, name, counter, fast=False)

    def part(self, rules: Rules, rows: Sequence[Row], after: int, *, name: str) -> tuple[bytes, FrameBlobs]:
        """Return a frame of history: the records that follow record `after`, without the states in them."""
        before = Timeline(base=Mark(after, EMPTY_TABLE, EMPTY_TABLE, 0))
        return self.frame(rules, Change(before, before, tuple(rows), before.externals, is_part=True), name, 0)

    def _frame(self, rules: Rules, change: Change, name: str, counter: int, *, fast: bool) -> tuple[bytes, FrameBlobs]:
        blobs = FrameBlobs(self._known)
        before, after = change.before, change.after
        frame: dict[str, Json] = {"id": name, "after": before.seq, "counter": counter}
        writing: FrameWriting | None = None
        if change.is_part:
            frame["part"] = True
        if change.installed:
            writing = self._begin(rules, blobs, before)
            frame["installed"] = [
                {"tag": spec.tag, "kind": spec.kind, "initial": [writing.row(value, spec.cls) for value in spec.empty]}
                for spec in change.installed
            ]
        if change.rows:
            names: dict[str, str] = {}
            rows: list[Json] = []
            for at, cause, tag, values in change.rows:
                known = self._plain_fields(rules, tag) if fast else None
                if known is not None:
                    names[tag] = known[0]
                    event: Json = tuple(map(blobs.plain, values))
                else:
                    writing = writing or self._begin(rules, blobs, before)
                    if change.is_part:
                        writing.write_state = _no_state
                    event = self._event(rules, writing, before, tag, values)
                rows.append((at, cause, tag, event))
            frame["fields"], frame["rows"] = names, rows
        slices = self._undeclared(rules, change) if change.undeclared else []
        if slices:
            writing = writing or self._begin(rules, blobs, before)
            frame["slices"] = self._slices(rules, writing, blobs, before, after, slices)
        if after.snapshots is not before.snapshots:
            writing = writing or self._begin(rules, blobs, before)
            writing.write_state = self._state_writer(rules, writing, blobs, before, after)
            taken, gone = _snapshot_changes(before, after)
            frame["snapshots"] = [self._snapshot(writing, entry) for entry in taken]
            frame["dropped"] = gone
        if after.externals is not change.externals:
            writing = writing or self._begin(rules, blobs, before)
            frame["externals"] = [
                [seq, writing.any(kept)]
                for seq, kept in sorted(after.externals.items())
                if change.externals.get(seq) is not kept
            ]
        if writing is not None:
            for pool, pool_writer in writing.pools.values():
                if pool_writer.rows:
                    frame[pool.section] = pool_writer.rows
        if blobs.rows:
            frame["blobs"] = blobs.rows
        return orjson.dumps(frame, option=AS_IT_IS), blobs

    def _plain_fields(self, rules: Rules, tag: str) -> PlainFields | None:
        if tag not in self._events:
            self._events[tag] = plain_fields(rules.registry.shape(tag))
        return self._events[tag]

    def _begin(self, rules: Rules, blobs: FrameBlobs, before: Timeline) -> FrameWriting:
        writing = self._writing
        if writing is None or writing.registry.pools != rules.registry.pools:
            writing = self._writing = FrameWriting(rules.registry)
        writing.registry = rules.registry
        writing.begin(blobs)
        writing.write_state = self._state_writer(rules, writing, blobs, before, None)
        return writing

    def _state_writer(
        self, rules: Rules, writing: FrameWriting, blobs: FrameBlobs, before: Timeline, after: Timeline | None
    ) -> Callable[[Table], Json]:
        """Return the function that writes a state: the one before or after the frame, or its difference from it."""

        def write(state: Table) -> Json:
            if state is before.state:
                return {"state": "before"}
            if after is not None and state is after.state:
                return {"state": "after"}
            pools = pools_that_compare(rules.registry)
            return {"slices": write_table(rules, before.state, state, writing.row, pools, blobs)}

        return write

    def _event(self, rules: Rules, writing: FrameWriting, before: Timeline, tag: str, values: tuple[Any, ...]) -> Json:
        shape = rules.registry.shape(tag)
        if tag == tag_of(RolledBack):
            target, snapshot_id, state, _, foreign = values
            entry = before.snapshots.get(snapshot_id) if snapshot_id is not None else None
            if entry is not None and entry.state is state:
                known = {} if foreign is None else {"foreign": list(foreign)}
                return {"target": target, "snapshot_id": snapshot_id, "state": {"snapshot": snapshot_id}, **known}
        return writing.row(shape.build(*values), shape.cls)

    def _undeclared(self, rules: Rules, change: Change) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for tag in sorted(change.undeclared):
            kind = "logs" if rules.specs[tag].kind == "log" else "state"
            if getattr(change.before, kind).get(tag) is not getattr(change.after, kind).get(tag):
                found.append((tag, kind))
        return found

    def _slices(
        self,
        rules: Rules,
        writing: FrameWriting,
        blobs: FrameBlobs,
        before: Timeline,
        after: Timeline,
        slices: list[tuple[str, str]],
    ) -> Json:
        """Return the values of slices whose reducers a reader might not know."""
        old = EMPTY_TABLE
        new = EMPTY_TABLE
        for tag, kind in slices:
            was, now = getattr(before, kind).get(tag), getattr(after, kind).get(tag)
            old = old if was is None else old.set(tag, was)
            new = new if now is None else new.set(tag, now)
        return write_table(rules, old, new, writing.row, pools_that_compare(rules.registry), blobs)

    def _snapshot(self, writing: FrameWriting, entry: SnapshotEntry) -> Json:
        row = entry.row(writing.write_state(entry.state))
        if entry.externals:
            row["externals"] = writing.any(entry.externals)
        return row


def _no_state(state: Table) -> Json:
    return None


def _snapshot_changes(before: Timeline, after: Timeline) -> tuple[list[SnapshotEntry], list[str]]:
    """Return the snapshots added to a timeline, and the ids of those removed. O(changes)."""
    ids: Iterable[str] = {*before.snapshots, *after.snapshots}
    if before.touched is not None and after.touched is not None and after.touched.extends(before.touched):
        ids = set(after.touched.since(len(before.touched)))
    taken = [
        after.snapshots[key]
        for key in ids
        if after.snapshots.get(key) is not before.snapshots.get(key, None) and key in after.snapshots
    ]
    gone = sorted(key for key in ids if key in before.snapshots and key not in after.snapshots)
    return sorted(taken, key=attrgetter("age")), gone


def plain_fields(shape: Shape) -> PlainFields | None:
    """Return how events that hold only atoms, blobs and tuples of these are written; `None` for other types."""
    if shape.tag in (tag_of(RolledBack), tag_of(Merged)) or not attrs.has(shape.cls):
        return None
    try:
        hints = get_type_hints(shape.cls, include_extras=True)
    except NameError:
        return None
    fields = [field for field in attrs.fields(shape.cls) if field.init]
    kinds = [_members(hints.get(field.name)) for field in fields]
    if not all(PLAIN.issuperset(members) for members in kinds):
        return None
    places = tuple(place for place, members in enumerate(kinds) if not ATOMS.issuperset(members))
    return ",".join(map(stored_name, fields)), places


def _members(hint: Any) -> frozenset[Any]:
    """Return the types in a type hint, with `tuple` and those inside for a tuple."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) is tuple:
        inside = [item for item in get_args(hint) if item is not ...]
        return frozenset({tuple}).union(*map(_members, inside))
    return frozenset(get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,))
