"""Packing old stretches of history: the fields of their records as compressed columns.

A stretch of 512 records or values that is old enough becomes one object, which is unpacked when it is read; the newest
4,608 records stay unpacked. The records of one type form a block. Slice values that are the events themselves, such as
the calls of tools, refer to the same blocks. A million calls take 0.35 GB this way and 1.7 GB otherwise, and the
garbage collector has nothing to visit. Packing takes about 8 µs per call, nearly all of it in zlib.

Values that are large, or that a state also holds, are kept by reference next to the columns. So is everything that is
not plain, above all the whole states in the records of rollbacks and merges.

The newest 20,480 records of a session file stay in the columns in which they were read, until the session has added
enough records to make them old. Compressing calls takes a third as long as loading them, and most are never read.
"""

from __future__ import annotations

import marshal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain, compress, pairwise, starmap
from operator import is_, not_
from sys import getrefcount
from typing import Any, TypeVar

import attrs

from weakfs.class_decorators import define, frozen
from weakfs.session.codec.type_check import consists_of_fields
from weakfs.session.slices.log import Log, Stretch
from weakfs.session.slices.type_registry import Shape

# How many of the newest full stretches are left unpacked. By the time one is packed, most keyframes of its time are
# gone (`weakfs.session.history.keyframes`), so that the blobs that they held can be packed too.
NEAR = 9
# How many of the newest full stretches of a session file are left as columns: 12 MB for calls that write 200 bytes.
LOOSE = 40
# How many stretches, of those that are old enough, are packed at a time: one that holds calls takes 1 ms.
AT_ONCE = 2
# The stretches of a slice hold at least this many values, except for the last.
LEAST = 64
# Longer text and bytes are kept by reference: packing them would take more time than it is worth.
LARGEST = 1024

SIMPLE: frozenset[type] = frozenset({int, bool, float, type(None)})
TEXT: frozenset[type] = frozenset({str, type(None)})

Fields = tuple[Any, ...]
# Records of one type: their count, the compressed columns of their fields, and the values kept by reference, in order.
# A plain tuple, which the garbage collector stops tracking. A loose block has no compressed columns, but the columns
# themselves in place of the values.
Block = tuple[int, bytes | None, tuple[Any, ...]]
Item = TypeVar("Item")


def pack_rows(rows: Sequence[Fields]) -> Block:
    """Pack tuples of equal length."""
    return pack_columns(len(rows), zip(*rows, strict=True))


def pack_columns(count: int, columns: Iterable[Sequence[Any]], *, others: int = 1) -> Block:
    """Pack the columns of `count` tuples.

    `others` is how many references to a value exist, besides that of its column, if no state holds it.
    """
    by_reference: list[Any] = []
    packed = [_column(values, by_reference, others) for values in columns]
    # Imported here because a new process packs nothing for some time.
    import zlib

    return count, zlib.compress(marshal.dumps(packed), 1, -zlib.MAX_WBITS), tuple(by_reference)


def loose(count: int, columns: Iterable[Sequence[Any]]) -> Block:
    """Return the columns of `count` tuples as a block, without compressing them."""
    # The columns become tuples, because every garbage collection would visit the values in lists.
    return count, None, tuple(map(tuple, columns))


def is_loose(block: Block) -> bool:
    """Return whether a block is not compressed."""
    return block[1] is None


def compressed(block: Block) -> Block:
    """Return a loose block in compressed form."""
    return pack_columns(block[0], block[2], others=0)


def unpack_rows(block: Block) -> list[Fields]:
    """Return the tuples of a block."""
    return list(zip(*unpack_columns(block), strict=True)) or [()] * block[0]


def unpack_columns(block: Block) -> list[Sequence[Any]]:
    """Return the columns of a block, with the values kept by reference back in place."""
    _, data, by_reference = block
    if data is None:
        return list(by_reference)
    import zlib

    columns: list[Sequence[Any]] = marshal.loads(zlib.decompress(data, -zlib.MAX_WBITS))
    if by_reference:
        remaining = iter(by_reference)
        columns = [[next(remaining) if value is ... else value for value in values] for values in columns]
    return columns


