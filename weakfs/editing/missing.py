"""What to say of a text that is not there: where it nearly is, and why that is not the same."""

from __future__ import annotations

from weakfs.editing.folding import Haystack
from weakfs.editing.refusals import TargetNotFound


def missing(haystack: Haystack, old: str, new: str) -> TargetNotFound:
    return TargetNotFound(
        "the text to replace is not in it; read it again and copy the text exactly, with its white space",
        matches=0,
    )
