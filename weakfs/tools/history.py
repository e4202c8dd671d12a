"""`undo`, `redo`, `revert` and `restore`: tools with which a model undoes earlier changes."""

from __future__ import annotations

from errno import EACCES, EROFS
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Literal, Protocol

from attrs import evolve, field

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.messages import one_line, plural
from weakfs.session import ConflictEntry, MergeConflict, MergedPath, Reversion, SessionError, UnknownSnapshot
from weakfs.session.external_filesystems import recorded_id
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.errors import ToolValidationError
from weakfs.tools.permissions import GuardedFilesystem
from weakfs.tools.permissions.guard import point_of
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.slices import ToolCall
from weakfs.tools.tool import Tool

if TYPE_CHECKING:
    from weakfs.backends.mounted.mount_point import MountPoint

OnConflict = Literal["raise", "ours", "theirs", "markers"]

# The maximum number of paths, and of calls, that a message names.
MOST_PATHS = 50
MOST_CALLS = 8
# The maximum number of digits in the number of a record.
MOST_DIGITS = 18

_ABOUT_PREVIEW = param("only show what would change")
_ABOUT_CONFLICT = param(
    "what to do with lines that later work changed too: raise changes nothing, theirs reverts them, ours keeps them, "
    "markers writes both"
)
_ABOUT_PATHS = param("only these files and directories")


class TakeBack(Protocol):
    """A function that undoes work, or only says what it would change."""

    def __call__(self, *, preview: bool, on_conflict: OnConflict) -> Reversion: ...


@frozen
class UndoParams:
    """The parameters of `undo` and `redo`."""

    count: int = field(default=1, metadata=param("how many operations", at_least=1))
    preview: bool = field(default=False, metadata=_ABOUT_PREVIEW)
    on_conflict: OnConflict = field(default="raise", metadata=_ABOUT_CONFLICT)


@frozen
class RevertParams:
    """The parameters of `revert`."""

    call_id: str = field(metadata=param("the id of the call"))
    paths: tuple[str, ...] | None = field(default=None, metadata=_ABOUT_PATHS)
    preview: bool = field(default=False, metadata=_ABOUT_PREVIEW)
    on_conflict: OnConflict = field(default="raise", metadata=_ABOUT_CONFLICT)


@frozen
class RestoreParams:
    """The parameters of `restore`."""

    moment: str = field(metadata=param("the tag or id of a snapshot, or the number of a record"))
    paths: tuple[str, ...] | None = field(default=None, metadata=_ABOUT_PATHS)
    preview: bool = field(default=False, metadata=_ABOUT_PREVIEW)


@frozen(kw_only=True)
class ReversionReceipt(Receipt):
    """What was undone, or with `preview` would be undone; see `weakfs.session.Reversion`.

    `conflicts` are the paths that would remain in conflict. The counts leave out lines and bytes of files whose
    contents are withheld, and entries that may not be listed are not named.
    """

    preview: bool | None = None
    changes: tuple[MergedPath, ...] | None = None
    conflicts: tuple[str, ...] | None = None
    foreign: tuple[str, ...] | None = None
    detached: tuple[str, ...] | None = None


def undo_handler(params: UndoParams, *, context: ToolContext) -> ToolResult[ReversionReceipt]:
    """Undo the last operations of the session, whoever made them."""
    return _reversion(context, params, partial(context.session.undo, params.count))


def redo_handler(params: UndoParams, *, context: ToolContext) -> ToolResult[ReversionReceipt]:
    """Redo what the last undos undid."""
    return _reversion(context, params, partial(context.session.redo, params.count))


def revert_handler(params: RevertParams, *, context: ToolContext) -> ToolResult[ReversionReceipt]:
    """Undo one call, and keep what came later."""

    def revert(*, preview: bool, on_conflict: OnConflict) -> Reversion:
        try:
            return context.session.revert(
                # Ids are recorded in this form.
                one_line(params.call_id),
                paths=_own_paths(context, params.paths),
                preview=preview,
                on_conflict=on_conflict,
            )
        except SessionError as error:
            known = _known_calls(context)
            if type(error) is SessionError and known:
                raise SessionError(f"{error}; the newest calls with changes are {known}") from error
            raise

    return _reversion(context, params, revert)


def restore_handler(params: RestoreParams, *, context: ToolContext) -> ToolResult[ReversionReceipt]:
    """Restore the files as they were at an earlier moment."""
    is_number = params.moment.isascii() and params.moment.isdigit() and len(params.moment) <= MOST_DIGITS
    moment = int(params.moment) if is_number else params.moment
    paths = _own_paths(context, params.paths)

    def restore(*, preview: bool, on_conflict: OnConflict) -> Reversion:
        return context.session.restore(moment, paths=paths, preview=preview, foreign="keep")

    return _reversion(context, params, restore)


