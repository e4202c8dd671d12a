"""Views of a session: its records as a sequence, and its slices as they were at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar, overload

from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init
from weakfs.session.codec.savable_events import MUTABLE, copied
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.reduction import Row, event_of
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.events import Record
from weakfs.session.slices.log import Log
from weakfs.session.slices.slice import Kind, SliceSpec, SliceView
from weakfs.session.slices.table import Table

T = TypeVar("T")


@fast_init
@frozen
class SessionSnapshot:
    """A state that a session keeps and can go back to.

    `seq` is the number of the record after which it was taken, and `at` the clock's time in nanoseconds.
    """

    snapshot_id: str
    seq: int
    at: int
    tag: str | None


@frozen
class Missing:
    """Something that a saved session refers to but that no longer exists anywhere.

    `id` is a blob's digest in hexadecimal, or the id of a snapshot of an attached filesystem. After loading, reading
    the blob or restoring the snapshot fails; everything else can be used.
    """

    kind: Literal["content", "snapshot"]
    id: str


@frozen
class SaveReport:
    """What was written: where, how many bytes, and how many of each thing.

    `missing` lists what could not be included, blobs first. Blobs that are already next to the file are not read again,
    so it does not list those that were damaged there.
    """

    path: str
    size_bytes: int
    records: int
    snapshots: int
    blobs: int
    missing: tuple[Missing, ...] = ()


@frozen(eq=False)
class Origin:
    """What a full replay needs besides the records.

    `base` is the state before the first of them, `counter` the session's id counter.
    """

    session_id: str
    counter: int
    base: Mark
    snapshots: Mapping[str, SnapshotEntry]


class Records(Sequence[Record]):
    """The records of a session at the time of access; each is built when it is read."""

    __slots__ = ("_dropped", "_rows", "_rules", "origin")

    def __init__(self, rules: Rules, rows: Log[Row], dropped: int, origin: Origin | None = None) -> None:
        self._rules = rules
        self._rows = rows
        self._dropped = dropped
        self.origin = origin

    def __repr__(self) -> str:
        return f"<Records {self._dropped + 1} to {self._dropped + len(self)}>" if len(self) else "<Records: none>"

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Record]:
        return self.since(self._dropped)

    def since(self, seq: int) -> Iterator[Record]:
        """Yield the records after number `seq`."""
        start = max(seq, self._dropped)
        for number, row in enumerate(self._rows.since(start - self._dropped), start + 1):
            yield self._record(number, row)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        row = self._rows[index]
        position = index + len(self._rows) if index < 0 else index
        return self._record(self._dropped + position + 1, row)

    def _record(self, seq: int, row: Row) -> Record:
        event = event_of(self._rules, row)
        if not MUTABLE.isdisjoint(map(type, row[3])):
            registry = self._rules.registry
            event = copied(registry.shape(row[2]), event, registry)
        return Record(seq, row[0], event, row[1])


class SessionView:
    """A read-only view of the slices after one record."""

    __slots__ = ("_logs", "_rules", "_state", "seq")

    def __init__(self, rules: Rules, seq: int, state: Table, logs: Table) -> None:
        self.seq = seq
        self._rules = rules
        self._state = state
        self._logs = logs

    def __repr__(self) -> str:
        return f"<SessionView at record {self.seq}>"

    def __getitem__(self, type_: type[T]) -> SliceView[T]:
        return SliceView(self, self._rules.spec_of(type_))

    def query(self, type_: type[T]) -> SliceView[T]:
        """Return the accessor of one slice; the same as `view[type_]`."""
        return self[type_]

    def _spec_of(self, type_: type) -> SliceSpec:
        """Return the specification of a slice type. Raises `UnknownType` if it is not installed."""
        return self._rules.spec_of(type_)

    def _table(self, kind: Kind) -> Table:
        """Return the slices of one kind; callers write `view[T]`."""
        return self._logs if kind == "log" else self._state

    def _reading(self, read: Callable[[], T]) -> T:
        """Return what `read` returns: a view cannot catch up with what other processes stored."""
        return read()