def _column(values: Sequence[Any], by_reference: list[Any], others: int) -> Sequence[Any]:
    """Return a column in packed form: with an ellipsis in place of each value that is kept by reference."""
    kinds = set(map(type, values))
    if kinds <= SIMPLE or (kinds <= TEXT and max(map(len, filter(None, values)), default=0) <= LARGEST):
        return values
    baseline = _own_references() + others
    if kinds == {bytes}:
        # No Python call for each value: 500 appends would otherwise make 5 % more calls.
        small = [len(value) <= LARGEST and getrefcount(value) <= baseline for value in values]
    else:
        small = [_is_small(value) and (type(value) is not bytes or getrefcount(value) <= baseline) for value in values]
    by_reference += compress(values, map(not_, small))
    return [value if is_small else ... for value, is_small in zip(values, small, strict=True)]


def _is_small(value: Any, depth: int = 3) -> bool:
    kind = type(value)
    if kind in SIMPLE:
        return True
    if kind is str or kind is bytes:
        return len(value) <= LARGEST
    return kind is tuple and len(value) <= LARGEST and depth > 0 and all(_is_small(one, depth - 1) for one in value)


@cache
def _own_references() -> int:
    """Count the references to a value that only a column holds, as seen from `_column`."""
    for value in [bytes(2)]:
        return getrefcount(value)
    return 0


@frozen(eq=False)
class Recent:
    """A cache of what was unpacked last: reading a stretch item by item unpacks it once."""

    _last: list[tuple[Block, list[Any]]] = attrs.field(factory=list[tuple[Block, list[Any]]])

    def read(self, block: Block, unpack: Callable[[], list[Item]]) -> list[Item]:
        """Return the unpacked items of a block, from the cache if they are there."""
        for cached, items in self._last:
            if cached is block:
                return items
        items = unpack()
        # A single assignment of both: other threads read at the same time.
        self._last[:] = [(block, items)]
        return items


@define(eq=False)
class PackedRecords:
    """A stretch of records: the time, cause and type of each, and one block of fields per type.

    Only `compress` changes it, to blocks that hold the same: other threads may read at the same time.
    """

    heads: Block
    # In the order of the first record of each type.
    blocks: tuple[Block, ...]
    recent: Recent

    def __len__(self) -> int:
        return self.heads[0]

    def load(self) -> list[Any]:
        """Return the rows."""
        return self.recent.read(self.heads, self._unpack)

    @property
    def tags(self) -> Sequence[str]:
        """The type of each record."""
        tags: Sequence[str] = unpack_columns(self.heads)[2]
        return tags

    @property
    def is_loose(self) -> bool:
        """Whether the records are not compressed yet."""
        return is_loose(self.heads)

    def compress(self) -> dict[int, Block]:
        """Compress loose records. Return the new blocks of fields by the identity of the old ones, which may be gone.

        This happens in place, since a compacted log shares this object, but not its `Stretch`.
        """
        before = self.blocks
        self.heads, self.blocks = compressed(self.heads), tuple(map(compressed, before))
        return dict(zip(map(id, before), self.blocks, strict=True))

    def _unpack(self) -> list[Any]:
        ats, causes, tags = unpack_columns(self.heads)
        blocks = zip(dict.fromkeys(tags), self.blocks, strict=True)
        fields = {tag: iter(unpack_rows(block)) for tag, block in blocks}
        return list(zip(ats, causes, tags, map(next, map(fields.__getitem__, tags)), strict=True))


@define(eq=False)
class PackedValues:
    """A stretch of a slice's values, all of one type. Its block may be replaced by one that holds the same."""

    block: Block
    build: Callable[..., Any]
    recent: Recent

    def __len__(self) -> int:
        return self.block[0]

    def load(self) -> list[Any]:
        """Return the values."""
        return self.recent.read(self.block, self._unpack)

    def _unpack(self) -> list[Any]:
        return list(starmap(self.build, unpack_rows(self.block)))


