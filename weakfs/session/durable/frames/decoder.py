"""Decoding frames: their blobs, their records, and the values in them.

A plain event is a list of values; see `weakfs.session.durable.frames.plain_events`. Any other is an object, as in a
session file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import orjson
from attrs import field

from weakfs.class_decorators import define
from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.rope import Content, Rope
from weakfs.session.codec.blob_table import Json, read_blobs
from weakfs.session.codec.columns import Columns
from weakfs.session.codec.decoder import Reading
from weakfs.session.codec.expansion_limit import FACTOR, Expansion, unlimited
from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frames.content_copies import COPY, ContentFromFrames, Copies, copied_digest
from weakfs.session.durable.frames.plain_events import Contents, as_lists, as_object, content_key, events_of
from weakfs.session.durable.frames.writer import plain_fields
from weakfs.session.errors import SessionFileError
from weakfs.session.files.fields import shape_of
from weakfs.session.history.reduction import Row
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.table import Table
from weakfs.session.slices.type_registry import Shape
from weakfs.storage.event_store import Frame as StoredFrame

Frame = dict[str, Json]

# The fields that every frame has.
REQUIRED = frozenset({"id", "after", "counter"})
# The number of values in a row.
FOUR = frozenset({4})


@define(eq=False)
class FrameDecoder:
    """Decodes the frames of one stream, one after another. Building its converters takes milliseconds."""

    rules: Rules
    contents: StreamContents
    content_from_frames: ContentFromFrames
    # How many times its size a checkpoint may take in memory; see `weakfs.session.codec.expansion_limit`.
    max_expansion: float | None = FACTOR
    _reading: Reading | None = field(default=None, init=False)
    _pools: dict[type, tuple[Any, list[Any]]] = field(factory=dict, init=False)
    # The event types that are known to be plain, and the decoder for events that cannot be read together.
    _plain: set[str] = field(factory=set[str], init=False)
    _plain_reading: Reading | None = field(default=None, init=False)

    def shape(self, tag: Json) -> Shape:
        """Return the shape of the type with a tag. Raises `UnknownTag` if it is not registered."""
        return shape_of(self.rules.registry, tag, "$.type")

    def expansion(self, size: int) -> Expansion:
        """Return the expansion budget of a checkpoint, or of a document that it refers to."""
        return Expansion(size, self.max_expansion, "checkpoint")

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
                source = Copies(self.contents, key, size, self.rules.registry, self.content_from_frames)
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

    def contents_in(self, frames: Iterable[Frame], *, may_be_unread: bool = False) -> Contents:
        """Return the contents that frames list. They are read now unless they may stay unread."""
        listed = {key: row for frame in frames for row in frame.get("blobs", ()) if (key := content_key(row))}
        read = self.unread_blobs if may_be_unread else self.blobs
        return dict(zip(listed, read([*listed.values()]), strict=True)) if listed else {}

    def is_plain(self, frame: Frame) -> bool:
        """Return whether all events of a frame are plain. Those that an earlier version wrote become lists."""
        are_lists = True
        for row in frame.get("rows", ()):
            tag = row[2]
            if tag not in self._plain and not self._is_plain(tag):
                return False
            are_lists = are_lists and type(row[3]) is list
        if not are_lists:
            found = as_lists(frame["rows"], frame.get("blobs", ()))
            if found is None:
                return False
            frame["fields"], frame["rows"] = found
        return True

    def _is_plain(self, tag: Json) -> bool:
        if plain_fields(self.shape(tag)) is None:
            return False
        self._plain.add(tag)
        return True

    def plain_rows(self, frames: Sequence[Frame], where: str, *, may_be_unread: bool = False) -> tuple[list[Row], bool]:
        """Return the records of frames with only plain events, and whether there are ropes in them.

        With `may_be_unread`, contents that are needed only when the events are folded are not read now, but returned as
        ropes.
        """
        fields: dict[str, str] = {}
        last: dict[str, str] = fields
        for place, frame in enumerate(frames):
            own = frame.get("fields", fields)
            if own == last:
                # By far the most frequent case.
                continue
            last = own
            if not own.items() <= fields.items():
                if any(fields.get(tag, names) != names for tag, names in own.items()):
                    # The class of an event has changed in the meantime.
                    first, has_ropes = self.plain_rows(frames[:place], where, may_be_unread=may_be_unread)
                    rest, also = self.plain_rows(frames[place:], where, may_be_unread=may_be_unread)
                    return first + rest, has_ropes or also
                fields.update(own)
        rows: list[Json] = list(chain.from_iterable(frame.get("rows", ()) for frame in frames))
        if not rows:
            return [], False
        contents = self.contents_in(frames, may_be_unread=may_be_unread)
        times, causes, tags, events = zip(*rows, strict=True)
        by_tag: dict[str, Iterator[tuple[Any, ...]]] = {}
        has_ropes = False
        for tag in set(tags):
            own = (
                events
                if len(fields) == 1
                else [event for event, other in zip(events, tags, strict=True) if other == tag]
            )
            if tag not in fields:
                raise SessionFileError(f"the names of the fields of {tag!r:.60} are missing", where=where)
            keep = may_be_unread and self._is_only_folded(tag, fields[tag], own)
            has_ropes = has_ropes or (keep and bool(contents))
            by_tag[tag] = iter(self._events(tag, fields[tag], own, contents, where, keep_ropes=keep))
        if not ({int}.issuperset(map(type, times)) and {str, type(None)}.issuperset(map(type, causes))):
            raise _bad_head(where)
        values = [next(by_tag[tag]) for tag in tags]
        return list(zip(times, causes, tags, values, strict=True)), has_ropes

    def _events(
        self, tag: str, fields: str, events: Sequence[Json], contents: Contents, where: str, *, keep_ropes: bool = False
    ) -> Sequence[tuple[Any, ...]]:
        """Return the values of plain events of one type, whose fields have these names."""
        columns, names = Columns.of(self.shape(tag)), fields.split(",") if fields else []
        if columns is not None:
            found = events_of(columns, names, events, contents, keep_ropes=keep_ropes)
            if found is not None:
                return found
        reading = self._plain_reading
        if reading is None or reading.registry is not self.rules.registry:
            reading = self._plain_reading = Reading(self.rules.registry, [], {})
        shape = self.shape(tag)
        read: list[tuple[Any, ...]] = []
        for event in events:
            if type(event) is not list or len(event) != len(names):
                raise SessionFileError(f"expected {len(names)} values of {tag!r:.60}", where=where)
            value, reading.blobs = as_object(names, event, contents)
            read.append(shape.pack(reading.value(value, shape.cls, where)))
        return read

    def _is_only_folded(self, tag: str, fields: str, events: Sequence[Json]) -> bool:
        """Return whether these events of one type are needed only when the slice that they change is read."""
        columns, plan = Columns.of(self.shape(tag)), self.rules.plan(tag)
        if columns is None:
            return False
        parts = [plan.if_set, plan.if_none]
        if plan.place is not None:
            name, names = columns.columns[plan.place].name, fields.split(",")
            if name not in names or all(event[names.index(name)] is None for event in events):
                parts = [plan.if_none]
        return all(part.may_wait for part in parts)

    def row(self, frame: Frame, row: Json, reading: Reading, contents: Contents, where: str) -> Row:
        """Return one record of a frame whose events are not all plain; `reading` is the decoder of the frame."""
        at, cause, tag, event = row
        shape = self.shape(tag)
        if type(at) is not int or type(cause) not in (str, type(None)):
            raise _bad_head(where)
        if type(event) is list:
            (values,) = self._events(tag, frame.get("fields", {}).get(tag, ""), [event], contents, where)
        else:
            values = shape.pack(reading.value(event, shape.cls, where))
        return at, cause, tag, values

    def rows(self, frames: Sequence[tuple[int, Frame]], state_of: Callable[[int], Table]) -> list[Row]:
        """Return the records of frames. The states in them are looked up by record number."""
        rows: list[Row] = []
        plain: list[Frame] = []
        for number, frame in frames:
            where = f"frame {number}"
            if self.is_plain(frame):
                plain.append(frame)
                continue
            rows += self.plain_rows(plain, where)[0]
            plain = []
            reading, contents = self.reading(self.blobs(frame.get("blobs", [])), frame), self.contents_in([frame])
            for seq, row in enumerate(frame.get("rows", ()), frame["after"] + 1):
                reading.table = partial(_state_at, state_of, seq)
                rows.append(self.row(frame, row, reading, contents, where))
        return rows + self.plain_rows(plain, "the records")[0]


def _state_at(state_of: Callable[[int], Table], seq: int, row: Json) -> Table:
    return state_of(seq)


def _bad_head(where: str) -> SessionFileError:
    return SessionFileError("a record's time is not a number, or its cause is not text", where=where)


def parsed(number: int, data: bytes) -> Frame:
    """Parse a frame."""
    try:
        frame = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise SessionFileError(f"this is not JSON: {error}", where=f"frame {number}") from None
    if type(frame) is not dict or not frame.keys() >= REQUIRED:
        raise SessionFileError("this is not a frame of a session", where=f"frame {number}")
    try:
        if "records" in frame:
            # A frame of an earlier version.
            records = frame.pop("records")
            frame["rows"] = [[row.get("at"), row.get("cause"), row["type"], row["event"]] for row in records]
        is_right = type(frame["after"]) is type(frame["counter"]) is int and type(frame.get("blobs", [])) is list
        is_right = is_right and FOUR.issuperset(map(len, frame.get("rows", ())))
    except (AttributeError, KeyError, TypeError):
        is_right = False
    if not is_right:
        raise SessionFileError("its fields or records are malformed", where=f"frame {number}")
    return frame


def name_of(frame: StoredFrame) -> str:
    """Return the name by which the writer of a frame recognizes it."""
    return str(parsed(frame.number, frame.data)["id"])
