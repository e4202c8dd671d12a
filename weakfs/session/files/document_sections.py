"""The sections of a large session file, parsed in parts.

`orjson` allocates twelve times the size of a document at once, and a document of 2 GB takes 10 GB as objects. So only
the small fields of a large file are parsed as a whole. The tables are parsed a few megabytes at a time, and each part
is turned into values before the next one is parsed.

The writer lays out the fields in a fixed order and without white space, so a search finds where a table and its rows
begin: no text in JSON contains an unescaped quotation mark. The checksum must have been verified before. A document
with any other layout, such as one where a user's value has the name of a table, is parsed as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from weakfs.class_decorators import frozen
from weakfs.session.codec.blob_table import Json
from weakfs.session.errors import SessionFileError

# Files from this size on are parsed in parts, of at least this size each.
LARGE = 1 << 24
PART = 1 << 22

_SLICES = re.compile(rb',"state":\[[\d,]*\],"logs":\[[\d,]*\],"slices":\[')
_RECORDS = re.compile(
    rb',"dropped":\d+,"base":(?:null|\{"state":\[[\d,]*\],"logs":\[[\d,]*\],"block_end":\d+\}),"records":\['
)
_CHECKPOINTS = re.compile(rb'\],"checkpoints":\[(?:\{"seq":\d+,"state":\[[\d,]*\],"logs":\[[\d,]*\]\},?)+')
# The end of one row and the beginning of the next.
_BETWEEN = {b"slices": rb'\},(?=\{"tag":)', b"records": rb'\},(?=\{"seq":)', b"blobs": rb'["}],(?=["{])'}
_BETWEEN_OTHERS = rb"\},(?=\{)"


@frozen(eq=False)
class Section:
    """The rows of one table: the text between the brackets of an array."""

    text: memoryview
    between: re.Pattern[bytes]
    name: str

    def __iter__(self) -> Iterator[Json]:
        for part in self.parts():
            yield from part

    def parts(self) -> Iterator[list[Json]]:
        """Yield the rows in lists. Raises `SessionFileError` if the text is not a sequence of JSON values."""
        start, size = 0, len(self.text)
        while start < size:
            end = start + PART
            while True:
                found = self.between.search(self.text, end) if end < size else None
                end = size if found is None else found.end() - 1
                try:
                    rows = orjson.loads(b"".join((b"[", self.text[start:end], b"]")))
                    break
                except orjson.JSONDecodeError as error:
                    # A value inside a row may look like the beginning of a row.
                    if found is None:
                        raise SessionFileError(f"this is not JSON: {error}", where=f"$.{self.name}") from None
                    end += 1
            yield rows
            start = end + 1


def parts_of(rows: list[Json] | Section) -> Iterator[list[Json]]:
    """Yield the rows of a table in lists; the rows of a small file are in one list."""
    if isinstance(rows, Section):
        yield from rows.parts()
    elif rows:
        yield rows


def sections_of(data: bytes, pools: Sequence[str]) -> dict[str, Any] | None:
    """Return the fields of a document, in which tables are sections; `pools` names those between records and blobs.

    Return `None` if the document does not have the layout of the writer.
    """
    slices = _SLICES.search(data)
    records = _RECORDS.search(data, slices.end()) if slices is not None else None
    if slices is None or records is None:
        return None
    # The offset of each table, and the offset of its closing bracket.
    places = {"slices": slices.end(), "records": records.end()}
    ends = {"slices": data.rfind(b'],"snapshots":[', slices.end(), records.start() + 1)}
    end = len(data) - 2
    for name in ("blobs", *reversed(pools)):
        marker = b'],"%b":[' % name.encode()
        place = data.rfind(marker, records.end(), end + 1)
        if place < 0:
            return None
        places[name], ends[name] = place + len(marker), end
        end = place
    checkpoints = data.rfind(b'],"checkpoints":[', records.end(), end)
    is_there = checkpoints >= 0 and _CHECKPOINTS.fullmatch(data, checkpoints, end) is not None
    ends["records"] = checkpoints if is_there else end
    if min(ends.values()) < 0:
        return None
    rest, start = [], 0
    for name in sorted(places, key=places.__getitem__):
        rest.append(data[start : places[name]])
        start = ends[name]
    try:
        document: dict[str, Any] = orjson.loads(b"".join((*rest, data[start:])))
    except orjson.JSONDecodeError:
        return None
    if any(document.get(name) != [] for name in places):
        return None
    text = memoryview(data)
    for name, place in places.items():
        between = re.compile(_BETWEEN.get(name.encode(), _BETWEEN_OTHERS))
        document[name] = Section(text[place : ends[name]], between, name)
    return document
