"""`weakfs log --records`: the records of a session, with the snapshots between them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator

from weakfs.class_decorators import frozen
from weakfs.cli.formatting import moment, shown
from weakfs.cli.output import Output
from weakfs.filesystem.paths import is_within
from weakfs.history.descriptions import paths_of_event, target_of_event
from weakfs.history.plain_values import plain_fields
from weakfs.reducers import (
    EntryCopied,
    EntryDeleted,
    EntryFound,
    EntryHidden,
    EntryMoved,
    TreeMounted,
    TreeRestored,
)
from weakfs.session import (
    Record,
    RolledBack,
    Session,
    SessionSnapshot,
)

Entry = Record | SessionSnapshot

# Events that affect everything below their path.
WHOLE_TREES = (EntryCopied, EntryDeleted, EntryFound, EntryHidden, EntryMoved, TreeMounted)


@frozen
class Selection:
    """A filter for records: by cause, by path, by external filesystem, or only the newest few."""

    cause: str | None = None
    path: str | None = None
    limit: int | None = None
    filesystem: str | None = None

    @property
    def is_everything(self) -> bool:
        """Whether there is no filter, so that snapshots are shown too."""
        return self.cause is None and self.path is None and self.filesystem is None


class Names:
    """The names under which the log shows the events and snapshots of a session."""

    def __init__(self, session: Session) -> None:
        self.registry = session.registry
        self.shapes = session.registry.by_type
        self._snapshots: dict[str, str] = {}
        uses = Counter(one.tag for one in session.snapshots)
        for one in session.snapshots:
            if one.tag is not None:
                more = f" ({one.snapshot_id})" if uses[one.tag] > 1 else ""
                self._snapshots[one.snapshot_id] = f"{one.tag}{more}"

    def tag_of(self, record: Record) -> str:
        """Return the type tag of a record's event."""
        return self.shapes[type(record.event)].tag

    def snapshot(self, snapshot_id: str) -> str:
        """Return the tag of a snapshot, with its id if others have the same tag; the id if there is no tag."""
        return self._snapshots.get(snapshot_id, snapshot_id)

    def target_of(self, record: Record) -> str:
        """Describe what a record's event is about."""
        event = record.event
        if isinstance(event, RolledBack) and event.snapshot_id is not None:
            return f"to {shown(self.snapshot(event.snapshot_id))}"
        return target_of_event(event)


def show_records(out: Output, session: Session, wanted: Selection, *, as_json: bool) -> None:
    """Print the selected records, oldest first; include the snapshots between them if there is no filter."""
    names = Names(session)
    found = _limited(_selected(session, wanted), wanted.limit)
    if as_json:
        for entry in found:
            fields = snapshot_fields(entry) if isinstance(entry, SessionSnapshot) else record_fields(entry, names)
            out.record(**fields)
        return
    width = max((len(shape.tag) for shape in names.shapes.values()), default=0)
    number_width = max(len(str(session.seq)), 3)
    for entry in found:
        if isinstance(entry, SessionSnapshot):
            name = shown(names.snapshot(entry.snapshot_id))
            out.line(f"{'':{number_width}}  {moment(entry.at)}  ", (f"snapshot {name}", "bold yellow"))
            continue
        out.line(
            f"{entry.seq:>{number_width}}  {moment(entry.at)}  ",
            (f"{names.tag_of(entry):<{width}}", "cyan"),
            "  ",
            (f"{shown(entry.cause or '-'):<10}", "magenta"),
            f"  {names.target_of(entry)}".rstrip(),
        )


def selected(session: Session, wanted: Selection) -> set[int]:
    """Return the numbers of the selected records."""
    return {entry.seq for entry in _selected(session, wanted)}


def _selected(session: Session, wanted: Selection) -> Iterator[Entry]:
    if wanted.is_everything:
        yield from with_snapshots(session)
        return
    touched = _Touched(wanted.path)
    for record in session.records:
        if (
            touched.by(record)
            and (wanted.cause is None or record.cause == wanted.cause)
            and wanted.filesystem in (None, getattr(record.event, "filesystem", None))
        ):
            yield record


def with_snapshots(session: Session) -> Iterator[Entry]:
    """Yield the records of a session, with the snapshots between them."""
    waiting = deque(sorted(session.snapshots, key=lambda snapshot: snapshot.seq))
    for record in session.records:
        while waiting and waiting[0].seq < record.seq:
            yield waiting.popleft()
        yield record
    yield from waiting


def _limited(entries: Iterator[Entry], limit: int | None) -> Iterable[Entry]:
    return entries if limit is None else deque(entries, maxlen=limit)


class _Touched:
    """Decides, for records passed in order, whether each may have changed something at or below a path."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._last = 0

    def by(self, record: Record) -> bool:
        if self._path is None:
            return True
        event = record.event
        if isinstance(event, RolledBack):
            # A rollback undoes or redoes what the records since its target did.
            touched = event.target < self._last
        elif isinstance(event, TreeRestored):
            touched = True
        else:
            touched = any(
                is_within(path, self._path) or (isinstance(event, WHOLE_TREES) and is_within(self._path, path))
                for path in paths_of_event(event)
            )
        if touched:
            self._last = record.seq
        return touched


def snapshot_fields(snapshot: SessionSnapshot) -> dict[str, object]:
    """Return a snapshot as JSON fields."""
    return {
        "type": "snapshot",
        "id": snapshot.snapshot_id,
        "tag": snapshot.tag,
        "seq": snapshot.seq,
        "at": moment(snapshot.at, fraction=True),
    }


def record_fields(record: Record, names: Names) -> dict[str, object]:
    """Return a record as JSON fields."""
    return {
        "type": "record",
        "seq": record.seq,
        "at": moment(record.at, fraction=True),
        "tag": names.tag_of(record),
        "cause": record.cause,
        "event": dict(plain_fields(names.registry, record.event)),
    }
