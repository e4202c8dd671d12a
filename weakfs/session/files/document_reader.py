"""The reader of session files: a JSON document back to a timeline, checked as a whole before it is used.

The checksum has been verified before, in `session_file`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import starmap
from typing import Any

from weakfs.session.blobs.blob import ContentSource
from weakfs.session.blobs.rope import Content
from weakfs.session.codec.blob_table import Json, read_blobs
from weakfs.session.codec.columns import MANY, Columns
from weakfs.session.codec.decoder import Reading
from weakfs.session.codec.expansion_limit import Expansion
from weakfs.session.errors import SessionError, SessionFileError
from weakfs.session.files.document_sections import Section
from weakfs.session.files.fields import Fields, shape_of
from weakfs.session.files.record_reader import RecordReader
from weakfs.session.history.keyframes import Mark, PackedMark, packed_mark
from weakfs.session.history.loaded_past import Past
from weakfs.session.history.snapshot_table import SnapshotEntry, SnapshotTable
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import SEGMENT, Log
from weakfs.session.slices.packed_state import complete
from weakfs.session.slices.table import EMPTY_TABLE, Table
from weakfs.session.slices.tags import tag_of
from weakfs.session.slices.type_registry import Shape


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
        self._records = RecordReader(self._reading, partial(shape_of, self.rules.registry), expansion, self._dropped)
        self._records.read(fields.take("records", list, Section))
        self._slices: list[tuple[str, str, Log[Any]]] = []
        for number, row in enumerate(fields.take("slices", list, Section)):
            self._slices.append(self._slice(row, f"$.slices[{number}]"))
        self._reading.table = self._nested_table
        self.line = self._line(fields)

    def close(self) -> None:
        """Drop what only reading needed, and what refers back to this document: no value can be read afterwards."""
        self._reading.close()
        del self._records

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
        rows = self._records.log()
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
            past=Past(
                loaded=dropped + len(rows), slices=frozenset(self.rules.specs), tags=frozenset(self._records.tags)
            ),
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
            last, _ = complete(packed_mark(Mark(seq, state, logs, 0), last, None))
            marks.append(last)
        return Log(marks)

    def _installed(self, row: Json, where: str) -> None:
        fields = Fields(row, where)
        tag, kind = fields.take("tag", str), fields.take("kind", str)
        shape = self._install(tag, kind, where)
        for item in fields.take("initial", list, default=[]):
            value = self._reading.value(item, shape.cls, f"{where}.initial")
            self.rules = self.rules.install(shape.cls, initial=value)
        fields.done()

    def _install(self, tag: str, kind: str, where: str) -> Shape:
        shape = shape_of(self.rules.registry, tag, f"{where}.tag")
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
        numbers = fields.take("records", list, default=[])
        after = fields.take("after", int, default=None)
        fields.done()
        self._expansion.take(len(numbers) * (32 + 8 * len(shape.names)), "the values of a slice that are events", where)
        events = self._records.events(shape, numbers, f"{where}.records")
        if after is None:
            return tag, kind, Log(items)._with_stretches(events)
        if not 0 <= after < len(self._slices) or self._slices[after][:2] != (tag, kind):
            raise SessionFileError(f"slice {after} is not an earlier one of {tag!r}", where=f"{where}.after")
        before = self._slices[after][2]
        if items:
            # A branch copies a part of the log that it grows from, at eight bytes per item.
            self._expansion.take(8 * min(len(before), SEGMENT), "the values of a slice that begins like another", where)
        return tag, kind, before.extend(items)._with_stretches(events)

    def _items(self, shape: Shape, items: list[Json], where: str) -> list[Any]:
        """Read the values of a slice: a field at a time if there are many and they are plain."""
        columns = Columns.of(shape) if len(items) >= MANY else None
        rows = columns.read(items, self._blobs, self._expansion) if columns is not None else None
        if rows is not None:
            return list(starmap(shape.build, rows))
        return [self._reading.value(item, shape.cls, f"{where}[{index}]") for index, item in enumerate(items)]

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
