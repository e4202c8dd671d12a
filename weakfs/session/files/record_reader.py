"""The reader of the records in a session file: stretches of up to 512 records, a field at a time.

In files of versions 1 to 3, every record has its own row. Old records are packed as they are read. The newest stay
columns, except for those of a stretch that is not full, to which a session goes on appending.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby, repeat, starmap
from typing import Any

from attrs import field

from weakfs.class_decorators import define
from weakfs.session.codec.blob_table import Json
from weakfs.session.codec.columns import Columns
from weakfs.session.codec.decoder import Reading
from weakfs.session.codec.expansion_limit import Expansion
from weakfs.session.codec.type_check import consists_of_fields
from weakfs.session.errors import SessionFileError
from weakfs.session.files.document_sections import Section, parts_of
from weakfs.session.files.fields import Fields
from weakfs.session.history.packed_rows import (
    LOOSE,
    PackedRecords,
    PackedValues,
    Recent,
    pack_columns,
    unpack_rows,
)
from weakfs.session.history.record_columns import RecordColumns, numbers_of
from weakfs.session.history.reduction import Row
from weakfs.session.slices.events import STATE_PLACES
from weakfs.session.slices.log import STRETCH, Log, Packed
from weakfs.session.slices.type_registry import Shape

_FIELD = re.compile(r"\.([^.\[]+)")


@define(eq=False)
class Waiting:
    """Events that hold a state, and are therefore read after the slices: their place in a stretch, and their JSON."""

    stretch: RecordColumns
    shape: Shape
    events: list[Json]
    wheres: list[str]


@define(eq=False)
class RecordReader:
    """Reads records, and the values of slices that are their events."""

    reading: Reading
    shape_of: Callable[[Json, str], Shape]
    expansion: Expansion
    # The number of the newest record so far.
    seq: int
    tags: set[str] = field(factory=set[str], init=False)
    # The stretches. For each, the number of its first record, and the types that occur in it.
    _stretches: list[RecordColumns | PackedRecords] = field(factory=list, init=False)
    _firsts: list[int] = field(factory=list[int], init=False)
    _types: list[tuple[str, ...]] = field(factory=list[tuple[str, ...]], init=False)
    # The numbers of the records of one type in a stretch, for those that slices refer to.
    _numbers: dict[tuple[int, str], Sequence[int]] = field(factory=dict, init=False)
    _waiting: list[Waiting] = field(factory=list[Waiting], init=False)
    _recent: dict[str, Recent] = field(factory=dict[str, Recent], init=False)

    def read(self, records: list[Json] | Section) -> None:
        """Read the records of a file."""
        place = 0
        for part in parts_of(records):
            for is_stretch, rows in groupby(part, _is_stretch):
                if is_stretch:
                    for row in rows:
                        self._read_stretch(row, f"$.records[{place}]")
                        place += 1
                else:
                    place = self._read_single(list(rows), place)

    def log(self) -> Log[Row]:
        """Return the records. Call this after reading the slices to which their events may refer."""
        for one in self._waiting:
            one.stretch.fields[one.shape.tag] = self._one_by_one(one.shape, one.events, one.wheres)
        self._waiting = []
        recent = self._recent.setdefault("", Recent())
        return Log._of_stretches(
            stretch
            if isinstance(stretch, PackedRecords)
            else stretch.packed(recent)
            if self._is_full(place)
            else stretch.rows()
            for place, stretch in enumerate(self._stretches)
        )

    def events(self, shape: Shape, numbers: list[Json], where: str) -> list[list[Any] | Packed[Any]]:
        """Return the events of one type with these record numbers, in stretches; most old ones are packed.

        Raises `SessionFileError` for a number if there is no such record.
        """
        parts: list[list[Any] | Packed[Any]] = []
        recent = self._recent.setdefault(shape.tag, Recent())
        place = 0
        while place < len(numbers):
            number = numbers[place]
            index, own = self._numbers_near(shape.tag, number)
            start = bisect_left(own, number) if own else 0
            if start == len(own) or own[start] != number:
                raise SessionFileError(
                    f"there is no record {number!r:.60} of type {shape.tag!r}", where=f"{where}[{place}]"
                )
            count = len(own) - start
            if numbers[place : place + count] != list(own[start:]):
                count = 1
            place += count
            stretch = self._stretches[index]
            if isinstance(stretch, PackedRecords):
                block = stretch.blocks[self._types[index].index(shape.tag)]
            else:
                block = stretch.block(shape.tag)
            if count == len(own) and self._is_full(index) and consists_of_fields(shape.cls):
                parts.append(PackedValues(block, shape.build, recent))
                continue
            rows = recent.read(block, partial(unpack_rows, block))
            last = parts[-1] if parts else None
            if not isinstance(last, list) or len(last) + count > STRETCH:
                last = []
                parts.append(last)
            last += starmap(shape.build, rows[start : start + count])
        return parts

    def _numbers_near(self, tag: str, number: Json) -> tuple[int, Sequence[int]]:
        """Return the stretch that would hold a record, and the numbers of the records of one type there."""
        index = bisect_right(self._firsts, number) - 1 if type(number) is int and tag not in STATE_PLACES else -1
        if index < 0 or tag not in self._types[index]:
            return index, ()
        own = self._numbers.get((index, tag))
        if own is None:
            own = self._numbers[index, tag] = numbers_of(tag, self._stretches[index].tags, self._firsts[index])
        return index, own

    def _read_stretch(self, row: Json, where: str) -> None:
        fields = Fields(row, where)
        number, ats = fields.take("seq", int), fields.take("at", list)
        if number != self.seq + 1:
            raise SessionFileError(f"expected record {self.seq + 1}", where=f"{where}.seq")
        count = len(ats)
        if not count:
            raise SessionFileError("there are no records here", where=f"{where}.at")
        tags, causes = fields.take("type", list, str), fields.take("cause", list, default=())
        events = dict(fields.take("events", dict))
        fields.done()
        tags = [tags] * count if type(tags) is str else tags
        causes = [None] * count if causes == () else causes
        _check(ats, {int}, count, f"{where}.at")
        _check(tags, {str}, count, f"{where}.type")
        _check(causes, {str, type(None)}, count, f"{where}.cause")
        stretch = RecordColumns(ats, causes, tags, {})
        for tag in dict.fromkeys(tags):
            shape = self.shape_of(tag, f"{where}.type[{tags.index(tag)}]")
            if tag not in events:
                raise SessionFileError(f"the events of type {tag!r} are missing", where=f"{where}.events")
            own, place, size = events.pop(tag), f"{where}.events.{tag}", tags.count(tag)
            if type(own) is dict:
                stretch.fields[tag] = self._columns_of_events(shape, own, size, place)
            else:
                _check(own, {dict}, size, place)
                wheres = [f"{place}[{index}]" for index in range(size)]
                stretch.fields[tag] = self._read_events(stretch, shape, own, wheres)
        for tag in events:
            raise SessionFileError(f"there is no record of type {tag!r:.60} here", where=f"{where}.events")
        self._add(stretch)

    def _read_single(self, records: list[Json], place: int) -> int:
        """Read consecutive records that have a row each, and return the place of the row after them."""
        while records:
            size = STRETCH - self.seq % STRETCH
            ats: list[int] = []
            causes: list[str | None] = []
            tags: list[str] = []
            events: dict[str, tuple[list[Json], list[str]]] = {}
            for number, record in enumerate(records[:size], self.seq + 1):
                where = f"$.records[{place}]"
                fields = Fields(record, where)
                if fields.take("seq", int) != number:
                    raise SessionFileError(f"expected record {number}", where=f"{where}.seq")
                ats.append(fields.take("at", int))
                tags.append(fields.take("type", str))
                causes.append(fields.take("cause", str, default=None))
                self.shape_of(tags[-1], f"{where}.type")
                own, wheres = events.setdefault(tags[-1], ([], []))
                own.append(fields.take("event", dict))
                wheres.append(f"{where}.event")
                fields.done()
                place += 1
            stretch = RecordColumns(ats, causes, tags, {})
            for tag, (own, wheres) in events.items():
                stretch.fields[tag] = self._read_events(stretch, self.shape_of(tag, ""), own, wheres)
            self._add(stretch)
            records = records[size:]
        return place

    def _add(self, stretch: RecordColumns) -> None:
        """Add a stretch, and pack one that is old enough."""
        self._firsts.append(self.seq + 1)
        self._types.append(tuple(stretch.fields))
        self._stretches.append(stretch)
        self.seq += len(stretch.tags)
        self.tags.update(stretch.fields)
        place = len(self._stretches) - LOOSE - 2
        old = self._stretches[place] if place >= 0 else None
        if isinstance(old, RecordColumns) and STATE_PLACES.keys().isdisjoint(old.fields):
            self._stretches[place] = old.packed(self._recent.setdefault("", Recent()), pack_columns)

    def _is_full(self, place: int) -> bool:
        """Return whether no record will be added to a stretch."""
        return place < len(self._stretches) - 1 or not self.seq % STRETCH

    def _columns_of_events(self, shape: Shape, written: dict[str, Json], count: int, where: str) -> list[Sequence[Any]]:
        """Read the events of one type, a field at a time."""
        columns = Columns.of(shape)
        if columns is not None:
            read = columns.read_columns(written, count, self.reading.blobs, self.expansion)
            if read is not None:
                return read
        fields: list[list[Json]] = []
        for name, column in written.items():
            values: Json = column
            if type(column) is dict and column.keys() == {"blobs"} and type(column["blobs"]) is list:
                values = [{"blob": number} for number in column["blobs"]]
            _check(values, None, count, f"{where}.{name}")
            fields.append(values)
        rows = [dict(zip(written, values, strict=True)) for values in zip(*fields, strict=True)] or [{}] * count
        try:
            return self._one_by_one(shape, rows, [f"{where}[{index}]" for index in range(count)])
        except SessionFileError as error:
            # The place of a value is its field and then its index.
            index = error.where[len(where) :].partition("]")[0] + "]"
            found = _FIELD.match(error.where, len(where) + len(index))
            if error.where.startswith(f"{where}[") and found is not None:
                place = f"{where}.{found[1]}{index}{error.where[found.end() :]}"
                raise type(error)(error.reason, where=place) from None
            raise

    def _read_events(
        self, stretch: RecordColumns, shape: Shape, events: list[Json], wheres: list[str]
    ) -> list[Sequence[Any]]:
        """Read the events of one type, each of which is an object. Those that hold a state are read later."""
        if shape.tag in STATE_PLACES:
            self._waiting.append(Waiting(stretch, shape, events, wheres))
            return []
        columns = Columns.of(shape)
        read = columns.read(events, self.reading.blobs, self.expansion) if columns is not None else None
        return self._one_by_one(shape, events, wheres) if read is None else list(zip(*read, strict=True))

    def _one_by_one(self, shape: Shape, events: list[Json], wheres: list[str]) -> list[Sequence[Any]]:
        built = map(self.reading.value, events, repeat(shape.cls), wheres)
        return list(zip(*map(shape.pack, built), strict=True))


def _is_stretch(row: Json) -> bool:
    return type(row) is dict and "events" in row


def _check(values: Json, kinds: set[type] | None, count: int, where: str) -> None:
    """Raise `SessionFileError` unless this is a list of `count` values of some types."""
    if type(values) is not list or len(values) != count:
        raise SessionFileError(f"expected a list of {count} values", where=where)
    if kinds is None or kinds.issuperset(map(type, values)):
        return
    index = next(index for index, value in enumerate(values) if type(value) not in kinds)
    names = " or ".join(sorted("null" if kind is type(None) else kind.__name__ for kind in kinds))
    raise SessionFileError(f"expected {names}, not {values[index]!r:.60}", where=f"{where}[{index}]")
