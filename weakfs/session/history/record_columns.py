"""The records of a stretch by column: the form in which they are packed and in which a session file stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field

from weakfs.class_decorators import define
from weakfs.session.history.packed_rows import Block, PackedRecords, Recent, loose, unpack_columns
from weakfs.session.slices.log import STRETCH, Log

if TYPE_CHECKING:
    from weakfs.session.history.reduction import Row


@define(eq=False)
class RecordColumns:
    """Consecutive records, a field at a time."""

    ats: Sequence[int]
    causes: Sequence[str | None]
    tags: Sequence[str]
    # The columns of the fields of each type, in the order of the first record of each.
    fields: dict[str, list[Sequence[Any]]]
    # The blocks of fields that are packed.
    blocks: dict[str, Block] = field(factory=dict[str, Block])

    @classmethod
    def of(cls, rows: Sequence[Row]) -> RecordColumns:
        """Return the columns of rows."""
        ats, causes, tags, values = zip(*rows, strict=True)
        by_tag: dict[str, list[tuple[Any, ...]]] = {tag: [] for tag in dict.fromkeys(tags)}
        for tag, one in zip(tags, values, strict=True) if len(by_tag) > 1 else ():
            by_tag[tag].append(one)
        if len(by_tag) == 1:
            by_tag[tags[0]] = list(values)
        return cls(ats, causes, tags, {tag: list(zip(*own, strict=True)) for tag, own in by_tag.items()})

    @classmethod
    def unpacked(cls, packed: PackedRecords) -> RecordColumns:
        """Return the columns of packed records."""
        ats, causes, tags = unpack_columns(packed.heads)
        blocks = dict(zip(dict.fromkeys(tags), packed.blocks, strict=True))
        return cls(ats, causes, tags, {tag: unpack_columns(block) for tag, block in blocks.items()}, blocks)

    def rows(self) -> list[Row]:
        """Return the records as rows."""
        fields = {tag: self.fields_of(tag) for tag in self.fields}
        return list(zip(self.ats, self.causes, self.tags, map(next, map(fields.__getitem__, self.tags)), strict=True))

    def fields_of(self, tag: str) -> Iterator[tuple[Any, ...]]:
        """Yield the fields of each record of a type."""
        columns = self.fields[tag]
        return zip(*columns, strict=True) if columns else iter([()] * self.tags.count(tag))

    def block(self, tag: str, pack: Callable[[int, Iterable[Sequence[Any]]], Block] = loose) -> Block:
        """Return the fields of the records of a type as one block; `pack` makes it if it does not exist."""
        block = self.blocks.get(tag)
        if block is None:
            block = self.blocks[tag] = pack(self.tags.count(tag), self.fields[tag])
        return block

    def packed(self, recent: Recent, pack: Callable[[int, Iterable[Sequence[Any]]], Block] = loose) -> PackedRecords:
        """Return the records in packed form; `pack` makes the blocks that do not exist."""
        heads = pack(len(self.tags), (self.ats, self.causes, self.tags))
        return PackedRecords(heads, tuple([self.block(tag, pack) for tag in self.fields]), recent)


def numbers_of(tag: str, tags: Sequence[str], first: int) -> Sequence[int]:
    """Return the numbers of the records of a type, given the types of consecutive records and the first number."""
    if tags.count(tag) == len(tags):
        return range(first, first + len(tags))
    return [number for number, own in enumerate(tags, first) if own == tag]


def column_stretches(rows: Log[Row], dropped: int) -> Iterator[RecordColumns]:
    """Yield the records after the first `dropped` by column, in stretches that end at multiples of 512.

    A packed stretch with these boundaries, as nearly all have, is not turned into rows.
    """
    waiting: list[Row] = []
    seq = dropped
    for stretch, end in reversed(list(rows._stretches())):
        size = end - stretch.start
        packed = stretch.items
        is_whole = isinstance(packed, PackedRecords) and size == len(packed) and (seq + size) % STRETCH == 0
        if isinstance(packed, PackedRecords) and is_whole and not waiting:
            yield RecordColumns.unpacked(packed)
            seq += size
            continue
        waiting += stretch.read()[:size]
        while len(waiting) >= STRETCH - seq % STRETCH:
            size = STRETCH - seq % STRETCH
            yield RecordColumns.of(waiting[:size])
            del waiting[:size]
            seq += size
    if waiting:
        yield RecordColumns.of(waiting)
