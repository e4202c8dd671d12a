"""`weakfs log`: one row for each call of a session, for each undo, and for each other change made outside calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from attrs import evolve
from rich.cells import cell_len

from weakfs.class_decorators import frozen
from weakfs.cli.commands.sessions.log.records import (
    Names,
    Selection,
    record_fields,
    selected,
    snapshot_fields,
    with_snapshots,
)
from weakfs.cli.errors import as_failure
from weakfs.cli.formatting import date_and_time, moment, padded, shortened, shown
from weakfs.cli.output import Output, progress
from weakfs.history.calls import NumberedCall, calls_of
from weakfs.history.descriptions import short_action, status_of, target_of_call
from weakfs.history.record_states import steps_of
from weakfs.history.tree_patch import count_lines
from weakfs.history.trees import Trees
from weakfs.platforms import garbage_collection_paused
from weakfs.reducers import EntryFound, LowerEntry
from weakfs.session import Merged, Record, Reverted, Session, SessionSnapshot
from weakfs.tools.slices import KeptBlob

# Records that change no files: files found in a lower layer or outside, and contents stored for an answer.
OBSERVATIONS = (EntryFound, LowerEntry, KeptBlob)

# The numbers of lines added and removed.
Lines: TypeAlias = tuple[int, int]

# Rows are this wide, or as wide as the terminal if that is wider.
WIDTH = 80
# The maximum width of a column. A wider value takes space from the path in its row.
MAX_ACTION = 14
MAX_STATUS = 9
MAX_LINES = 9
MIN_PATH = 8

# No progress is shown for fewer records: reading them takes too little time.
LARGE = 20_000


@frozen
class Undoing:
    """An undo, redo, revert or restore: its records, the last of which is a `Reverted`. `how` is the method."""

    how: str
    first: int
    last: Record

    @property
    def target(self) -> str:
        """What was undone, which the cause of the records names."""
        return (self.last.cause or "").removeprefix(f"{self.how} ")


Entry: TypeAlias = NumberedCall | Undoing | Record | SessionSnapshot


@frozen
class Row:
    """One row of the log. `lines` is `None` if nothing changed or the change is unknown."""

    number: str
    at: int
    action: str
    target: str
    status: str
    lines: Lines | None = None

    @property
    def changes(self) -> str:
        """The lines added and removed, in printable form."""
        return "" if self.lines is None or self.lines == (0, 0) else f"+{self.lines[0]} -{self.lines[1]}"


def show_calls(out: Output, session: Session, wanted: Selection, *, as_json: bool) -> None:
    """Print the selected calls and changes, oldest first; include snapshots only if there is no filter."""
    names = Names(session)
    found = _entries(session, wanted)
    if wanted.limit is not None:
        found = deque(found, maxlen=wanted.limit)
    entries = list(found)
    with as_failure("read the history"), progress("reading history", wanted=len(session.records) > LARGE):
        lines = _lines_of(session, entries)
    if as_json:
        for entry in entries:
            out.record(**_fields(entry, lines.get(_key(entry)), names))
        return
    _show_table(out, [evolve(_row(entry, names), lines=lines.get(_key(entry))) for entry in entries])


def _entries(session: Session, wanted: Selection) -> Iterable[Entry]:
    """Yield the entries that have a row, in order."""
    calls = calls_of(session)
    by_record = {call.record.seq: call for call in calls if call.record is not None}
    owned = {seq for call in calls for seq in call.records}
    matching = None if wanted.is_everything else selected(session, wanted)
    if matching is None or (wanted.path is None and wanted.filesystem is None):
        yield from (call for call in calls if call.record is None and wanted.cause in (None, call.call.call_id))
    undoings = _undoings(session, owned)
    for record in with_snapshots(session) if matching is None else session.records:
        if isinstance(record, SessionSnapshot):
            yield record
            continue
        is_wanted = matching is None or record.seq in matching
        if (call := by_record.get(record.seq)) is not None:
            if matching is None or _is_wanted(call, record, matching, wanted):
                yield call
        elif (undoing := undoings.get(record.seq)) is not None:
            is_last = record.seq == undoing.last.seq
            if is_last and (matching is None or any(seq in matching for seq in range(undoing.first, record.seq + 1))):
                yield undoing
        elif is_wanted and record.seq not in owned and not isinstance(record.event, OBSERVATIONS):
            yield record


def _undoings(session: Session, owned: set[int]) -> dict[int, Undoing]:
    """Return each undo, redo, revert and restore that no call made, by the numbers of its records.

    Its records are consecutive and have a cause of their own.
    """
    found: dict[int, Undoing] = {}
    first: int | None = None
    cause: str | None = None
    for record in session.records:
        if record.seq in owned:
            first = cause = None
            continue
        if first is None or record.cause != cause:
            first, cause = record.seq, record.cause
        if isinstance(record.event, Reverted):
            one = Undoing(record.event.how, first, record)
            found.update(dict.fromkeys(range(first, record.seq + 1), one))
    return found


def _is_wanted(call: NumberedCall, record: Record, matching: set[int], wanted: Selection) -> bool:
    """Return whether the record of a call, or one that the call made, was selected."""
    if wanted.cause is not None and wanted.cause != call.call.call_id:
        return False
    if record.seq in matching and wanted.path is None:
        return True
    return any(seq in matching for seq in call.records)


def _key(entry: Entry) -> int | None:
    """Return the record number under which the changes of an entry are stored."""
    if isinstance(entry, NumberedCall):
        return entry.last_state
    if isinstance(entry, Undoing):
        return entry.last.seq
    return entry.seq if isinstance(entry, Record) else None


def _lines_of(session: Session, entries: Sequence[Entry]) -> dict[int | None, Lines | None]:
    """Count the lines that entries changed, by `_key`. O(records), plus the changes of each entry."""
    begins: dict[int, int] = {}
    for entry in entries:
        if isinstance(entry, NumberedCall) and entry.first is not None and entry.last_state is not None:
            begins[entry.last_state] = entry.first
        elif isinstance(entry, Undoing):
            begins[entry.last.seq] = entry.first
        elif isinstance(entry, Record) and not isinstance(entry.event, Merged):
            # The records of a merged fork are counted one by one.
            begins[entry.seq] = entry.seq
    found: dict[int | None, Lines | None] = {}
    if not begins:
        return found
    trees = Trees(session)
    first = set(begins.values())
    before = {}
    with garbage_collection_paused():
        for step in steps_of(session):
            seq = step.record.seq
            if seq in first:
                before[seq] = step.before
            if seq not in begins:
                continue
            old, new = before.pop(begins[seq]), step.after
            if old is not None and new is not None:
                counts = [count_lines(*pair) for pair in trees.changed(old, new).values()]
                known = [count for count in counts if count is not None]
                if len(known) == len(counts):
                    found[seq] = (sum(added for added, _ in known), sum(removed for _, removed in known))
    return found


def _row(entry: Entry, names: Names) -> Row:
    if isinstance(entry, SessionSnapshot):
        return Row("", entry.at, "snapshot", shown(names.snapshot(entry.snapshot_id)), "")
    if isinstance(entry, Undoing):
        return Row("", entry.last.at, shown(entry.how), shown(entry.target), "")
    if isinstance(entry, Record):
        action = short_action(names.tag_of(entry))
        return Row("", entry.at, shown(action), names.target_of(entry), shown(entry.cause or ""))
    call = entry.call
    return Row(str(entry.number), call.started_at, shown(call.tool), target_of_call(call), status_of(call))


def _show_table(out: Output, rows: Sequence[Row]) -> None:
    if not rows:
        return
    number = max(3, *(len(row.number) for row in rows))
    action = min(max(cell_len(row.action) for row in rows), MAX_ACTION)
    lines = min(max(len(row.changes) for row in rows), MAX_LINES)
    status = min(max(cell_len(row.status) for row in rows), MAX_STATUS)
    for row in rows:
        head = f"{row.number:>{number}}  {date_and_time(row.at)}  "
        room = max(out.width, WIDTH) - len(head) - action - len("  " * 3)
        # A value wider than its column shortens the path.
        changes = f"{row.changes:>{lines}}"
        ended = shortened(row.status, max(room - MIN_PATH - len(changes), MIN_PATH))
        path = room - len(changes) - max(cell_len(ended), status)
        out.line(
            head,
            (padded(row.action, action), "cyan" if row.number else "yellow"),
            "  ",
            "  ".join([padded(row.target, path), changes, ""])
            if ended
            else f"{padded(row.target, path)}  {changes}".rstrip(),
            (ended, _style(row)),
        )


def _style(row: Row) -> str:
    return "magenta" if not row.number else "green" if row.status == "ok" else "red"


def _fields(entry: Entry, lines: Lines | None, names: Names) -> dict[str, object]:
    added, removed = (None, None) if lines is None else lines
    if isinstance(entry, SessionSnapshot):
        return snapshot_fields(entry)
    if isinstance(entry, Undoing):
        return {
            "type": "reversion",
            "how": entry.how,
            "target": entry.target,
            "at": moment(entry.last.at, fraction=True),
            "added": added,
            "removed": removed,
            "first_record": entry.first,
            "last_record": entry.last.seq,
        }
    if isinstance(entry, Record):
        return {**record_fields(entry, names), "added": added, "removed": removed}
    call = entry.call
    return {
        "type": "call",
        "number": entry.number,
        "id": call.call_id,
        "at": moment(call.started_at, fraction=True),
        "ended_at": moment(call.ended_at, fraction=True),
        "tool": call.tool,
        "target": target_of_call(call),
        "caller": call.caller,
        "added": added,
        "removed": removed,
        "status": call.status,
        "error_code": call.error_code,
        "summary": call.summary,
        "first_record": entry.first,
        "last_record": entry.last,
    }
