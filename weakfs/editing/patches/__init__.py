"""Patches: V4A, unified diffs and SEARCH/REPLACE blocks, computed in memory, then written in full or not at all."""

from typing import TYPE_CHECKING

from weakfs.editing.patches.errors import (
    DeleteTargetNotFound,
    HunkRejected,
    PatchError,
    PatchParseError,
    PatchPathForbidden,
    PatchProblem,
    UpdateTargetNotFound,
    UpdateTargetNotText,
)
from weakfs.editing.patches.formats.dialect import PatchFormat
from weakfs.editing.patches.report import HunkFit, PatchOps, PatchReport
from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.editing.patches.apply import apply_patch

__all__ = [
    "DeleteTargetNotFound",
    "HunkFit",
    "HunkRejected",
    "PatchError",
    "PatchFormat",
    "PatchOps",
    "PatchParseError",
    "PatchPathForbidden",
    "PatchProblem",
    "PatchReport",
    "UpdateTargetNotFound",
    "UpdateTargetNotText",
    "apply_patch",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "apply": "apply_patch",
    },
)
