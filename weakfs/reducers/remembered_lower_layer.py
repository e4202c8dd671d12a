"""What an upper layer remembers of its lower layer: the entries that were found, read or hidden there."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.reducers.apply import on_entry_found
from weakfs.reducers.events import EntryFound, EntryHidden, LayerEmptied, LowerEntry
from weakfs.reducers.partial_trees import filled, missing, with_changes
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree
from weakfs.reducers.tree.packed import Packed
from weakfs.session import event
from weakfs.session.slices.log import Log
from weakfs.session.slices.packed_state import Counted, Steps
from weakfs.session.slices.table import Table

V = TypeVar("V")


@event("fs/lower_found")
@frozen
class LowerFound:
    """The lower layer's entries at every path where the upper layer holds something, as they were when found."""

    tree: FileTree = field(default=EMPTY_TREE, repr=False)

    def pack(self, before: Packed | None, counted: Counted) -> Steps[tuple[Packed, int]]:
        """Return the packed form for a keyframe, and its weight, as `Packable.pack` does."""
        return self.tree.pack(before, counted)

    @classmethod
    def unpack(cls, packed: Packed, known: dict[int, Any] | None = None) -> LowerFound:
        """Return the value, unpacked."""
        return cls(FileTree.unpack(packed, known))

    @classmethod
    def weight(cls, packed: Packed, before: Packed) -> Steps[int]:
        """Return the approximate number of bytes that a packed form does not share with `before`, excluding blobs."""
        return FileTree.weight(packed, before)


NOTHING_FOUND = LowerFound()


def on_found(found: LowerFound | None, event: EntryFound) -> LowerFound:
    """Remember what was copied up."""
    known = found or NOTHING_FOUND
    tree = on_entry_found(known.tree, event)
    return known if tree is known.tree else LowerFound(tree)


def on_emptied(found: LowerFound | None, event: LayerEmptied) -> LowerFound:
    """Drop everything: the upper layer no longer covers any entry."""
    return NOTHING_FOUND


def entry_read(entries: Log[LowerEntry], event: LowerEntry) -> Log[LowerEntry]:
    """Remember an entry that was read, after earlier entries for the same path."""
    return entries.append(event)


def entry_hidden(entries: Log[LowerEntry], event: EntryHidden) -> Log[LowerEntry]:
    """Remember what was hidden."""
    return entries if event.seen is None else entries.append(event.seen)


def entries_forgotten(entries: Log[LowerEntry], event: LayerEmptied) -> Log[LowerEntry]:
    """Drop everything that was read and hidden."""
    return Log() if len(entries) else entries


def merge_found(base: LowerFound | None, ours: LowerFound, theirs: LowerFound) -> LowerFound:
    """Return `ours` with what `theirs` has found since."""
    before = base or NOTHING_FOUND
    return LowerFound(with_changes(before.tree, ours.tree, theirs.tree))


def merge_entries(base: Log[LowerEntry], ours: Log[LowerEntry], theirs: Log[LowerEntry]) -> Log[LowerEntry]:
    """Return the entries that either side saw.

    A side that dropped everything also dropped entries from before the branch.
    """
    if not theirs.begins_like(base):
        ours, theirs = theirs, ours
    if not theirs.begins_like(base):
        return ours.extend(theirs)
    return ours.extend(theirs.since(len(base)))


def completed(base: Table, ours: Table, theirs: Table) -> list[FileTree]:
    """Return the files of three versions, each completed with what only the others found in the lower layer.

    Two forks that edit the same lower file both copied it up: that copy is their merge base.
    """
    found = [_latest(table, "fs/lower_found", NOTHING_FOUND).tree for table in (base, ours, theirs)]
    trees = [_latest(table, "fs/tree", EMPTY_TREE) for table in (base, ours, theirs)]
    if all(one is EMPTY_TREE for one in found):
        return trees
    return [
        _completed(_completed(tree, known, found[1]), known, found[2]) for tree, known in zip(trees, found, strict=True)
    ]


def _completed(tree: FileTree, known: FileTree, other: FileTree) -> FileTree:
    return filled(tree, missing(known, other), ())


def _latest(table: Table, tag: str, default: V) -> V:
    values = cast("Log[V] | None", table.get(tag))
    return default if values is None else values.last(default)
