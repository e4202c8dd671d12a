"""Patches: V4A, unified diffs and SEARCH/REPLACE blocks, computed in memory, then written in full or not at all."""

from weakfs.editing.patches.apply import PatchFormat, PatchOps, PatchReport, apply_patch
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
from weakfs.editing.patches.staging import HunkFit

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
