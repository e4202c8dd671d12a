"""Telling of a file that is not there: what the patch itself did with it, or which other one may be meant."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from weakfs.filesystem.paths import join, parent
from weakfs.filesystem.protocol import Filesystem

# A file that is not there is compared with so many others in its directory.
MOST_NAMES = 1000


def why_absent(fs: Filesystem, path: str, gone: Mapping[str, str | None]) -> str:
    """Say that there is no file at a path, and what to do; `gone` tells where to the patch moved what was there."""
    if path not in gone:
        return f"there is no such file; {_hint(fs, path)}"
    to = gone[path]
    told = "there is no such file then: an earlier operation of this patch"
    if to is None:
        return f"{told} deletes it; put this one before that, or leave it out"
    return f"{told} moves it to {to!r}; use that path"


def _hint(fs: Filesystem, path: str) -> str:
    directory, name = parent(path), path.rpartition("/")[2]
    try:
        names = [entry.name for entry in fs.list(directory)[:MOST_NAMES]]
    except (OSError, ValueError):
        names = []
    near = get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {join(directory, near[0])!r}?"
    return f"list {directory!r} to see what is there"