@frozen(eq=False)
class FullStretches:
    """Full stretches that grew at the same time: of the records, and of the LOG slices by tag."""

    records: tuple[Stretch[Any], ...]
    values: Mapping[str, tuple[Stretch[Any], ...]]

    def ids(self) -> Iterator[int]:
        """Yield the identities of all these stretches."""
        yield from map(id, self.records)
        for stretches in self.values.values():
            yield from map(id, stretches)


@frozen(eq=False)
class Packing:
    """The full stretches of one timeline that are still to be packed, oldest first. An immutable value."""

    _waiting: tuple[FullStretches, ...] = ()
    # Caches for the records and for each slice.
    _recent: dict[str, Recent] = attrs.field(factory=dict[str, Recent])

    def advanced(self, rows: Log[Any], logs: Mapping[str, Log[Any]]) -> Packing:
        """Note which stretches have become full, and pack them if they are old enough.

        Packing does not change the value of any `Log`: other timelines can go on reading and appending.
        """
        for log in logs.values():
            log.start_stretch(LEAST)
        known = {number for full in self._waiting for number in full.ids()}
        records = _full(rows, known)
        if not records:
            return self
        values = {tag: own for tag, log in logs.items() if (own := _full(log, known))}
        waiting = (*self._waiting, FullStretches(records, values))
        count = min(max(len(waiting) - NEAR, 0), AT_ONCE)
        for old in waiting[:count]:
            self._pack(old)
        return attrs.evolve(self, waiting=waiting[count:])

    @classmethod
    def of_history(cls, rows: Log[Any], logs: Mapping[str, Log[Any]]) -> tuple[Packing, dict[str, Log[Any]]]:
        """Pack the unpacked parts of a history that was read as a whole; return the packing and the slices.

        The newest values of the slices are cut into stretches at the same places as the records, so that both
        share blocks. Loose blocks, which they share already, stay as they are until they are old enough.
        """
        stretches = _unpacked(rows)
        counts = [Counter(row[2] for row in stretch.read()) for stretch in stretches]
        cut: dict[str, Log[Any]] = {}
        older: list[FullStretches] = []
        aligned: list[dict[str, tuple[Stretch[Any], ...]]] = [{} for _ in stretches]
        for tag, values in logs.items():
            own = [count[tag] for count in counts]
            first = len(values) - sum(own)
            if first < 0 or first == len(values):
                older += [FullStretches((), {tag: (stretch,)}) for stretch in _unpacked(values)[:-1]]
                continue
            before = values.prefix(first)
            older += [FullStretches((), {tag: (stretch,)}) for stretch in _unpacked(before)]
            every = list(values.since(first))
            cut[tag] = before._with_stretches(every[start:end] for start, end in pairwise(accumulate(own, initial=0)))
            parts = deque(_oldest_first(cut[tag])[-sum(map(bool, own)) :])
            for place, count in enumerate(own):
                if count:
                    aligned[place][tag] = (parts.popleft(),)
        full = [FullStretches((stretch,), own) for stretch, own in zip(stretches, aligned, strict=True)]
        waiting, columns = (*older, *full[:-1]), _loose_stretches(rows, logs)
        packing = cls((*columns[-LOOSE:], *waiting[-NEAR:]))
        for old in (*columns[:-LOOSE], *waiting[:-NEAR]):
            packing._pack(old)
        return packing, cut

    def _pack(self, full: FullStretches) -> None:
        known: dict[str, list[tuple[list[Fields], Block]]] = {}
        # The blocks that replace loose ones, by the identity of these.
        replaced: dict[int, Block] = {}
        for stretch in full.records:
            items = stretch.items
            if isinstance(items, PackedRecords) and items.is_loose:
                replaced |= items.compress()
            if stretch.is_packed:
                continue
            rows = stretch.close()
            fields: dict[str, list[Fields]] = {}
            for row in rows:
                fields.setdefault(row[2], []).append(row[3])
            blocks = {tag: pack_rows(own) for tag, own in fields.items()}
            heads = pack_rows([row[:3] for row in rows])
            stretch.items = PackedRecords(heads, tuple(blocks.values()), self._recent_of(""))
            for tag, block in blocks.items():
                known.setdefault(tag, []).append((fields[tag], block))
        for tag, stretches in full.values.items():
            for stretch in stretches:
                items = stretch.items
                if isinstance(items, PackedValues) and is_loose(items.block):
                    items.block = replaced.get(id(items.block)) or compressed(items.block)
                if not stretch.is_packed:
                    values = _packed_values(tag, stretch.close(), known.get(tag, ()), self._recent_of(tag))
                    stretch.items = stretch.items if values is None else values

    def _recent_of(self, tag: str) -> Recent:
        return self._recent.setdefault(tag, Recent())


