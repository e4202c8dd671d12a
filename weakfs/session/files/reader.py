"""The reader of session files: a JSON document back to a timeline, checked as a whole before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat, starmap
from typing import Any

from weakfs.session.blobs.blob import ContentSource
from weakfs.session.blobs.rope import Content
from weakfs.session.codec.columns import MANY, Columns
from weakfs.session.codec.decoding import Reading
from weakfs.session.codec.shared_values import Json, read_blobs
from weakfs.session.errors import SessionError, SessionFileError, UnknownTag, UnknownType
from weakfs.session.files.content_references import TELLING
from weakfs.session.files.expansion import Expansion
from weakfs.session.files.sections import Section, parts_of
from weakfs.session.history.keyframes import Mark, PackedMark, packed_mark
from weakfs.session.history.log import SEGMENT, Log
from weakfs.session.history.past import Past
from weakfs.session.history.snapshot_table import SnapshotEntry, SnapshotTable
from weakfs.session.history.timeline import Timeline
from weakfs.session.replay.reduction import Row
from weakfs.session.slices.registry import Shape
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.table import EMPTY_TABLE, Table
from weakfs.session.slices.tags import tag_of

_MISSING = object()


class Fields:
    """The fields of one JSON object: each must be taken, with one of the types allowed for it."""

    def __init__(self, row: Json, where: str) -> None:
        if type(row) is not dict:
            raise SessionFileError(f"expected an object, not {type(row).__name__}", where=where)
        self._row: dict[str, Json] = dict(row)
        self._where = where

    def take(self, name: str, *types: type, default: Any = _MISSING) -> Any:
        """Return a field and count it as read."""
        value = self._row.pop(name, default)
        if value is _MISSING:
            raise SessionFileError(f"the field {name!r} is missing", where=self._where)
        if value is not default and type(value) not in types:
            names = " or ".join("null" if type_ is type(None) else type_.__name__ for type_ in types)
            raise SessionFileError(f"expected {names}, not {value!r:.60}", where=f"{self._where}.{name}")
        return value

    def done(self) -> None:
        """Raise `SessionFileError` if a field was not taken."""
        for name in self._row:
            raise SessionFileError(
                f"unknown field {name!r}; pass the registry of the session that was saved", where=self._where
            )


class LoadedDocument:
    """The contents of one file, ready to be taken over by a session."""

    def __init__(self, rules: Rules, fields: Fields, source: ContentSource, expansion: Expansion) -> None:
        self.rules = rules
        self._expansion = expansion
        self._blobs = self.blobs = blobs = self._read_blobs(fields.take("blobs", list, Section), source)
        pools = {
            pool.cls: (pool, pool.read(fields.take(pool.section, list, Section, default=[]), blobs, expansion))
            for pool in rules.registry.pools
        }
        self._reading = Reading(rules.registry, blobs, pools, expansion)
        # Slices of older files, by tag: the slice that replaces each, and the function that converts their values.
        self._succeeded = {
            tag_of(older): (tag_of(declaration.cls), value_of)
            for declaration in rules.registry.slices
            for older, value_of in declaration.succeeds.items()
        }
        self._successors: dict[int, Log[Any]] = {}
        for number, row in enumerate(fields.take("installed", list)):
            self._installed(row, f"$.installed[{number}]")
        self._dropped = fields.take("dropped", int)
        # The records that hold a state wait for the slices: the place, shape and event of each.
        self._waiting: list[tuple[int, Shape, Json]] = []
        self._tags: set[str] = set()
        self._rows = self._read_rows(fields.take("records", list, Section))
        # The events of LOG slices by tag, and then by the number of their record.
        self._events: dict[str, dict[int, tuple[Any, ...]]] = {}
        self._slices: list[tuple[str, str, Log[Any]]] = []
        for number, row in enumerate(fields.take("slices", list, Section)):
            self._slices.append(self._slice(row, f"$.slices[{number}]"))
        self._reading.table = self._nested_table
        for place, shape, event in self._waiting:
            value = self._reading.value(event, shape.cls, f"$.records[{place}].event")
            at, cause, tag, _ = self._rows[place]
            self._rows[place] = (at, cause, tag, shape.pack(value))
        self.line = self._line(fields)

    def _read_blobs(self, rows: Sequence[Json], source: ContentSource) -> list[Content]:
        return read_blobs(rows, source)

    def _line(self, fields: Fields) -> Timeline:
        dropped = self._dropped
        before = Mark(0, EMPTY_TABLE, EMPTY_TABLE, 0)
        base = fields.take("base", dict, type(None))
        if dropped < 0 or (base is None) != (dropped == 0):
            raise SessionFileError("the state before the first record is missing or superfluous", where="$.base")
        if base is not None:
            base_fields = Fields(base, "$.base")
            state = self._table(base_fields.take("state", list), "state", "$.base.state")
            logs = self._table(base_fields.take("logs", list), "log", "$.base.logs")
            before = Mark(dropped, state, logs, base_fields.take("block_end", int))
            base_fields.done()
        rows = Log(self._rows)
        self._rows, self._events = [], {}
        snapshots: dict[str, SnapshotEntry] = {}
        for number, row in enumerate(fields.take("snapshots", list)):
            entry = self._snapshot(row, f"$.snapshots[{number}]", dropped + len(rows))
            if entry.snapshot_id in snapshots:
                raise SessionFileError(
                    f"there are two snapshots {entry.snapshot_id!r}", where=f"$.snapshots[{number}].id"
                )
            snapshots[entry.snapshot_id] = entry
        line = Timeline(
            state=self._table(fields.take("state", list), "state", "$.state"),
            logs=self._table(fields.take("logs", list), "log", "$.logs"),
            rows=rows,
            base=before,
            snapshots=SnapshotTable.of(snapshots.values()),
            past=Past(slices=frozenset(self.rules.specs), tags=frozenset(self._tags)),
        )
        line.pack_loaded()
        line.forget_keyframes(self._keyframes(fields.take("checkpoints", list, default=[]), line))
        return line

    def _keyframes(self, rows: list[Json], line: Timeline) -> Log[PackedMark]:
        last: Mark | PackedMark = line.base
        marks: list[PackedMark] = []
        for number, row in enumerate(rows):
            where = f"$.checkpoints[{number}]"
            fields = Fields(row, where)
            seq = fields.take("seq", int)
            state = self._table(fields.take("state", list), "state", f"{where}.state")
            logs = self._table(fields.take("logs", list), "log", f"{where}.logs")
            fields.done()
            if not last.seq < seq <= line.seq:
                raise SessionFileError(f"record {seq} does not come after record {last.seq}", where=f"{where}.seq")
            last, _ = packed_mark(Mark(seq, state, logs, 0), last, None)
            marks.append(last)
        return Log(marks)

    def _read_rows(self, records: list[Json] | Section) -> list[Row]:
        rows: list[Row] = []
        for part in parts_of(records):
            plain = self._plain_rows(part, len(rows))
            rows += self._rows_one_by_one(part, len(rows)) if plain is None else plain
        return rows

    def _rows_one_by_one(self, records: list[Json], start: int) -> list[Row]:
        """Read records one by one, to name the first malformed one."""
        rows: list[Row] = []
        for place, record in enumerate(records, start):
            where = f"$.records[{place}]"
            fields = Fields(record, where)
            number = self._dropped + place + 1
            if fields.take("seq", int) != number:
                raise SessionFileError(f"expected record {number}", where=f"{where}.seq")
            at, tag = fields.take("at", int), fields.take("type", str)
            cause = fields.take("cause", str, default=None)
            shape = self._shape(tag, f"{where}.type")
            (values,) = self._read_events(shape, [fields.take("event", dict)], [place])
            fields.done()
            self._tags.add(tag)
            rows.append((at, cause, tag, values))
        return rows

    def _plain_rows(self, records: list[Json], start: int) -> list[Row] | None:
        """Read records a field at a time. Return `None` if any of them is malformed."""
        try:
            ats = [record["at"] for record in records]
            tags = [record["type"] for record in records]
            causes = [record.get("cause") for record in records]
            events = [record["event"] for record in records]
            numbers = [record["seq"] for record in records]
            fields = sum(map(len, records)) - 5 * len(records) + causes.count(None)
            first = self._dropped + start + 1
            if fields or numbers != list(range(first, first + len(records))):
                return None
            if set(map(type, ats)) - {int} or set(map(type, causes)) - {str, type(None)}:
                return None
        except (KeyError, TypeError, AttributeError):
            return None
        values: list[tuple[Any, ...]] = [()] * len(records)
        places: dict[str, list[int]] = {}
        if set(map(type, tags)) - {str}:
            return None
        for place, tag in enumerate(tags):
            places.setdefault(tag, []).append(place)
        self._tags.update(places)
        for tag, own in places.items():
            shape = self._shape(tag, f"$.records[{start + own[0]}].type")
            read = self._read_events(shape, [events[place] for place in own], [start + place for place in own])
            for place, value in zip(own, read, strict=True):
                values[place] = value
        return list(zip(ats, causes, tags, values, strict=True))

    def _shape(self, tag: Json, where: str) -> Shape:
        if type(tag) is not str:
            raise SessionFileError(f"expected a tag as text, not {tag!r:.60}", where=where)
        try:
            return self.rules.registry.shape(tag)
        except UnknownType as error:
            raise UnknownTag(str(error), where=where) from None

    def _installed(self, row: Json, where: str) -> None:
        fields = Fields(row, where)
        tag, kind = fields.take("tag", str), fields.take("kind", str)
        shape = self._install(tag, kind, where)
        for item in fields.take("initial", list, default=[]):
            value = self._reading.value(item, shape.cls, f"{where}.initial")
            self.rules = self.rules.install(shape.cls, initial=value)
        fields.done()

    def _install(self, tag: str, kind: str, where: str) -> Shape:
        shape = self._shape(tag, f"{where}.tag")
        if kind not in ("state", "log"):
            raise SessionFileError(f"expected 'state' or 'log', not {kind!r:.60}", where=f"{where}.kind")
        if tag in self._succeeded:
            return shape
        try:
            self.rules = self.rules.install(shape.cls, tag=tag, kind="log" if kind == "log" else "state")
        except (ValueError, TypeError, SessionError) as error:
            raise SessionFileError(str(error), where=f"{where}.kind") from None
        return shape

    def _slice(self, row: Json, where: str) -> tuple[str, str, Log[Any]]:
        fields = Fields(row, where)
        tag, kind = fields.take("tag", str), fields.take("kind", str)
        shape = self._install(tag, kind, where)
        items = self._items(shape, fields.take("items", list), f"{where}.items")
        items += self._recorded(shape, fields.take("records", list, default=[]), f"{where}.records")
        after = fields.take("after", int, default=None)
        fields.done()
        if after is None:
            return tag, kind, Log(items)
        if not 0 <= after < len(self._slices) or self._slices[after][:2] != (tag, kind):
            raise SessionFileError(f"slice {after} is not an earlier one of {tag!r}", where=f"{where}.after")
        before = self._slices[after][2]
        if items:
            # A branch copies a part of the log that it grows from, at eight bytes per item.
            self._expansion.take(8 * min(len(before), SEGMENT), "the values of a slice that begins like another", where)
        return tag, kind, before.extend(items)

    def _items(self, shape: Shape, items: list[Json], where: str) -> list[Any]:
        """Read the values of a slice: a field at a time if there are many and they are plain."""
        columns = Columns.of(shape) if len(items) >= MANY else None
        rows = columns.read(items, self._blobs, self._expansion) if columns is not None else None
        if rows is not None:
            return list(starmap(shape.build, rows))
        return [self._reading.value(item, shape.cls, f"{where}[{index}]") for index, item in enumerate(items)]

    def _recorded(self, shape: Shape, numbers: list[Json], where: str) -> list[Any]:
        """Return the events of records that are the values of a slice."""
        if not numbers:
            return []
        events = self._events_of(shape.tag)
        self._expansion.take(len(numbers) * (32 + 8 * len(shape.names)), "the values of a slice that are events", where)
        for place, number in enumerate(numbers):
            if type(number) is not int or number not in events:
                raise SessionFileError(
                    f"there is no record {number!r:.60} of type {shape.tag!r}", where=f"{where}[{place}]"
                )
        return [shape.build(*events[number]) for number in numbers]

    def _events_of(self, tag: str) -> dict[int, tuple[Any, ...]]:
        """Return the events of one type by the number of their record."""
        if tag not in self._events:
            rows = enumerate(self._rows, self._dropped + 1)
            self._events[tag] = {number: row[3] for number, row in rows if row[2] == tag}
        return self._events[tag]

    def _read_events(self, shape: Shape, events: list[Json], places: Sequence[int]) -> list[tuple[Any, ...]]:
        """Read the events of one type: a field at a time if they are plain, later if they hold a state."""
        if shape.tag in TELLING:
            self._waiting += [(place, shape, event) for place, event in zip(places, events, strict=True)]
            return [()] * len(events)
        columns = Columns.of(shape)
        read = columns.read(events, self._blobs, self._expansion) if columns is not None else None
        if read is None:
            wheres = [f"$.records[{place}].event" for place in places]
            built = map(self._reading.value, events, repeat(shape.cls), wheres)
            read = list(map(shape.pack, built))
        return read

    def _successor(self, number: int) -> tuple[str, Log[Any]]:
        """Return the tag and values of the slice that replaces one of an older file."""
        tag, _, values = self._slices[number]
        successor, value_of = self._succeeded[tag]
        if number not in self._successors:
            self._successors[number] = Log((value_of(values),)) if values else Log()
        return successor, self._successors[number]

    def _nested_table(self, row: Json) -> Table:
        """Read a table inside a record, where the path is added to the error later."""
        try:
            return self._table(row, "state", "")
        except SessionFileError as error:
            raise ValueError(f"{error.reason} at {error.where}") from None

    def _table(self, row: Json, kind: str, where: str) -> Table:
        table: dict[str, Log[Any]] = {}
        if type(row) is not list:
            raise SessionFileError("expected a list of slice numbers", where=where)
        for index, number in enumerate(row):
            if type(number) is not int or not 0 <= number < len(self._slices):
                raise SessionFileError(f"there is no slice {number!r:.60}", where=f"{where}[{index}]")
            tag, slice_kind, values = self._slices[number]
            if tag in self._succeeded:
                tag, values = self._successor(number)
            if slice_kind != kind or tag in table:
                raise SessionFileError(f"slice {number} of {tag!r} does not belong here", where=f"{where}[{index}]")
            table[tag] = values
        return Table(table) if table else EMPTY_TABLE

    def _snapshot(self, row: Json, where: str, last: int) -> SnapshotEntry:
        fields = Fields(row, where)
        entry = SnapshotEntry(
            fields.take("id", str),
            fields.take("number", int),
            fields.take("seq", int),
            fields.take("at", int),
            fields.take("tag", str, type(None)),
            self._table(fields.take("state", list), "state", f"{where}.state"),
            self._externals(fields.take("externals", dict, default=None), f"{where}.externals"),
        )
        fields.done()
        if not 0 <= entry.seq <= last:
            raise SessionFileError(f"there is no record {entry.seq}", where=f"{where}.seq")
        return entry

    def _externals(self, row: Json, where: str) -> tuple[tuple[str, Any], ...]:
        if row is None:
            return ()
        try:
            externals = self._reading.any(row)
            return tuple((_name(name), handle) for name, handle in externals)
        except SessionFileError:
            raise
        except Exception as error:
            raise SessionFileError(f"this is not a list of filesystems and snapshots: {error}", where=where) from None


def _name(name: object) -> str:
    if type(name) is not str:
        raise ValueError("expected a filesystem's name as text")
    return name
