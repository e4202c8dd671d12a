"""Messages for a missing file: what the patch itself did with it, or which other file may be meant."""

from __future__ import annotations

from collections.abc import Mapping

from weakfs.filesystem import missing_path as absence
from weakfs.filesystem.protocol import Filesystem


def why_absent(fs: Filesystem, path: str, gone: Mapping[str, str | None]) -> str:
    """Return why there is no file at a path, and the remedy; `gone` maps paths to where the patch moved the file."""
    if path not in gone:
        return absence.why_absent(fs, path, excluded=gone.__contains__)
    to = gone[path]
    reason = "there is no such file then: an earlier operation of this patch"
    if to is None:
        return f"{reason} deletes it; put this one before that, or leave it out"
    return f"{reason} moves it to {to!r}; use that path"
