"""Decoding frames: their blobs, their records, and the values in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import orjson
from attrs import field

from weakfs.class_decorators import define
from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.rope import Content, Rope, read_together
from weakfs.session.codec.columns import Columns
from weakfs.session.codec.decoding import Reading
from weakfs.session.codec.shared_values import Json, read_blobs
from weakfs.session.durable.checkpoints.copies import COPY, Copies, copied_digest
from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frames.writer import plain_fields
from weakfs.session.errors import SessionFileError, UnknownTag, UnknownType
from weakfs.session.files.expansion import unlimited
from weakfs.session.replay.reduction import Row
from weakfs.session.slices.registry import Shape
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.table import Table
from weakfs.storage.event_store import Frame as StoredFrame

Frame = dict[str, Json]

# The fields that every frame has.
REQUIRED = frozenset({"id", "after", "counter"})


@define(eq=False)
class FrameDecoder:
    """Decodes the frames of one stream, one after another. Building its converters takes milliseconds."""

    rules: Rules
    contents: StreamContents
    _reading: Reading | None = field(default=None, init=False)
    _pools: dict[type, tuple[Any, list[Any]]] = field(factory=dict, init=False)
    _columns: dict[str, Columns | None] = field(factory=dict, init=False)
    # The types of event that are known to be plain.
    _plain: set[str] = field(factory=set[str], init=False)

    def columns(self, tag: Json) -> Columns | None:
        """Return how plain events with a tag are read; `None` if they hold more than atoms and blobs."""
        if tag not in self._columns:
            self._columns[tag] = Columns.of(self.shape(tag))
        return self._columns[tag]

    def shape(self, tag: Json) -> Shape:
        """Return the shape of the type with a tag. Raise `UnknownTag` if it is not registered."""
        if type(tag) is not str:
            raise SessionFileError(f"expected a tag as text, not {tag!r:.60}", where="$.type")
        try:
            return self.rules.registry.shape(tag)
        except UnknownType as error:
            raise UnknownTag(str(error), where="$.type") from None

    def blobs(self, rows: list[Json]) -> list[Content]:
        """Return the blobs of frames; all their contents are read from storage together."""
        digests = {row["content"] for row in rows if type(row) is dict and row.keys() == {"content", "size"}}
        found = self.contents.read_many(digests) if digests else {}
        blobs: list[Content] = []
        for row in rows:
            if type(row) is str:
                blobs.append(row.encode())
            elif type(row) is dict and row.keys() == {"content", "size"}:
                blobs.append(found[row["content"]])
            else:
                blobs += read_blobs([row], self.contents)
        return blobs

    def unread_blobs(self, rows: Sequence[Json]) -> list[Content]:
        """Return blobs whose contents are read when they are needed."""
        blobs: list[Content] = []
        contents = self.contents
        for row in rows:
            if type(row) is str:
                blobs.append(row.encode())
            elif type(row) is dict and len(row) == 2 and "content" in row and "size" in row:
                digest, size = row["content"], row["size"]
                if type(digest) is not str or len(digest) != 64 or type(size) is not int:
                    raise SessionFileError("expected a digest and a size", where=f"$.blobs[{len(blobs)}]")
                try:
                    blobs.append(Rope.unread(Stored(bytes.fromhex(digest), size, contents)))
                except ValueError:
                    raise SessionFileError("expected a digest", where=f"$.blobs[{len(blobs)}]") from None
            elif type(row) is dict and row.keys() == {"copy", "size"}:
                key, size = row["copy"], row["size"]
                if type(key) is not str or COPY.fullmatch(key) is None or type(size) is not int:
                    raise SessionFileError("expected a key and a size", where=f"$.blobs[{len(blobs)}]")
                source = Copies(self.contents, key, size, self.rules.registry)
                blobs.append(Rope.unread(Stored(bytes.fromhex(copied_digest(key)), size, source)))
            else:
                blobs += read_blobs([row], self.contents)
        return blobs

    def reading(self, blobs: Sequence[Content], frame: Frame) -> Reading:
        """Return the decoder of one frame's values."""
        pools = self.rules.registry.pools
        if self._reading is None or {pool.cls for pool in pools} != self._pools.keys():
            self._pools = {pool.cls: (pool, []) for pool in pools}
            self._reading = Reading(self.rules.registry, blobs, self._pools)
        reading = self._reading
        reading.registry, reading.blobs = self.rules.registry, blobs
        for pool, values in self._pools.values():
            values[:] = pool.read(frame.get(pool.section, []), blobs, unlimited())
        return reading

    def plain_rows(self, frames: Sequence[Frame], where: str) -> list[Row]:
        """Return the records of frames with only plain records, one field at a time."""
        records, rows_of_blobs = _records_of(frames)
        return self._rows(records, self.blobs(rows_of_blobs), where, frozenset())

    def unread_rows(self, frames: Sequence[Frame], where: str) -> tuple[list[Row], bool]:
        """Return what `plain_rows` does, and whether contents among them are ropes that are not read yet.

        Contents are read now if more than a fold of the events may need them.
        """
        records, rows_of_blobs = _records_of(frames)
        blobs = self.unread_blobs(rows_of_blobs)
        by_tag: dict[str, list[Json]] = {}
        for record in records:
            by_tag.setdefault(record["type"], []).append(record["event"])
        unread = frozenset(tag for tag, events in by_tag.items() if self._is_only_folded(tag, events))
        numbers = [
            value["blob"]
            for tag, events in by_tag.items()
            if tag not in unread
            for event in events
            for value in event.values()
            if type(value) is dict and type(value.get("blob")) is int
        ]
        ropes = {number: blob for number in numbers if type(blob := blobs[number]) is Rope}
        read_together(ropes.values())
        rows = self._rows(records, blobs, where, unread)
        return rows, len(ropes) < sum(type(blob) is Rope for blob in blobs)

    def _is_only_folded(self, tag: str, events: Sequence[Json]) -> bool:
        """Return whether nothing but a fold takes some events of one type."""
        columns, plan = self.columns(tag), self.rules.plan(tag)
        if columns is None:
            return False
        parts = [plan.if_set, plan.if_none]
        if plan.place is not None:
            name = columns.columns[plan.place].name
            if all(event.get(name) is None for event in events):
                parts = [plan.if_none]
        return all(part.only is not None for part in parts)

    def _rows(
        self, records: Sequence[Json], blobs: Sequence[Content], where: str, unread: Collection[str]
    ) -> list[Row]:
        """Return records as rows; those of the types `unread` may hold ropes."""
        places: dict[str, list[int]] = {}
        for place, record in enumerate(records):
            places.setdefault(record["type"], []).append(place)
        values: list[Any] = [None] * len(records)
        for tag, positions in places.items():
            columns = self.columns(tag)
            read: list[tuple[Any, ...]] | None = None
            if columns is not None:
                events = [records[place]["event"] for place in positions]
                read = columns.read(events, blobs, None if tag in unread else unlimited())
            if read is None:
                reading = self.reading(blobs, {})
                shape = self.shape(tag)
                read = [shape.pack(reading.value(records[at]["event"], shape.cls, where)) for at in positions]
            for place, value in zip(positions, read, strict=True):
                values[place] = value
        times, causes = [record.get("at") for record in records], [record.get("cause") for record in records]
        if not ({int}.issuperset(map(type, times)) and {str, type(None)}.issuperset(map(type, causes))):
            return [head(record, where, value) for record, value in zip(records, values, strict=True)]
        return list(zip(times, causes, [record["type"] for record in records], values, strict=True))

    def is_plain(self, frame: Frame) -> bool:
        """Return whether all records of a frame are plain: of atoms, blobs, and tuples of these."""
        for record in frame.get("records", ()):
            tag = record["type"]
            if tag not in self._plain and not self._is_plain(tag):
                return False
        return True

    def _is_plain(self, tag: Json) -> bool:
        if self.columns(tag) is None and plain_fields(self.shape(tag)) is None:
            return False
        self._plain.add(tag)
        return True

    def rows(self, frames: Sequence[tuple[int, Frame]], state_of: Callable[[int], Table]) -> list[Row]:
        """Return the records of frames. The states in them are looked up by record number."""
        rows: list[Row] = []
        plain: list[Frame] = []
        for number, frame in frames:
            where = f"frame {number}"
            if self.is_plain(frame):
                plain.append(frame)
                continue
            rows += self.plain_rows(plain, where)
            plain = []
            reading = self.reading(self.blobs(frame.get("blobs", [])), frame)
            for seq, record in enumerate(frame["records"], frame["after"] + 1):
                shape = self.shape(record["type"])
                reading.table = partial(_state_at, state_of, seq)
                event = reading.value(record["event"], shape.cls, where)
                rows.append(head(record, where, shape.pack(event)))
        return rows + self.plain_rows(plain, "the records")