HISTORY_TOOLS: tuple[Tool, ...] = (
    Tool(
        "undo",
        "Undo the last operation that changed files (a call or a restore), whoever made it. The answer names the "
        "files; read them again.",
        UndoParams,
        undo_handler,
        receipt=ReversionReceipt,
        operation="write",
    ),
    Tool(
        "redo",
        "Redo what the last undo undid, if nothing has changed since.",
        UndoParams,
        redo_handler,
        receipt=ReversionReceipt,
        operation="write",
    ),
    Tool(
        "revert",
        "Undo what one earlier call changed, and keep later changes. Fails if later work changed the "
        "same lines, unless on_conflict says what to do.",
        RevertParams,
        revert_handler,
        receipt=ReversionReceipt,
        operation="write",
    ),
    Tool(
        "restore",
        "Restore files as they were at an earlier moment: all of them, or those at paths. undo reverses it.",
        RestoreParams,
        restore_handler,
        receipt=ReversionReceipt,
        operation="write",
    ),
)
"""Tools that undo work. They are not among the default tools: `tools=[*DEFAULT_TOOLS, *HISTORY_TOOLS]`."""


def _reversion(
    context: ToolContext,
    params: UndoParams | RevertParams | RestoreParams,
    take_back: TakeBack,
) -> ToolResult[ReversionReceipt]:
    fs, preview = require_filesystem(context), params.preview
    on_conflict = "raise" if isinstance(params, RestoreParams) else params.on_conflict
    if fs.read_only:
        raise fault(PermissionError, EROFS, "cannot undo work: the filesystem is read-only; use a writable one")
    context.check_deadline()
    guard = fs if isinstance(fs, GuardedFilesystem) else None
    if guard is not None:
        guard.check_included("write")
    try:
        if guard is not None and (on_conflict != "raise" or context.session.attached):
            # A conflict in a forbidden file stays a conflict, whatever the resolution.
            found = _mounted(context, take_back(preview=True, on_conflict="raise"))
            guard.check_reversion(found, [entry.path for entry in found.conflicts])
        done = _mounted(context, take_back(preview=preview, on_conflict=on_conflict))
    except MergeConflict as error:
        if guard is None:
            raise
        # The message may name paths and show lines of forbidden files.
        named = _mounted_conflicts(context, error.conflicts)
        guard.check_reversion(Reversion(how="undo", records=()), [entry.path for entry in named])
        raise _listed_conflict(guard, error, named) from error.__cause__
    except SessionError as error:
        if type(error) not in (SessionError, UnknownSnapshot):
            raise
        raise ToolValidationError(str(error)) from error
    conflicts = tuple(dict.fromkeys(entry.path for entry in done.conflicts))
    unlisted = 0
    if guard is not None:
        # If a change is refused, the call is rolled back.
        guard.check_reversion(done, conflicts)
        listed = _listed(context, guard, done)
        unlisted = len(done.changes) - len(listed.changes)
        done = evolve(
            listed, changes=tuple(one if _is_shown(guard, one) else _uncounted(one) for one in listed.changes)
        )
    listed_conflicts = tuple(path for path in conflicts if guard is None or _may_list(guard, path))
    receipt = ReversionReceipt(
        summary_text=summarize(_summary(done, len(conflicts), unlisted, preview=preview)),
        preview=preview,
        changes=done.changes,
        conflicts=listed_conflicts,
        foreign=done.foreign,
        detached=done.detached,
    )
    return answer(receipt, "\n".join((*_lines(done, listed_conflicts), f"[{receipt.summary_text}]")))


def _is_shown(fs: GuardedFilesystem, change: MergedPath) -> bool:
    return all(fs.may_show(path) for path in filter(None, (change.source, change.path)))


def _uncounted(change: MergedPath) -> MergedPath:
    """Return a change without its counts, which would reveal something about withheld contents."""
    return evolve(change, lines_added=0, lines_removed=0, bytes_added=0, bytes_removed=0)


def _may_list(guard: GuardedFilesystem, path: str) -> bool:
    # A change of a slice without paths has the slice's tag instead of a path.
    return not path.startswith("/") or guard.may_list(path)


def _listed(context: ToolContext, guard: GuardedFilesystem, done: Reversion) -> Reversion:
    """Return a reversion without the names of entries that may not be listed."""
    changes = tuple(filter(None, (_listed_change(guard, one) for one in done.changes)))
    own = recorded_id(guard, context.session.attached)
    has_others = any(one.filesystem_id != own for one in context.session.attached)
    # These paths may belong to any of the filesystems.
    foreign = () if has_others else tuple(path for path in done.foreign if guard.may_list(path))
    return evolve(done, changes=changes, foreign=foreign)


