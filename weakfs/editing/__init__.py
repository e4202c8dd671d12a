"""Editing text: pure functions that say what changes, for tools and programs that then write it."""

from weakfs.editing.refusals import AmbiguousTarget, EditError, EmptyOldString, NoChange, TargetNotFound
from weakfs.editing.replace import Replacement, replace

__all__ = [
    "AmbiguousTarget",
    "EditError",
    "EmptyOldString",
    "NoChange",
    "Replacement",
    "TargetNotFound",
    "replace",
]
