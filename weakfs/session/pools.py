"""Values that a session file holds once and refers to by number: contents, and what registries add."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Any, Protocol

from weakfs.session.errors import MissingBlob, SessionFileError
from weakfs.session.rope import Rope

Json = Any

NO_CONTENT = "there is no content"

# An appended content is written as its parent and the tail from this size on.
MIN_PARENT = 64


class Blobs:
    """The contents of a file being written: each once.

    A content is looked for as the same object, then as a parent with a tail, then as equal bytes. So a file that
    was appended to between snapshots is written piece by piece, and is not even joined for it.
    """

    def __init__(self) -> None:
        self.rows: list[Json] = []
        # What each row stands for; holding it also keeps its identity from being used again.
        self.contents: list[bytes | Rope] = []
        self._by_identity: dict[int, int] = {}
        self._held: list[bytes | Rope] = []
        self._by_tail: dict[tuple[int, bytes], int] = {}
        self._told_by_tail: dict[int, list[int]] = {}
        self._by_content: dict[bytes, int] = {}
        self._lengths: set[int] = set()

    def number(self, content: bytes | Rope, parent: bytes | Rope | None = None) -> int:
        """Give the number of a content; written as `parent` and a tail if it begins with that."""
        number = self._by_identity.get(id(content))
        if number is not None:
            return number
        if len(content) in self._lengths:
            # Perhaps it is there whole already, from somewhere else: only then is it worth joining.
            number = self._by_content.get(joined(content))
            if number is not None:
                return self._same(number, content)
        after = self._by_identity.get(id(parent)) if parent is not None and len(parent) >= MIN_PARENT else None
        tail = tail_behind(content, parent) if after is not None and parent is not None else None
        if after is not None and tail is not None:
            number = self._by_tail.get((after, tail))
            if number is None:
                number = self._add({"parent": after, "tail": _shown(tail)}, content)
                self._by_tail[after, tail] = number
                self._told_by_tail.setdefault(len(content), []).append(number)
        else:
            data = joined(content)
            number = self._by_content.get(data)
            if number is None:
                number = self._told_piece_by_piece(data) if self._told_by_tail else None
            if number is None:
                number = self._by_content[data] = self._add(_shown(data), content)
                self._lengths.add(len(data))
        return self._same(number, content)

    def _same(self, number: int, content: bytes | Rope) -> int:
        if self.contents[number] is not content:
            self._held.append(content)
        self._by_identity[id(content)] = number
        return number

    def number_all(self, contents: Sequence[bytes]) -> list[int]:
        """Give the numbers of many contents; the same as `number` of each, which 10,000 calls make twice as dear."""
        by_identity, by_content, rows, held = self._by_identity, self._by_content, self.rows, self.contents
        numbers: list[int] = []
        for content in contents:
            number = by_identity.get(id(content))
            if number is None:
                if self._told_by_tail or content in by_content:
                    number = self.number(content)
                else:
                    number = by_identity[id(content)] = by_content[content] = len(rows)
                    rows.append(_shown(content))
                    held.append(content)
                    self._lengths.add(len(content))
            numbers.append(number)
        return numbers

    def _told_piece_by_piece(self, data: bytes) -> int | None:
        """Find a content that was written as a parent and a tail: by its length, and joined only then."""
        for known in self._told_by_tail.get(len(data), ()):
            if joined(self.contents[known]) == data:
                return known
        return None

    def _add(self, row: Json, content: bytes | Rope) -> int:
        self.rows.append(row)
        self.contents.append(content)
        return len(self.rows) - 1


def tail_behind(content: bytes | Rope, parent: bytes | Rope) -> bytes | None:
    """Give what `content` has behind `parent`, or `None` if it does not begin with it."""
    if len(parent) >= len(content):
        return None
    if isinstance(content, Rope):
        tail = content.tail_behind(parent)
        if tail is not None:
            return tail
    start, data = joined(parent), joined(content)
    return data[len(start) :] if data.startswith(start) else None


def joined(content: bytes | Rope) -> bytes:
    """Give a content in one piece."""
    return content.join() if isinstance(content, Rope) else content


def _shown(data: bytes) -> Json:
    """Give text as text, other bytes as base64 and marked."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


def read_blobs(rows: Json) -> list[bytes | Rope]:
    """Give the contents of a file being read. Appended ones stay pieces until somebody reads them."""
    if not isinstance(rows, list):
        raise SessionFileError("a list of contents is expected", where="$.blobs")
    blobs: list[bytes | Rope] = []
    for row in rows:
        if type(row) is str:
            blobs.append(row.encode())
        else:
            blobs.append(_read_row(row, blobs))
    return blobs


def _read_row(row: Json, before: list[bytes | Rope]) -> bytes | Rope:
    where = f"$.blobs[{len(before)}]"
    if isinstance(row, dict) and row.keys() == {"base64"} and isinstance(row["base64"], str):
        try:
            return b64decode(row["base64"], validate=True)
        except (Base64Error, ValueError) as error:
            raise SessionFileError(f"this is not base64: {error}", where=f"{where}.base64") from None
    if isinstance(row, dict) and row.keys() == {"parent", "tail"}:
        parent, tail = row["parent"], row["tail"]
        if type(parent) is not int or not 0 <= parent < len(before):
            raise MissingBlob(f"the parent {parent!r} is not one of the contents before it", where=f"{where}.parent")
        piece = tail.encode() if type(tail) is str else _read_row(tail, before)
        if isinstance(piece, Rope):
            raise SessionFileError("a tail has no parent of its own", where=f"{where}.tail")
        return Rope(before[parent], piece)
    raise SessionFileError("text, base64 or a parent and a tail is expected", where=where)


def blob_at(blobs: Sequence[bytes | Rope], number: Json, where: str) -> bytes | Rope:
    """Give the content of a number; `MissingBlob` if there is none."""
    if type(number) is not int or not 0 <= number < len(blobs):
        raise MissingBlob(f"{NO_CONTENT} {number!r:.60}; the file holds {len(blobs)}", where=where)
    return blobs[number]


class PoolWriter(Protocol):
    """Numbers the values of one type and collects their rows; `values` holds what each row stands for."""

    rows: list[Json]
    values: list[Any]

    def number(self, value: Any) -> int: ...


class Pool(Protocol):
    """How values of one type are held once in a file, in a section of their own."""

    cls: type
    section: str
    key: str

    def writer(self, blobs: Blobs) -> PoolWriter: ...
    def read(self, rows: Json, blobs: Sequence[bytes | Rope]) -> Sequence[Any]: ...