def _oldest_first(log: Log[Any]) -> list[Stretch[Any]]:
    return [stretch for stretch, _ in log._stretches()][::-1]


def _unpacked(log: Log[Any]) -> list[Stretch[Any]]:
    return [stretch for stretch in _oldest_first(log) if not stretch.is_packed]


def _loose_stretches(rows: Log[Any], logs: Mapping[str, Log[Any]]) -> list[FullStretches]:
    """Return the stretches of records whose blocks are loose, with the stretches of values that share these."""
    sharing: dict[int, dict[str, tuple[Stretch[Any], ...]]] = {}
    for tag, log in logs.items():
        for stretch in _oldest_first(log):
            if isinstance(stretch.items, PackedValues):
                sharing.setdefault(id(stretch.items.block), {})[tag] = (stretch,)
    found: list[FullStretches] = []
    for stretch in _oldest_first(rows):
        items = stretch.items
        if isinstance(items, PackedRecords) and items.is_loose:
            values = [sharing[id(block)] for block in items.blocks if id(block) in sharing]
            found.append(FullStretches((stretch,), {tag: own for one in values for tag, own in one.items()}))
    return found


def _full(log: Log[Any], known: set[int]) -> tuple[Stretch[Any], ...]:
    """Return the stretches of a log that are full and neither packed nor known, oldest first."""
    found: list[Stretch[Any]] = []
    newest = True
    for stretch, end in log._stretches():
        if stretch.is_packed or not stretch.limit or id(stretch) in known:
            break
        if not newest or end - stretch.start >= stretch.limit:
            found.append(stretch)
        newest = False
    return tuple(reversed(found))


def _packed_values(
    tag: str, values: list[Any], known: Iterable[tuple[list[Fields], Block]], recent: Recent
) -> PackedValues | None:
    """Pack a slice's values: as the block of their records if they are the same, else as a block of their own.

    Return `None` for values that cannot be rebuilt from their fields.
    """
    if not values:
        return None
    kind = type(values[0])
    if not consists_of_fields(kind) or any(type(value) is not kind for value in values):
        return None
    shape = Shape.of(kind, tag)
    rows = list(map(shape.pack, values))
    for fields, block in known:
        # Usually each value is the event of its record, which one pass in C can tell.
        is_same = len(fields) == len(rows) and all(map(is_, chain.from_iterable(rows), chain.from_iterable(fields)))
        if is_same or (len(fields) == len(rows) and all(map(are_same, rows, fields))):
            return PackedValues(block, shape.build, recent)
    return PackedValues(pack_rows(rows), shape.build, recent)


def are_same(one: Fields, other: Fields) -> bool:
    """Return whether two tuples of fields hold the same: identical objects, or equal text and numbers."""
    if all(map(is_, one, other)):
        return True
    kinds = [*map(type, one)]
    return float not in kinds and tuple not in kinds and kinds == [*map(type, other)] and one == other
