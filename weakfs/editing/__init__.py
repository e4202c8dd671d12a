"""Text editing: pure functions that compute changes, for tools and programs that then write them."""

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
from weakfs.editing.replace import Replacement, replace

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
