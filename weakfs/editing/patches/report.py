"""The report on the changes that a patch made, or would make."""

from __future__ import annotations

from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init


@fast_init
@frozen
class PatchOps:
    """The number of operations in a patch. A file that is changed and moved counts in both."""

    add: int = 0
    update: int = 0
    delete: int = 0
    move: int = 0


@fast_init
@frozen
class HunkFit:
    """How one hunk matched: "exact", or which differences in white space and the like were ignored.

    `line` is its first line in the patch; `notes` are sentences on what else was ignored or done.
    """

    path: str
    hunk: int
    line: int
    fit: str
    notes: tuple[str, ...] = ()


@fast_init
@frozen
class PatchReport:
    """What a patch changed, or would change with `dry_run`.

    `changed_paths` are in the order of the patch, with both the old and the new path of a move; `replaced` are those
    where another file was replaced. An unchanged file is in neither. `hunks` says how each hunk matched.
    """

    files_changed: int
    changed_paths: tuple[str, ...]
    ops: PatchOps
    replaced: tuple[str, ...]
    hunks: tuple[HunkFit, ...]
    summary: str
    dry_run: bool