def _state_at(state_of: Callable[[int], Table], seq: int, row: Json) -> Table:
    return state_of(seq)


def head(record: Frame, where: str, values: tuple[Any, ...]) -> Row:
    """Return the row of a record whose fields were read."""
    at, cause, tag = record.get("at"), record.get("cause"), record["type"]
    if type(at) is not int or type(cause) not in (str, type(None)):
        raise SessionFileError("a record's time is not a number, or its cause is not text", where=where)
    return at, cause, tag, values


def parsed(number: int, data: bytes) -> Frame:
    """Parse a frame."""
    try:
        frame = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise SessionFileError(f"this is not JSON: {error}", where=f"frame {number}") from None
    if type(frame) is not dict or not REQUIRED.issubset(frame):
        raise SessionFileError("this is not a frame of a session", where=f"frame {number}")
    return frame


def name_of(frame: StoredFrame) -> str:
    """Return the name by which the writer of a frame recognizes it."""
    return str(parsed(frame.number, frame.data)["id"])


def _records_of(frames: Sequence[Frame]) -> tuple[list[Json], list[Json]]:
    """Return the records of plain frames, and their blobs, in one list each."""
    records: list[Json] = []
    blobs: list[Json] = []
    for frame in frames:
        own = frame.get("records", [])
        if "blobs" in frame:
            if blobs:
                _renumber(own, len(blobs))
            blobs += frame["blobs"]
        records += own
    return records, blobs


def _renumber(records: Iterable[Frame], shift: int) -> None:
    """Renumber the blobs of plain records for a list that begins with `shift` others."""
    for record in records:
        for value in record["event"].values():
            if type(value) is dict or type(value) is list:
                _renumber_value(value, shift)


def _renumber_value(value: Json, shift: int) -> None:
    if type(value) is dict:
        if "blob" in value:
            value["blob"] += shift
        return
    for item in value:
        if type(item) is dict or type(item) is list:
            _renumber_value(item, shift)
