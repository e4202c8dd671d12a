"""The head of a session file: its format and version, and a checksum (SHA-256) of all that follows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import orjson

from weakfs.session.errors import SessionFileError, UnsupportedVersion
from weakfs.session.files.spool import IN_MEMORY, JsonObject

FORMAT = "weakfs-session"
# Version 2 states whether merged records were renumbered (`Merged.renumbered`). Version 3 stores slice values that are
# the events of records as record numbers. Version 4 stores records in stretches, a field at a time. All versions can be
# read; version 4 is written.
VERSION = 4
READABLE = (1, 2, 3, 4)

_HEAD = re.compile(rb'\{"format":"weakfs-session","version":[1234],"sha256":"([0-9a-f]{64})",')


def with_head(document: JsonObject) -> tuple[int, bytes, Iterable[bytes]]:
    """Return the size of the file for a document, the head that replaces its first brace, and the text after that.

    The text of a large document is generated twice: to compute its checksum, and to write it.
    """
    body, size = sha256(), 0
    kept: list[bytes] = []
    for piece in _without_brace(document):
        body.update(piece)
        size += len(piece)
        kept.append(piece)
        if size > IN_MEMORY:
            kept.clear()
    head = b'{"format":"%s","version":%d,"sha256":"%s",' % (FORMAT.encode(), VERSION, body.hexdigest().encode())
    return len(head) + size, head, kept if size <= IN_MEMORY else _without_brace(document)


def _without_brace(document: JsonObject) -> Iterator[bytes]:
    pieces = document.pieces()
    yield next(pieces)[1:]
    yield from pieces


def is_intact(data: bytes) -> bool:
    """Return whether the bytes are unchanged since they were written, according to the checksum in them."""
    head = _HEAD.match(data)
    return head is not None and sha256(memoryview(data)[head.end() :]).hexdigest() == head[1].decode()


def is_rewritten(document: dict[str, Any], checksum: str) -> bool:
    """Return whether it is the same document in another layout, for example from a JSON formatter."""
    rest = {key: value for key, value in document.items() if key not in ("format", "version", "sha256")}
    try:
        return sha256(orjson.dumps(rest)[1:]).hexdigest() == checksum
    except TypeError:
        return False


def checked(document: Any) -> dict[str, Any]:
    """Return the document if it is a session file in a version that can be read."""
    if type(document) is not dict or document.get("format") != FORMAT:
        raise SessionFileError(f"this is not a session file; its format must be {FORMAT!r}", where="$.format")
    version = document.get("version")
    if type(version) is not int or version not in READABLE:
        raise UnsupportedVersion(
            f"the file has format version {version!r:.60} and this library reads "
            f"{READABLE[0]} to {READABLE[-1]}; use the release of weakfs that wrote it, or a newer one",
            where="$.version",
        )
    return document
