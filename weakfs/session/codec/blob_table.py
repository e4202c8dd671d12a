"""Values that a session file stores once and refers to by number: blobs, and the pools that registries add."""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, cast

from weakfs.session.blobs.blob import ContentSource, Held, Stored, content_found
from weakfs.session.blobs.rope import Content, Rope, joined, start_and_tail
from weakfs.session.codec.expansion_limit import Expansion
from weakfs.session.errors import MissingBlob, SessionError, SessionFileError

Json = Any

NO_CONTENT = "there is no blob"

# Appended blobs of at least this size are written as a parent and a tail.
MIN_PARENT = 64
# A larger blob that is stored elsewhere is not embedded: a process that saves or loads the file holds all of it in
# memory.
MOST_EMBEDDED = 1 << 28

HEXADECIMAL = frozenset("0123456789abcdef")


class Blobs:
    """The blobs of a file being written, each stored once.

    A blob is looked up first as the same object, then as a parent with a tail, then as equal bytes. So a file that was
    appended to between snapshots is written piece by piece, without joining the pieces. A blob stored elsewhere is
    written as its digest and not read here; with `embed` it is read, and its bytes are written before the digest.
    """

    def __init__(self, *, embed: bool = False, others: Sequence[ContentSource] = ()) -> None:
        self.rows: list[Json] = []
        # The value behind each row. Keeping it alive also keeps its id from being reused.
        self.contents: list[Content] = []
        # The blobs stored elsewhere, by digest, each with every source that has it.
        self.stored: dict[bytes, dict[int, Stored]] = {}
        # The digests of blobs to embed that no source has any more.
        self.lost: set[bytes] = set()
        self._embed = embed
        self._others = others
        self._by_identity: dict[int, int] = {}
        self._held: list[Content] = []
        self._by_tail: dict[tuple[int, bytes], int] = {}
        self._appended: dict[int, list[int]] = {}
        self._by_content: dict[Any, int] = {}
        self._lengths: set[int] = set()

    def number(self, content: Content, parent: Content | None = None) -> int:
        """Return the number of a blob; it is written as `parent` and a tail if it begins with `parent`."""
        number = self._by_identity.get(id(content))
        if number is not None:
            return number
        if type(content) is Stored:
            return self._same(self._stored(content), content)
        if len(content) in self._lengths:
            # Joining is worth its cost only if an equal blob from another object may be in the file already.
            number = self._by_content.get(_key(content))
            if number is not None:
                return self._same(number, content)
        start = content.start if type(content) is Rope else None
        after = self._written(parent) if parent is not None and len(parent) >= MIN_PARENT else None
        tail = tail_after(content, parent) if after is not None and parent is not None else None
        if tail is None and type(content) is Rope and start is not None:
            # The blob cannot be written in one piece: its first part is stored elsewhere.
            after, tail = self.number(start), content.tail()
        if after is not None and tail is not None:
            number = self._by_tail.get((after, tail))
            if number is None:
                number = self._add({"parent": after, "tail": shown(tail)}, content)
                self._by_tail[after, tail] = number
                if start is None:
                    self._appended.setdefault(len(content), []).append(number)
                else:
                    self._by_content.setdefault(_key(content), number)
                    self._lengths.add(len(content))
        else:
            data = joined(content)
            number = self._by_content.get(data)
            if number is None:
                number = self._find_appended(data) if self._appended else None
            if number is None:
                number = self._by_content[data] = self._add(shown(data), content)
                self._lengths.add(len(data))
        return self._same(number, content)

    def _written(self, content: Content) -> int | None:
        """Return the number of a blob that was written already, as this object or as an equal one."""
        number = self._by_identity.get(id(content))
        if number is None and len(content) in self._lengths:
            number = self._by_content.get(_key(content))
        return number

    def _stored(self, content: Stored) -> int:
        number = self._by_content.get(content)
        if number is None:
            row: dict[str, Json] = {"stored": content.digest.hex(), "size": content.size}
            if self._embed and content.size > MOST_EMBEDDED:
                raise SessionError(
                    f"cannot put the contents {content.digest.hex()} into a session file: they have {content.size} "
                    f"bytes and {MOST_EMBEDDED} are allowed; save without embed, which stores them next to the file"
                )
            held = content_found(content.digest, (content,), self._others) if self._embed else None
            if held is not None:
                row["blob"] = self.number(held)
            elif self._embed:
                self.lost.add(content.digest)
            number = self._by_content[content] = self._add(row, content)
        self.stored.setdefault(content.digest, {}).setdefault(id(content.source), content)
        return number

    def _same(self, number: int, content: Content) -> int:
        if self.contents[number] is not content:
            self._held.append(content)
        self._by_identity[id(content)] = number
        return number

    def are_equal(self, one: Content, other: Content) -> bool:
        """Return whether two blobs are equal, as far as can be told without reading what is stored elsewhere."""
        if one is other:
            return True
        if len(one) != len(other):
            return False
        mine, theirs = self._by_identity.get(id(one)), self._by_identity.get(id(other))
        if mine is not None and mine == theirs:
            return True
        return bool(_key(one) == _key(other))

    def number_all(self, contents: Sequence[Content]) -> list[int]:
        """Return the numbers of many blobs, as `number` would for each; blobs that are all new are added at once."""
        numbers = list(map(self._by_identity.get, map(id, contents)))
        if None not in numbers:
            return cast("list[int]", numbers)
        start = len(self.rows)
        new = list(range(start, start + len(contents)))
        if self._appended or {*map(type, contents)} != {bytes}:
            return [self.number(content) for content in contents]
        known = self._by_content
        numbers = list(map(known.setdefault, contents, new))
        if numbers != new:
            for content in contents:
                if known.get(content, -1) >= start:
                    del known[content]
            return [self.number(content) for content in contents]
        self.rows += all_shown(cast("Sequence[bytes]", contents))
        self.contents += contents
        self._by_identity.update(zip(map(id, contents), new, strict=True))
        self._lengths.update(map(len, contents))
        return new

    def _find_appended(self, data: bytes) -> int | None:
        """Find a blob that was written as a parent and a tail: by its length first, joined only if that matches."""
        for known in self._appended.get(len(data), ()):
            if joined(self.contents[known]) == data:
                return known
        return None

    def _add(self, row: Json, content: Content) -> int:
        self.rows.append(row)
        self.contents.append(content)
        return len(self.rows) - 1


