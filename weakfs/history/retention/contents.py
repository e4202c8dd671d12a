"""The contents of a timeline: those of the files, the records, the calls and each snapshot, without repetitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.history.retention.policy import Holder, HolderKind
from weakfs.reducers import FileTree
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.leaf import blob_digest, is_file, size_of
from weakfs.session.blobs.blob import Stored, digest_of
from weakfs.session.blobs.rope import Rope
from weakfs.session.codec.scalars import ATOMS
from weakfs.session.files.needed_blobs import parts_of
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.timeline import Timeline, ordered_snapshots

# Visited objects by id. Keeping an object alive prevents its id from being reused.
Seen = dict[int, object]

_SHARED = -1


def contents_in(values: Iterable[object], seen: Seen) -> Iterator[tuple[bytes, int]]:
    """Yield the digest and the size of each blob in some values, skipping objects that are in `seen`."""
    stack = list(values)
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind in ATOMS or id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, bytes):
            yield digest_of(item), len(item)
        elif isinstance(item, Stored):
            yield item.digest, item.size
        elif isinstance(item, Rope):
            yield item.digest(), len(item)
        elif isinstance(item, FileTree):
            for _, node in maps.items(item._children):
                if isinstance(node, FileTree):
                    stack.append(node)
                elif is_file(node):
                    yield blob_digest(node), size_of(node)
        else:
            stack += parts_of(item)


@define(eq=False)
class Contents:
    """The contents of one timeline, and of the same timeline after some of its history was dropped.

    The contents of records and snapshots are collected once, because a search for what fits within a limit looks at
    them many times. Contents are numbered here, so that a thousand snapshots of the same files take little memory.
    """

    line: Timeline
    _sizes: list[int] = field(factory=list[int], init=False)
    _numbers: dict[bytes, int] = field(factory=dict[bytes, int], init=False)
    _of_rows: list[tuple[int, ...]] = field(init=False)
    _of_snapshots: dict[str, tuple[int, ...]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._of_rows = [self._in((row[3],)) for row in self.line.rows]
        self._of_snapshots = {
            entry.snapshot_id: self._in((entry.state, entry.externals)) for entry in ordered_snapshots(self.line)
        }

    def size(self, after: Timeline) -> int:
        """Return the total size of the contents of a shortened version of this timeline."""
        found = {number for holder in self._holders(after) for number in holder.contents}
        return sum(self._sizes[number] for number in found)

    def holders(self, after: Timeline) -> tuple[Holder, ...]:
        """Return the holders of contents in a shortened version of this timeline. O(everything that each holds)."""
        every = list(self._holders(after))
        owners: dict[int, int] = {}
        for place, holder in enumerate(every):
            for number in holder.contents:
                owners[number] = place if owners.get(number, place) == place else _SHARED
        return tuple(
            Holder(
                holder.kind,
                holder.kind if holder.entry is None else holder.entry.snapshot_id,
                None if holder.entry is None else holder.entry.tag,
                None if holder.entry is None else holder.entry.at,
                sum(self._sizes[number] for number in set(holder.contents)),
                sum(self._sizes[number] for number in set(holder.contents) if owners[number] == place),
            )
            for place, holder in enumerate(every)
        )

    def _holders(self, after: Timeline) -> Iterator[_Held]:
        yield _Held("files", self._in((after.state,)))
        yield _Held("records", self._in_records(after))
        yield _Held("calls", self._in((after.logs,)))
        for entry in ordered_snapshots(after):
            yield _Held("snapshot", self._of_snapshots[entry.snapshot_id], entry)

    def _in_records(self, after: Timeline) -> list[int]:
        """Return the contents of the records, and of the state from which they start."""
        found = [*self._in((after.externals, after.base.state if len(after.rows) else None))]
        for numbers in self._of_rows[after.dropped - self.line.dropped :]:
            found += numbers
        return found

    def _in(self, values: Iterable[object]) -> tuple[int, ...]:
        found: list[int] = []
        for digest, size in contents_in(values, {}):
            number = self._numbers.setdefault(digest, len(self._sizes))
            if number == len(self._sizes):
                self._sizes.append(size)
            found.append(number)
        return tuple(found)


@frozen
class _Held:
    kind: HolderKind
    contents: Sequence[int]
    entry: SnapshotEntry | None = None
