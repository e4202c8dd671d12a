"""The timeline of a session: one row for each call, each change made outside calls, each merge and each snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from attrs import asdict, field

from weakfs.class_decorators import define, frozen
from weakfs.history.calls import NumberedCall, calls_of
from weakfs.history.descriptions import status_of, target_of_call, target_of_event
from weakfs.history.plain_values import moment
from weakfs.history.record_states import Step, steps_of
from weakfs.history.tree_patch import ChangeKind, FileChange, count_changed_lines, file_changes
from weakfs.history.trees import Trees
from weakfs.messages import one_line
from weakfs.reducers import EntryFound, LowerEntry, TreeSeen, diff
from weakfs.session import Merged, Record, Reverted, RolledBack, Session, SessionSnapshot, SessionView
from weakfs.session.session import checked_session
from weakfs.tools.slices import FileSeen, KeptBlob, ToolCall

Kind = Literal["call", "change", "merge", "rollback", "snapshot"]

# Records that change no files: files found outside, versions seen, and contents stored for an answer.
OBSERVATIONS = (EntryFound, LowerEntry, TreeSeen, KeptBlob, FileSeen, Reverted)


@frozen
class ChangedFile:
    """One file that a row changed: its path, its old path if it moved, and the numbers of lines added and removed.

    The numbers are `None` if contents are missing. `filesystem` is `None` for the session's own files.
    """

    path: str
    change: ChangeKind
    source: str | None
    added: int | None
    removed: int | None
    filesystem: str | None


@frozen(kw_only=True)
class TimelineRow:
    """One row of a timeline. Times are in integer nanoseconds; records are numbered from 1.

    `name` is the id of a call or snapshot, or otherwise the cause. `action` is the tool, or the event's tag. `fork` is
    the fork that made the row, `None` for the session itself. `first` and `last` are the first and the last record that
    changed something, or the record after which a snapshot was taken. `number` is the number of a call, as in
    `weakfs log`.
    """

    kind: Kind
    number: int | None = None
    name: str | None
    action: str
    target: str
    status: str = "ok"
    at: int
    ended_at: int
    caller: str | None = None
    fork: str | None = None
    first: int | None
    last: int | None
    files: tuple[ChangedFile, ...] = ()

    @property
    def lines(self) -> tuple[int, int]:
        """The total numbers of lines added and removed, as far as they are known."""
        return sum(one.added or 0 for one in self.files), sum(one.removed or 0 for one in self.files)

    def as_fields(self) -> dict[str, object]:
        """Return the row as plain values for JSON, with times as ISO 8601."""
        fields = asdict(self)
        fields["at"], fields["ended_at"] = moment(self.at, fraction=True), moment(self.ended_at, fraction=True)
        fields["added"], fields["removed"] = self.lines
        return fields


@frozen(kw_only=True, eq=False)
class RowChanges:
    """A row with its changes: each file before and after, by filesystem.

    `changes` has one entry for each of `row.files`, and is `None` if a state that it needs was compacted away. `step`
    is the record of the row, `None` for snapshots and for calls whose record was dropped.
    """

    row: TimelineRow
    changes: tuple[tuple[str | None, FileChange], ...] | None = ()
    step: Step | None = None


def timeline(session: Session) -> Iterator[TimelineRow]:
    """Yield the rows of a session, oldest first. O(records), plus what each of them changed."""
    return (one.row for one in changes_of_rows(session, Trees(checked_session(session))))


def changes_of_rows(session: Session, trees: Trees) -> Iterator[RowChanges]:
    """Yield the rows of a session, as `timeline` does, with the files before and after each."""
    return _Timeline(session, trees).rows()


# The files of a row, and their states before and after; `None` if a state was compacted away.
_Found = tuple[tuple[ChangedFile, ...], tuple[tuple[str | None, FileChange], ...] | None]
_NOTHING: _Found = ((), ())
_COMPACTED: _Found = ((), None)


@define(eq=False)
class _Timeline:
    session: Session
    trees: Trees
    _calls: dict[int, NumberedCall] = field(factory=dict[int, NumberedCall])
    # The call to which each record belongs.
    _owners: dict[int, NumberedCall] = field(factory=dict[int, NumberedCall])
    # The states before calls, by the first record of the call.
    _before: dict[int, SessionView | None] = field(factory=dict[int, SessionView | None])
    _found: dict[int, _Found] = field(factory=dict[int, _Found])

    def rows(self) -> Iterator[RowChanges]:
        session = self.session
        for call in calls_of(session):
            if call.record is None:
                yield RowChanges(row=_call_row(call, None, ()), changes=None)
                continue
            self._calls[call.record.seq] = call
            self._owners |= dict.fromkeys(call.records, call)
        waiting = sorted(session.snapshots, key=lambda snapshot: snapshot.seq, reverse=True)
        for step in steps_of(session):
            while waiting and waiting[-1].seq < step.record.seq:
                yield RowChanges(row=_snapshot_row(waiting.pop()))
            yield from self._rows_of(step)
        yield from (RowChanges(row=_snapshot_row(snapshot)) for snapshot in reversed(waiting))

    def _rows_of(self, step: Step) -> Iterator[RowChanges]:
        record = step.record
        owner = self._owners.get(record.seq)
        if owner is not None:
            if record.seq == owner.first:
                self._before[owner.number] = step.before
            if record.seq == owner.last_state:
                self._found[owner.number] = _changed(self.trees, self._before.pop(owner.number, None), step.after)
        fork = None if step.fork == self.session.session_id else step.fork
        call = self._calls.get(record.seq)
        if call is not None:
            is_known = call.first is not None or call.call.first_seq is None
            files, changes = self._found.pop(call.number, _NOTHING if is_known else _COMPACTED)
            yield RowChanges(row=_call_row(call, fork, files), changes=changes, step=step)
        elif owner is None and not isinstance(record.event, (*OBSERVATIONS, ToolCall)):
            is_merge = isinstance(record.event, Merged) and record.event.count > 0
            # The changes of a merge are in the rows of the fork's own records.
            files, changes = _NOTHING if is_merge else _changed(self.trees, step.before, step.after)
            tag = self.session.registry.by_type[type(record.event)].tag
            yield RowChanges(row=_record_row(record, tag, fork, files), changes=changes, step=step)


def _call_row(numbered: NumberedCall, fork: str | None, files: tuple[ChangedFile, ...]) -> TimelineRow:
    call = numbered.call
    return TimelineRow(
        kind="call",
        number=numbered.number,
        name=call.call_id,
        action=call.tool,
        target=target_of_call(call),
        status=status_of(call),
        at=call.started_at,
        ended_at=call.ended_at,
        caller=call.caller,
        fork=fork,
        first=numbered.first,
        last=numbered.last,
        files=files,
    )


def _record_row(record: Record, tag: str, fork: str | None, files: tuple[ChangedFile, ...]) -> TimelineRow:
    event = record.event
    kind: Kind = "merge" if isinstance(event, Merged) else "rollback" if isinstance(event, RolledBack) else "change"
    return TimelineRow(
        kind=kind,
        name=record.cause,
        action=tag,
        target=target_of_event(event),
        at=record.at,
        ended_at=record.at,
        fork=fork,
        first=record.seq,
        last=record.seq,
        files=files,
    )


def _snapshot_row(snapshot: SessionSnapshot) -> TimelineRow:
    return TimelineRow(
        kind="snapshot",
        name=snapshot.snapshot_id,
        action="snapshot",
        target=one_line(snapshot.tag or ""),
        at=snapshot.at,
        ended_at=snapshot.at,
        first=snapshot.seq,
        last=snapshot.seq,
    )


def _changed(trees: Trees, before: SessionView | None, after: SessionView | None) -> _Found:
    """Return the files that differ between two states, with their differences."""
    if before is None or after is None:
        return _COMPACTED
    changes = tuple(changes_between(trees, before, after))
    return tuple(_changed_file(filesystem, change) for filesystem, change in changes), changes


def changes_between(trees: Trees, before: SessionView, after: SessionView) -> Iterator[tuple[str | None, FileChange]]:
    """Yield each file that differs between two states, by filesystem."""
    for filesystem, (old, new) in trees.changed(before, after).items():
        for change in file_changes(old, new, diff(old, new)):
            yield filesystem, change


def _changed_file(filesystem: str | None, change: FileChange) -> ChangedFile:
    added, removed = count_changed_lines(change) or (None, None)
    return ChangedFile(change.new_path, change.kind, change.source, added, removed, filesystem)