def _key(content: Content) -> Any:
    """Return a key that equal blobs share, without reading what is stored elsewhere."""
    start, tail = start_and_tail(content)
    return tail if start is None else (start, tail)


def tail_after(content: Content, parent: Content) -> bytes | None:
    """Return what `content` has after `parent`, or `None` if it does not begin with it. External blobs are not read."""
    if len(parent) >= len(content):
        return None
    if isinstance(content, Rope):
        tail = content.tail_after(parent)
        if tail is not None:
            return tail
    (before, start), (here, data) = start_and_tail(parent), start_and_tail(content)
    return data[len(start) :] if before == here and data.startswith(start) else None


def shown(data: bytes) -> Json:
    """Return text as text, other bytes as marked base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b2a_base64(data, newline=False).decode("ascii")}


def all_shown(contents: Sequence[bytes]) -> list[Json]:
    """Return many blobs as `shown` returns each. This takes half the time if all are text."""
    try:
        return [data.decode() for data in contents]
    except UnicodeDecodeError:
        return [shown(data) for data in contents]


def read_blobs(rows: Iterable[Json], source: ContentSource) -> list[Content]:
    """Return the blobs of a file being read. Appended ones stay in pieces until they are first read.

    Blobs stored elsewhere are read from `source` when they are needed.
    """
    blobs: list[Content] = []
    held = Held()
    for row in rows:
        if type(row) is str:
            blobs.append(row.encode())
        else:
            blobs.append(_read_row(row, blobs, source, held))
    return blobs


def _read_row(row: Json, before: list[Content], source: ContentSource, held: Held) -> Content:
    where = f"$.blobs[{len(before)}]"
    if isinstance(row, dict) and row.keys() == {"base64"} and isinstance(row["base64"], str):
        try:
            return a2b_base64(row["base64"], strict_mode=True)
        except (Base64Error, ValueError) as error:
            raise SessionFileError(f"this is not base64: {error}", where=f"{where}.base64") from None
    if isinstance(row, dict) and row.keys() == {"parent", "tail"}:
        parent, tail = row["parent"], row["tail"]
        if type(parent) is not int or not 0 <= parent < len(before):
            raise MissingBlob(f"the parent {parent!r} is not one of the blobs before it", where=f"{where}.parent")
        piece = tail.encode() if type(tail) is str else _read_row(tail, before, source, held)
        if not isinstance(piece, bytes):
            raise SessionFileError("a tail cannot have a parent of its own", where=f"{where}.tail")
        return Rope(before[parent], piece)
    if isinstance(row, dict) and {"stored", "size"} <= row.keys() <= {"stored", "size", "blob"}:
        return _read_stored(row, before, source, held, where)
    raise SessionFileError("expected text, base64, a parent and a tail, or a digest and a size", where=where)


def _read_stored(row: dict[str, Json], before: list[Content], source: ContentSource, held: Held, where: str) -> Stored:
    digest, size = row["stored"], row["size"]
    if type(digest) is not str or len(digest) != 64 or not HEXADECIMAL.issuperset(digest):
        raise SessionFileError(f"expected 64 hexadecimal digits, not {digest!r:.60}", where=f"{where}.stored")
    if type(size) is not int or size < 0:
        raise SessionFileError(f"expected a number of bytes, not {size!r:.60}", where=f"{where}.size")
    if "blob" not in row:
        return Stored(bytes.fromhex(digest), size, source)
    content = blob_at(before, row["blob"], f"{where}.blob")
    if not isinstance(content, bytes | Rope) or len(content) != size:
        raise SessionFileError("the embedded content does not match its digest", where=f"{where}.blob")
    return held.hold(bytes.fromhex(digest), content)


def blob_at(blobs: Sequence[Content], number: Json, where: str) -> Content:
    """Return the blob with the given number. Raises `MissingBlob` if there is none."""
    if type(number) is not int or not 0 <= number < len(blobs):
        raise MissingBlob(f"{NO_CONTENT} {number!r:.60}; the file holds {len(blobs)}", where=where)
    return blobs[number]


def whole_content(content: Content, number: int, expansion: Expansion) -> bytes | Stored:
    """Return a blob in one piece, as a record holds it; a blob stored elsewhere is returned unchanged."""
    if not isinstance(content, Rope):
        return content
    if not content.is_joined:
        expansion.take(len(content), "a blob stored as an earlier one and a tail", f"$.blobs[{number}]")
    return content.join()


class PoolWriter(Protocol):
    """Numbers the values of one type and collects their rows; `values` holds the value behind each row."""

    rows: list[Json]
    values: list[Any]

    def number(self, value: Any) -> int: ...


class Pool(Protocol):
    """How values of one type are stored once, in a section of their own."""

    cls: type
    section: str
    key: str

    def writer(self, blobs: Blobs) -> PoolWriter: ...

    def read(self, rows: Json, blobs: Sequence[Content], expansion: Expansion) -> Sequence[Any]:
        """Read a section of the file. Copies beyond what the rows hold are charged to `expansion`."""
        ...