def _listed_change(guard: GuardedFilesystem, change: MergedPath) -> MergedPath | None:
    """Return a change without names that may not be listed; a move from or to such a name keeps only the other name."""
    if change.source is None or _may_list(guard, change.source):
        if _may_list(guard, change.path):
            return change
        return None if change.source is None else MergedPath(change.source, "removed")
    return MergedPath(change.path, "added") if _may_list(guard, change.path) else None


def _listed_conflict(
    guard: GuardedFilesystem, conflict: MergeConflict, named: tuple[ConflictEntry, ...]
) -> MergeConflict:
    """Return a conflict without entries that may not be listed; raise `PermissionError` if none remains.

    `named` are its entries with the paths that calls use.
    """
    listed = tuple(
        one
        for one, mounted in zip(conflict.conflicts, named, strict=True)
        if all(_may_list(guard, path) for path in mounted.paths)
    )
    if not listed:
        raise fault(
            PermissionError,
            EACCES,
            "cannot undo this: later work changed files that may not be listed here; undo another call, or set "
            "on_conflict",
        )
    return conflict if len(listed) == len(conflict.conflicts) else MergeConflict(listed)


def _own_paths(context: ToolContext, paths: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return paths or patterns in the form used in records: without the mount point of the files."""
    point = point_of(context.filesystem)
    if point is None or paths is None:
        return paths
    own: list[str] = []
    for path in paths:
        # A relative path starts at the mount point already.
        found = point.own(path) if path.startswith("/") else path
        if found is None:
            raise ToolValidationError(
                f"paths: {path!r} is outside {point.path!r}, where all files are; give a path there"
            )
        own.append(found)
    return tuple(own)


def _mounted(context: ToolContext, done: Reversion) -> Reversion:
    """Return a reversion with the paths that calls use."""
    point = point_of(context.filesystem)
    if point is None:
        return done
    return evolve(
        done,
        changes=tuple(
            evolve(
                one,
                path=_named(point, one.path),
                source=None if one.source is None else _named(point, one.source),
            )
            for one in done.changes
        ),
        conflicts=_mounted_conflicts(context, done.conflicts),
        foreign=tuple(_named(point, path) for path in done.foreign),
    )


def _mounted_conflicts(context: ToolContext, conflicts: tuple[ConflictEntry, ...]) -> tuple[ConflictEntry, ...]:
    point = point_of(context.filesystem)
    return conflicts if point is None else tuple(map(point.mounted_conflict, conflicts))


def _named(point: MountPoint, path: str) -> str:
    # A conflict in a slice without paths has the slice's tag instead of a path.
    return point.mounted(path) if path.startswith("/") else path


def _summary(done: Reversion, conflicts: int, unlisted: int, *, preview: bool) -> str:
    parts = [
        f"{done.how}: {plural(len(done.paths), 'path')} {'would change' if preview else 'changed'}, "
        f"+{done.lines_added} -{done.lines_removed} lines, +{done.bytes_added} -{done.bytes_removed} bytes"
    ]
    if unlisted:
        parts.append(f"{plural(unlisted, 'more path')} that may not be listed here")
    if conflicts:
        parts.append(f"{plural(conflicts, 'conflict')}; set on_conflict")
    if done.foreign:
        parts.append(f"{plural(len(done.foreign), 'path')} changed by other programs")
    if done.detached:
        parts.append(f"not attached and left unchanged: {', '.join(done.detached)}")
    parts.append("a preview: nothing was changed" if preview else "read them again" if done.changes else "")
    return "; ".join(filter(None, parts))


def _lines(done: Reversion, conflicts: tuple[str, ...]) -> list[str]:
    every = chain(
        (
            f"{one.change} {one.path if one.source is None else f'{one.source} -> {one.path}'} "
            f"+{one.lines_added} -{one.lines_removed}"
            for one in done.changes
        ),
        (f"conflict {path}" for path in conflicts),
        (f"changed by another program {path}" for path in done.foreign),
    )
    shown = list(islice(every, MOST_PATHS))
    more = sum(1 for _ in every)
    return [*shown, f"and {more} more"] if more else shown


def _known_calls(context: ToolContext) -> str:
    """Name the newest calls that changed something; only the caller's own if some files may not be seen."""
    is_guarded = isinstance(context.filesystem, GuardedFilesystem)
    calls = (
        one
        for one in reversed(context.session[ToolCall].all())
        if one.status == "ok" and one.first_seq and (not is_guarded or one.caller == context.caller is not None)
    )
    return ", ".join(f"{one.call_id} ({one.tool})" for one in islice(calls, MOST_CALLS))
