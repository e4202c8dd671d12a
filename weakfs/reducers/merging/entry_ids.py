"""Entry ids: the identity of entries across the versions of a tree, through the moves and merges in the records.

An entry keeps its id when it is moved, as a file keeps its inode. The id of an entry that existed at the start is its
path at that time; an entry that was made later gets a number. Each version is a table of places,
`(id of the directory, name)`, so that an entry moves with its directory. (M. Kleppmann et al., "A highly-available move
operation for replicated trees", 2021.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from weakfs.reducers import events as e
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree.node import FileTree, find, is_whiteout, only_directory
from weakfs.session import Merged, RolledBack, SliceCleared, SliceSeeded
from weakfs.session.slices.tags import tag_of

Id = str | int
ROOT = ""
# The id of the directory, and the name in it.
Place = tuple[Id, str]

# The maximum number of table entries to copy for the versions that merges and rollbacks refer to.
MOST_COPIED = 2_000_000


class Untraceable(Exception):
    """Raised if entries cannot be followed through the records: some were dropped, or there are too many."""


class Names:
    """One version: the places that differ from those at the start, and what is at them."""

    __slots__ = ("at", "left", "places", "start")

    def __init__(
        self, start: FileTree, places: dict[Id, Place | None], at: dict[Place, Id | None], left: dict[Place, Id]
    ) -> None:
        self.start = start
        # `None` stands for an entry that was deleted, and for a place that is free.
        self.places = places
        self.at = at
        # The last entry at each place that is free now.
        self.left = left

    def copy(self) -> Names:
        """Return an independent copy."""
        return Names(self.start, self.places.copy(), self.at.copy(), self.left.copy())

    def child(self, parent: Id, name: str) -> Id | None:
        """Return the id of an entry of a directory, or `None`."""
        place = (parent, name)
        if place in self.at:
            return self.at[place]
        if isinstance(parent, int):
            return None
        path = f"{parent}/{name}"
        node = find(self.start, segments_of(path))
        return None if node is None or is_whiteout(node) else path

    def find(self, path: str) -> Id | None:
        """Return the id of the entry at a path, or `None`."""
        found: Id | None = ROOT
        for name in segments_of(path):
            found = None if found is None else self.child(found, name)
        return found

    def put(self, entry: Id, place: Place) -> None:
        """Put an entry at a place; an entry that was there is deleted."""
        replaced = self.child(*place)
        if replaced is not None and replaced != entry:
            self.places[replaced] = None
        self.at[place] = entry
        self.places[entry] = place

    def free(self, place: Place, entry: Id) -> None:
        """Remove an entry from its place."""
        if self.child(*place) == entry:
            self.at[place] = None
            self.left[place] = entry
        self.places[entry] = None

    def place(self, entry: Id) -> Place | None:
        """Return the place of an entry, or `None` if it was deleted."""
        return self.places[entry] if entry in self.places else first_place(entry)


def first_place(entry: Id) -> Place | None:
    """Return the place that an entry had at the start, or `None` if it did not exist yet."""
    if isinstance(entry, int):
        return None
    parent, _, name = entry.rpartition("/")
    return parent, name


class Tracker:
    """Follows entries through the records after number `first`; `start` is the tree before these records."""

    def __init__(self, first: int, start: FileTree) -> None:
        self._new = count(1)
        self._start = start
        self._kept: dict[int, Names] = {first: self.at_start()}
        # The version that a fork had when it was merged, by the fork's name and last record.
        self._ends: dict[tuple[str, int], Names] = {}
        # New entries of a fork that a merge identified with an entry of the session.
        self.same: dict[Id, Id] = {}
        self._copied = 0

    def at_start(self) -> Names:
        """Return the version at the start."""
        return Names(self._start, {}, {}, {})

    def base_of(self, fork: str, number: int, own: str) -> Names:
        """Return a copy of the version that a fork had after a record, whose number was in `wanted` of `run`.

        Raises `Untraceable` if it is from before the first record.
        """
        found = self._ends.get((fork, number)) if fork != own else None
        found = found or self._kept.get(number)
        if found is None:
            raise Untraceable
        return self._copy(found)

    def _copy(self, names: Names) -> Names:
        self._copied += len(names.places) + len(names.at)
        if self._copied > MOST_COPIED:
            raise Untraceable
        return names.copy()

    def run(
        self, rows: Iterator[tuple[int, Any]], names: Names, wanted: set[int], own: str, most: int | None = None
    ) -> tuple[Names, set[Id]]:
        """Apply up to `most` records to a version. Return the last version, and the ids of entries whose place changed.

        `own` is the name of the session or fork that the records belong to, and `wanted` are the numbers of the records
        that merges and rollbacks refer to.
        """
        touched: set[Id] = set()
        left = most
        while left != 0:
            row = next(rows, None)
            if row is None:
                break
            left = None if left is None else left - 1
            number, (_, _, tag, values) = row
            if tag == MERGED:
                left = None if left is None else left - values[2]
                names = self._merged(rows, names, number, values, wanted, touched, own)
            elif tag == ROLLED_BACK:
                before = names
                target = values[0]
                names = self._copy(self._kept[target]) if target in self._kept else self.at_start()
                touched |= before.places.keys() | names.places.keys()
            elif tag in (SEEDED, CLEARED) and values[0] == tag_of(FileTree):
                touched |= names.places.keys()
                names = self.at_start()
            elif tag in CHANGES and values[-1] is None:
                names = CHANGES[tag](self, names, values, touched)
            if number in wanted:
                self._kept[number] = self._copy(names)
        return names, touched

    def run_branch(
        self,
        rows: Iterator[tuple[int, Any]],
        before: Names,
        base: int,
        wanted: set[int],
        fork: str,
        most: int | None = None,
    ) -> tuple[Names, set[Id]]:
        """Apply the records of a fork to `before`, the version that it had after record `base`."""
        # If that record is the last one of an earlier merge of the fork, the session had another version after it.
        outside = self._kept.get(base)
        self._kept[base] = before
        result = self.run(rows, self._copy(before), wanted, fork, most)
        if outside is not None:
            self._kept[base] = outside
        return result

    def _merged(
        self,
        rows: Iterator[tuple[int, Any]],
        ours: Names,
        number: int,
        values: tuple[Any, ...],
        wanted: set[int],
        touched: set[Id],
        own: str,
    ) -> Names:
        """Apply the records of a merged fork to the version that it had, and merge the places."""
        fork, base, size, _, is_renumbered = values[:5]
        if not is_renumbered:
            raise Untraceable
        before = self.base_of(fork, base, own)
        theirs, changed = self.run_branch(rows, before, base, wanted, fork, size)
        merged = self._copy(ours)
        taken = [entry for entry in changed if self._is_theirs(before, ours, theirs, entry)]
        for entry in taken:
            mine = ours.place(self.id_of(entry))
            if mine is not None:
                merged.free(mine, self.id_of(entry))
        # Directories first, because the places of their entries contain their ids.
        for entry in sorted(taken, key=lambda entry: (isinstance(entry, str), entry)):
            self._take_place(merged, before, ours, theirs, entry)
        touched |= changed
        last = number + size
        if fork != own:
            self._ends[fork, last] = theirs
        if last in wanted:
            self._kept[last] = self._copy(merged)
        return merged

    def _is_theirs(self, before: Names, ours: Names, theirs: Names, entry: Id) -> bool:
        """Return whether only their side changed the place of an entry; if both sides did, our place stays."""
        old = before.place(entry)
        return theirs.place(entry) != old and self.placed(old) == ours.place(self.id_of(entry))

    def _take_place(self, merged: Names, before: Names, ours: Names, theirs: Names, entry: Id) -> None:
        """Put an entry at the place that it has on their side."""
        place = self.placed(theirs.place(entry))
        if place is None:
            return
        known = self.id_of(entry)
        there = merged.child(*place)
        if there is not None and known not in ours.places and isinstance(entry, int) and before.place(there) is None:
            # Both sides made an entry with this name.
            self.same[entry] = there
        else:
            merged.put(known, place)

    def id_of(self, entry: Id) -> Id:
        """Return the id that an entry of a merged fork has in the session."""
        while entry in self.same:
            entry = self.same[entry]
        return entry

    def placed(self, place: Place | None) -> Place | None:
        """Return a place with the id of its directory in the session."""
        return None if place is None else (self.id_of(place[0]), place[1])

    # Events

    def make(self, names: Names, path: str, touched: set[Id]) -> Id:
        """Return the id of the entry at a path; it and the directories above it get ids if they have none."""
        entry: Id = ROOT
        for name in segments_of(path):
            found = names.child(entry, name)
            if found is None:
                # An entry that was deleted and written again is the same entry, unless that entry is somewhere else by
                # now.
                left = names.left.get((entry, name))
                found = next(self._new) if left is None or names.place(left) is not None else left
                names.put(found, (entry, name))
                touched.add(found)
            entry = found
        return entry

    def on_made(self, names: Names, values: tuple[Any, ...], touched: set[Id]) -> Names:
        self.make(names, values[0], touched)
        return names

    def on_copied(self, names: Names, values: tuple[Any, ...], touched: set[Id]) -> Names:
        self.make(names, values[1], touched)
        return names

    def on_deleted(self, names: Names, values: tuple[Any, ...], touched: set[Id]) -> Names:
        entry = names.find(values[0])
        place = None if entry is None else names.place(entry)
        if entry is not None and place is not None:
            names.free(place, entry)
            touched.add(entry)
        return names

    def on_moved(self, names: Names, values: tuple[Any, ...], touched: set[Id]) -> Names:
        entry = names.find(values[0])
        if entry is None or entry == ROOT or values[0] == values[1]:
            return names
        place = names.place(entry)
        parent, _, name = values[1].rpartition("/")
        directory = self.make(names, parent or "/", touched)
        replaced = names.child(directory, name)
        if place is not None:
            names.free(place, entry)
        touched.add(entry)
        if isinstance(entry, int) and replaced is not None:
            # Programs save a file by moving a new one onto it: that is an edit.
            return names
        if replaced is not None:
            touched.add(replaced)
        names.put(entry, (directory, name))
        return names

    def on_replaced(self, names: Names, values: tuple[Any, ...], touched: set[Id]) -> Names:
        """A whole tree was put at a path: it contains none of the earlier entries."""
        if values[0] == "/":
            return self.on_everything(names, values, touched)
        self.on_deleted(names, values, touched)
        return self.on_made(names, values, touched)

    def on_everything(self, names: Names, values: tuple[Any, ...], touched: set[Id]) -> Names:
        """The whole tree was replaced: entries are known by their paths again."""
        touched |= names.places.keys()
        return self.at_start()

    def on_found(self, names: Names, values: tuple[Any, ...], touched: set[Id]) -> Names:
        """An entry of the lower layer was copied up: it is the same entry for every side that finds it.

        So are the directories that are nested in it, each as the only entry of the one above.
        """
        parent, _, name = values[0].rpartition("/")
        directory = self.make(names, parent or "/", touched)
        node: Any = values[1]
        inner: str | None = name or None
        while inner is not None and isinstance(directory, str):
            place = (directory, inner)
            if place not in names.at:
                names.put(f"{directory}/{inner}", place)
            found = names.at[place]
            if found is None:
                break
            directory, node = found, find(node, (inner,))
            inner = only_directory(node)
        return names


MERGED, ROLLED_BACK, SEEDED, CLEARED = (tag_of(type_) for type_ in (Merged, RolledBack, SliceSeeded, SliceCleared))
MOVED = tag_of(e.EntryMoved)

CHANGES: dict[str, Callable[[Tracker, Names, tuple[Any, ...], set[Id]], Names]] = {
    tag_of(event): handler
    for handler, events in {
        Tracker.on_made: (e.FileWritten, e.FileAppended, e.DirectoryMade, e.LinkMade, e.EntryPut),
        Tracker.on_copied: (e.EntryCopied,),
        Tracker.on_deleted: (e.EntryDeleted, e.EntryHidden),
        Tracker.on_moved: (e.EntryMoved,),
        Tracker.on_replaced: (e.TreeMounted,),
        Tracker.on_everything: (e.TreeRestored, e.LayerEmptied),
        Tracker.on_found: (e.EntryFound,),
    }.items()
    for event in events
}
