"""Tools for the history of a session: `timeline` and `snapshot`, in addition to `weakfs.tools.HISTORY_TOOLS`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from attrs import evolve, field, frozen

from weakfs.filesystem import normalize
from weakfs.filesystem.paths import is_within
from weakfs.history.plain_values import moment
from weakfs.history.timeline_rows import ChangedFile, TimelineRow, timeline
from weakfs.history.tree_patch import LETTERS
from weakfs.messages import one_line, plural
from weakfs.session import SessionError
from weakfs.session.external_filesystems import recorded_id
from weakfs.tools import HISTORY_TOOLS, Receipt, Tool, ToolContext, ToolResult, ToolValidationError, param
from weakfs.tools.permissions.guard import guard_of, point_of
from weakfs.tools.results import answer, summarize

# The maximum number of files that a row of the message names.
MOST_FILES = 8
# The letters of changes, by names from a receipt.
SIGNS = dict[str, str](LETTERS.items())


@frozen
class TimelineParams:
    """The parameters of `timeline`."""

    limit: int = field(default=20, metadata=param("how many of the newest rows to show", at_least=1))
    path: str | None = field(default=None, metadata=param("show only what changed this file or directory"))


@frozen
class TimelineFile:
    """One file that a row changed, and the numbers of lines if they are known."""

    path: str
    change: str
    source: str | None = None
    lines_added: int | None = None
    lines_removed: int | None = None


@frozen(kw_only=True)
class TimelineEntry:
    """One row of the answer; `call_id` is an argument for `revert`, `last_record` for `restore`."""

    kind: str
    at: str
    action: str
    target: str
    status: str
    call_id: str | None = None
    caller: str | None = None
    first_record: int | None = None
    last_record: int | None = None
    files: tuple[TimelineFile, ...] = ()


@frozen(kw_only=True)
class TimelineReceipt(Receipt):
    """The rows that `timeline` found, oldest first."""

    rows: tuple[TimelineEntry, ...] | None = None


@frozen
class SnapshotParams:
    """The parameters of `snapshot`."""

    tag: str | None = field(default=None, metadata=param("a name to restore it by"))


@frozen(kw_only=True)
class SnapshotReceipt(Receipt):
    """The snapshot that was taken."""

    snapshot_id: str | None = None
    tag: str | None = None


def timeline_handler(params: TimelineParams, *, context: ToolContext) -> ToolResult[TimelineReceipt]:
    """Return the newest rows of the session's timeline. O(records)."""
    if (guard := guard_of(context.filesystem)) is not None:
        guard.check_included("list")
    below, point = params.path, point_of(context.filesystem)
    if below is not None:
        below = normalize(below if point is None or below.startswith("/") else f"{point.path}/{below}")
    newest = deque(_rows(context, below), maxlen=params.limit)
    rows = tuple(map(_entry, newest))
    receipt = TimelineReceipt(summary_text=summarize(plural(len(rows), "row")), rows=rows)
    return answer(receipt, "\n".join((*map(_line, rows), f"[{receipt.summary_text}]")))


def snapshot_handler(params: SnapshotParams, *, context: ToolContext) -> ToolResult[SnapshotReceipt]:
    """Take a snapshot of the session and its directories."""
    if (guard := guard_of(context.filesystem)) is not None:
        guard.check_included("write")
    if params.tag is not None and not params.tag.strip():
        raise ToolValidationError("tag: it is blank; give a name, or leave it out")
    try:
        taken = context.session.snapshot(params.tag)
    except SessionError as error:
        raise ToolValidationError(str(error)) from error
    name = taken.snapshot_id if taken.tag is None else taken.tag
    receipt = SnapshotReceipt(
        summary_text=summarize(f"took the snapshot {name}"), snapshot_id=taken.snapshot_id, tag=taken.tag
    )
    return answer(receipt)


