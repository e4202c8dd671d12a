"""The snapshot table: the snapshots that a timeline keeps, by id and by tag."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyrsistent import PMap, pmap

from weakfs.class_decorators import define
from weakfs.session.codec.blob_table import Json
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import Table


@define(eq=False)
class SnapshotEntry:
    """A snapshot in the table: its description, and the state itself by reference."""

    snapshot_id: str
    number: int
    seq: int
    at: int
    tag: str | None
    state: Table
    externals: tuple[tuple[str, Any], ...] = ()

    @property
    def age(self) -> tuple[int, str]:
        """The sort key of snapshots, oldest first."""
        return self.number, self.snapshot_id

    def row(self, state: Json) -> dict[str, Json]:
        """Return the snapshot as JSON, except for its external snapshots; `state` is its state as JSON."""
        own = {"id": self.snapshot_id, "number": self.number, "seq": self.seq, "at": self.at, "tag": self.tag}
        return {**own, "state": state}


@define(eq=False)
class SnapshotTable(Mapping[str, SnapshotEntry]):
    """Snapshots by id. An immutable value; adding and finding a snapshot are O(1), however many are kept."""

    _by_id: PMap[str, SnapshotEntry] = pmap()
    # The snapshots of each tag, oldest first.
    _by_tag: PMap[str, Log[SnapshotEntry]] = pmap()

    @classmethod
    def of(cls, entries: Iterable[SnapshotEntry]) -> SnapshotTable:
        """Make a table of entries with distinct ids."""
        table = cls()
        for entry in entries:
            table = table.set(entry)
        return table

    def set(self, entry: SnapshotEntry) -> SnapshotTable:
        """Return the table with an entry, in place of one with the same id; costs as much as `discard` and `add`."""
        return self.discard(entry.snapshot_id).add(entry)

    def add(self, entry: SnapshotEntry) -> SnapshotTable:
        """Return the table with an entry whose id is new; O(entries of its tag) if it is not the newest of them."""
        by_id, by_tag = self._by_id.set(entry.snapshot_id, entry), self._by_tag
        if entry.tag is not None:
            tagged: Log[SnapshotEntry] = by_tag.get(entry.tag, Log())
            if not tagged or tagged[-1].age < entry.age:
                tagged = tagged.append(entry)
            else:
                tagged = Log(sorted((*tagged, entry), key=lambda one: one.age))
            by_tag = by_tag.set(entry.tag, tagged)
        return SnapshotTable(by_id, by_tag)

    def discard(self, snapshot_id: str) -> SnapshotTable:
        """Return the table without an entry, if present; O(entries of its tag) if it is not the newest of them."""
        entry = self._by_id.get(snapshot_id)
        if entry is None:
            return self
        by_tag = self._by_tag
        if entry.tag is not None:
            tagged = by_tag[entry.tag]
            if tagged[-1] is entry:
                remaining = tagged.prefix(len(tagged) - 1)
            else:
                remaining = Log(one for one in tagged if one is not entry)
            by_tag = by_tag.set(entry.tag, remaining) if remaining else by_tag.remove(entry.tag)
        return SnapshotTable(self._by_id.remove(snapshot_id), by_tag)

    def newest(self, tag: str) -> SnapshotEntry | None:
        """Return the newest snapshot with a tag, or `None`."""
        tagged = self._by_tag.get(tag)
        return tagged[-1] if tagged else None

    def __getitem__(self, snapshot_id: str) -> SnapshotEntry:
        return self._by_id[snapshot_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)
