"""Text editing: pure functions that compute changes, for tools and programs that then write them.

Names are imported from their modules when they are first used: most tools edit nothing.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.editing.hints.refusals import (
        AmbiguousIndentation,
        AmbiguousTarget,
        EditError,
        EmptyOldString,
        NoChange,
        TargetNotFound,
    )
    from weakfs.editing.patches import (
        DeleteTargetNotFound,
        HunkFit,
        HunkRejected,
        PatchError,
        PatchFormat,
        PatchOps,
        PatchParseError,
        PatchPathForbidden,
        PatchProblem,
        PatchReport,
        UpdateTargetNotFound,
        UpdateTargetNotText,
        apply_patch,
    )
    from weakfs.editing.replacement import Replacement, replace

__all__ = [
    "AmbiguousIndentation",
    "AmbiguousTarget",
    "DeleteTargetNotFound",
    "EditError",
    "EmptyOldString",
    "HunkFit",
    "HunkRejected",
    "NoChange",
    "PatchError",
    "PatchFormat",
    "PatchOps",
    "PatchParseError",
    "PatchPathForbidden",
    "PatchProblem",
    "PatchReport",
    "Replacement",
    "TargetNotFound",
    "UpdateTargetNotFound",
    "UpdateTargetNotText",
    "apply_patch",
    "replace",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "hints.refusals": "AmbiguousIndentation AmbiguousTarget EditError EmptyOldString NoChange TargetNotFound",
        "patches": (
            "DeleteTargetNotFound HunkFit HunkRejected PatchError PatchFormat PatchOps PatchParseError "
            "PatchPathForbidden PatchProblem PatchReport UpdateTargetNotFound UpdateTargetNotText apply_patch"
        ),
        "replacement": "Replacement replace",
    },
)