def _rows(context: ToolContext, below: str | None) -> Iterator[TimelineRow]:
    own = recorded_id(context.filesystem, context.session.attached)
    for row in timeline(context.session):
        named = tuple(_named_file(context, one) if one.filesystem == own else one for one in row.files)
        # Rules about paths say nothing about the files of another filesystem.
        known = named if guard_of(context.filesystem) is None else tuple(one for one in named if one.filesystem == own)
        shown = tuple(filter(None, (_shown_file(context, one) for one in known)))
        kept = evolve(row, files=shown, target=_shown_target(context, _named_row(context, row, own), known))
        changed = {path for one in kept.files for path in (one.path, one.source) if path is not None}
        if below is None or any(is_within(path, below) for path in changed):
            yield kept


def _named_file(context: ToolContext, file: ChangedFile) -> ChangedFile:
    """Return a file with the paths that calls use."""
    point = point_of(context.filesystem)
    if point is None:
        return file
    source = None if file.source is None else point.mounted(file.source)
    return evolve(file, path=point.mounted(file.path), source=source)


def _named_row(context: ToolContext, row: TimelineRow, own: str | None) -> TimelineRow:
    """Return a row whose target has the form that calls use: in records made outside calls it has another."""
    point = point_of(context.filesystem)
    is_own_path = any(row.target in (one.path, one.source) for one in row.files if one.filesystem == own)
    return (
        row if point is None or row.kind == "call" or not is_own_path else evolve(row, target=point.mounted(row.target))
    )


def _is_shown(context: ToolContext, path: str) -> bool:
    guard = guard_of(context.filesystem)
    return guard is None or (guard.may_show(path) and guard.may_list(path))


def _shown_file(context: ToolContext, file: ChangedFile) -> ChangedFile | None:
    """Return a file of a row, or `None` if it is hidden; one that was moved from a hidden path is shown as added."""
    if not _is_shown(context, file.path):
        return None
    if file.source is None or _is_shown(context, file.source):
        return file
    return evolve(file, change="added", source=None)


def _shown_target(context: ToolContext, row: TimelineRow, known: tuple[ChangedFile, ...]) -> str:
    """Return the target of a row, or "" if it might reveal a hidden file or a text of another caller."""
    own = row.caller is not None and row.caller == context.caller
    if guard_of(context.filesystem) is None or row.kind == "snapshot" or own:
        return row.target
    is_known = any(row.target in (one.path, one.source) for one in known)
    return row.target if is_known and _is_shown(context, row.target) else ""


def _entry(row: TimelineRow) -> TimelineEntry:
    return TimelineEntry(
        kind=row.kind,
        at=moment(row.at, fraction=True),
        action=row.action,
        target=row.target,
        status=row.status,
        call_id=row.name,
        caller=row.caller,
        first_record=row.first,
        last_record=row.last,
        files=tuple(TimelineFile(one.path, one.change, one.source, one.added, one.removed) for one in row.files),
    )


def _line(row: TimelineEntry) -> str:
    records = "" if row.last_record is None else f" record {row.last_record}"
    head = f"{row.at} {row.kind} {row.call_id or ''}{records}: {row.action} {row.target} {row.status}"
    files = [f"  {SIGNS[one.change]} {one_line(one.path)}" for one in row.files[:MOST_FILES]]
    more = [f"  and {len(row.files) - MOST_FILES} more"] if len(row.files) > MOST_FILES else []
    return "\n".join((" ".join(head.split()), *files, *more))


TIMELINE = Tool(
    "timeline",
    "Show what happened to the files, oldest first: calls with their ids, changes outside calls, snapshots, and the "
    "files that each changed. revert takes the id of a call, restore the number of a record or a snapshot's tag.",
    TimelineParams,
    timeline_handler,
    read_only=True,
    receipt=TimelineReceipt,
    operation="list",
)

SNAPSHOT = Tool(
    "snapshot",
    "Take a snapshot of the files as they are now, so that restore can bring them back.",
    SnapshotParams,
    snapshot_handler,
    receipt=SnapshotReceipt,
    operation="write",
)

# The history of a session, for toolsets that are served: `tools=[*DEFAULT_TOOLS, *SESSION_TOOLS]`.
SESSION_TOOLS: tuple[Tool, ...] = (TIMELINE, *HISTORY_TOOLS, SNAPSHOT)
