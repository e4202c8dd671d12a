"""Plain events: their fields are atoms, blobs and tuples of these, and a frame holds them as lists of values.

The events of many frames are read together, one field at a time. A blob is its text, or the digest of contents that
the frame lists.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any

from weakfs.session.blobs.rope import Content, Rope, read_together
from weakfs.session.codec.blob_table import Json
from weakfs.session.codec.columns import REQUIRED, Column, Columns, ListColumn

# The kind of contents, "content" for bytes of the session and "stored" for those of a snapshot store, and their digest.
# A frame may list both kinds with one digest.
ContentKey = tuple[str, str]
# The contents that frames list, by kind and hexadecimal digest.
Contents = Mapping[ContentKey, Content]


def events_of(
    columns: Columns, names: Sequence[str], events: Sequence[Json], contents: Contents, *, keep_ropes: bool
) -> list[tuple[Any, ...]] | None:
    """Return the fields of events of one type, given with the names of their values; `None` if one is malformed.

    With `keep_ropes`, contents that have not been read yet stay ropes.
    """
    try:
        given: dict[str, Sequence[Json]] = dict(zip(names, zip(*events, strict=True), strict=True))
        read: list[Sequence[Any]] = []
        for column in columns.columns:
            if column.name in given:
                read.append(_values(column, given.pop(column.name), contents, keep_ropes=keep_ropes))
            elif column.default is REQUIRED:
                return None
            else:
                read.append([column.default] * len(events))
        return None if given else list(zip(*read, strict=True))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return None


def _values(
    column: Column | ListColumn, values: Sequence[Json], contents: Contents, *, keep_ropes: bool
) -> Sequence[Any]:
    """Return the values of one field. Raises an exception of any type if one of them is malformed."""
    if isinstance(column, ListColumn):
        items = list(chain.from_iterable(values))
        if not {list}.issuperset({*map(type, values), *map(type, items)}):
            raise ValueError(column.name)
        places = zip(*items, strict=True) if items else iter(() for _ in column.parts)
        parts = zip(column.parts, places, strict=True)
        read = zip(*(_values(part, own, contents, keep_ropes=keep_ropes) for part, own in parts), strict=True)
        return [tuple(islice(read, len(value))) for value in values]
    if not (column.is_blob or column.is_mixed):
        column.check(values)
        return values
    values = [
        value
        if type(value) is not dict
        # By far the most frequent case.
        else value["text"].encode()
        if len(value) == 1 and "text" in value
        else content_of(value, contents)
        for value in values
    ]
    ropes = [value for value in values if type(value) is Rope]
    if ropes and not keep_ropes:
        read_together(ropes)
        values = [value.join() if type(value) is Rope else value for value in values]
    column.check([value for value in values if type(value) is not Rope] if ropes and keep_ropes else values)
    return values


def content_of(row: dict[str, Json], contents: Contents) -> Content:
    """Return the blob that JSON stands for. Raises an exception of any type if it is malformed or missing."""
    ((kind, value),) = row.items()
    if kind == "text":
        return bytes(value.encode())
    if kind == "base64":
        return b64decode(value, validate=True)
    if kind in ("content", "stored"):
        return contents[kind, value]
    raise ValueError(kind)


def content_key(row: Json) -> ContentKey | None:
    """Return the kind and the digest in a row of the contents that a frame lists; `None` for other rows."""
    if type(row) is not dict:
        return None
    kind = "content" if "content" in row else "stored"
    digest = row.get(kind)
    return (kind, digest) if type(digest) is str else None


def as_lists(rows: Sequence[Json], blobs: Sequence[Json]) -> tuple[dict[str, str], list[Json]] | None:
    """Return the fields and the rows of plain events that an earlier version wrote as objects, with numbered blobs.

    Returns `None` if they have no such form.
    """
    fields: dict[str, str] = {}
    lists: list[Json] = []
    for at, cause, tag, event in rows:
        names = ",".join(event) if type(event) is dict else None
        if names is None or fields.setdefault(tag, names) != names:
            return None
        lists.append([at, cause, tag, [_named(value, blobs) for value in event.values()]])
    return fields, lists


def _named(value: Json, blobs: Sequence[Json]) -> Json:
    """Return a value with the blobs in it instead of their numbers."""
    if type(value) is list:
        return [_named(item, blobs) for item in value]
    if type(value) is not dict:
        return value
    number = value.get("blob")
    row = blobs[number] if type(number) is int and 0 <= number < len(blobs) else {"missing": number}
    if type(row) is str:
        return {"text": row}
    key = content_key(row)
    return row if key is None else {key[0]: key[1]}


def as_object(names: Sequence[str], event: Sequence[Json], contents: Contents) -> tuple[dict[str, Json], list[Content]]:
    """Return an event as an object with numbered blobs, and the blobs, if `events_of` could not read it."""
    blobs: list[Content] = []

    def numbered(value: Json) -> Json:
        if type(value) is list:
            return [numbered(item) for item in value]
        if type(value) is not dict:
            return value
        try:
            blobs.append(content_of(value, contents))
        except (KeyError, TypeError, ValueError, AttributeError):
            return {"blob": value}
        return {"blob": len(blobs) - 1}

    return {name: numbered(value) for name, value in zip(names, event, strict=True)}, blobs
