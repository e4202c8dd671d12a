"""Whether a call may undo work: each change that this would make is checked, and the message names no files."""

from __future__ import annotations

from collections.abc import Iterable
from errno import EACCES

from weakfs.errors import fault
from weakfs.session import MergedPath, Reversion
from weakfs.tools.errors import LimitExceeded, OperationForbidden, PolicyDenied
from weakfs.tools.permissions.decisions import Access


def check_reversion(access: Access, filesystem_id: str | None, done: Reversion, conflicts: Iterable[str]) -> None:
    """Raise `PermissionError` or `LimitExceeded` unless a call may make the changes of `done`.

    The rules of `access` are about the files of one filesystem, with the id `filesystem_id` in records. The message
    names no files, because the call did not name them either.
    """
    message = (
        "cannot undo this: it changed files that may not be changed here; undo another call, or only the "
        "paths that are allowed"
    )
    if not done.filesystems <= {filesystem_id}:
        # Rules about paths say nothing about the files of another filesystem.
        raise fault(PermissionError, EACCES, message)
    try:
        _check_changes(access, done.changes)
        for path in conflicts:
            _check_taken_back(access, path)
    except OperationForbidden:
        raise
    except LimitExceeded:
        if all(access.may_list(one.path) for one in done.changes):
            raise
        raise LimitExceeded(
            "cannot undo this: it would change more than one call may change; undo another call, or only some paths"
        ) from None
    except PolicyDenied as error:
        raise PolicyDenied(message, error.reason) from None
    except PermissionError:
        raise fault(PermissionError, EACCES, message) from None


def _check_changes(access: Access, changes: Iterable[MergedPath]) -> None:
    for change in changes:
        # Changes to slices without paths are not checked: they concern no files.
        if not change.path.startswith("/"):
            continue
        for path in filter(None, (change.source, change.path)):
            _check_taken_back(access, path)
            access.check_changes((path,))
        if all(map(access.may_show, filter(None, (change.source, change.path)))):
            access.check_size(change.path, change.bytes_added)
        elif change.change != "removed":
            access.check_unmeasured(change.path, "the contents that would be restored are kept out of answers")
        if change.source is not None:
            access.check_transfer(change.source, change.path)


def _check_taken_back(access: Access, path: str) -> None:
    """Raise `PermissionError` unless an entry may be read and changed, which merging its versions requires."""
    access.check("write", path)
    denied = access.denial("read", path)
    if denied is not None:
        raise denied
