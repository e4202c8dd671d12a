"""The lock files of git, which stay behind if git is killed or the power fails.

Git creates `NAME.lock` to change the file `NAME`, and refuses to work while it exists: it does not know who made it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

from weakfs.snapshots.store import atomic_files as disk

# The directories of a repository with files that our commands lock, and the one where they do so at any depth. Others
# are locked only by users, perhaps for as long as `git maintenance` runs.
FOLDERS = ("", "objects/info", "objects/info/commit-graphs")
REFS = "refs"
# A new version of this file is written beside its lock, and may not exist either.
NEW = "packed-refs.new"
# Locks that are younger (in seconds) may be those of a user's git; our own commands wait as long for them.
YOUNG = 10
# The pause between two looks at a young lock, in seconds.
PAUSE = 0.05


def remove_dead_locks(repository: str) -> None:
    """Remove the lock files in a repository of a git that has ended. No git of ours may be working there."""
    for path in _lock_files(repository):
        with suppress(FileNotFoundError):
            if not _is_young(path):
                os.unlink(path)


def wait_for_young_locks(repository: str) -> None:
    """Wait until all lock files are gone or old, but not much longer than `YOUNG` seconds.

    `git gc` does not wait for locks. If a user's git takes new ones all the time, it fails.
    """
    end = time.monotonic() + YOUNG + PAUSE
    while any(map(_is_young, _lock_files(repository))) and time.monotonic() < end:
        time.sleep(PAUSE)


def _is_young(path: str) -> bool:
    try:
        # A lock from the future is old as well: the clock has been set back since.
        return abs(time.time() - os.lstat(path).st_mtime) <= YOUNG
    except FileNotFoundError:
        return False


def _lock_files(repository: str) -> Iterator[str]:
    for folder in FOLDERS:
        parent = os.path.join(repository, folder)
        for name in disk.names_in(parent):
            if name.endswith(".lock") or (name == NEW and not folder):
                yield os.path.join(parent, name)
    for parent, _, names in os.walk(os.path.join(repository, REFS)):
        yield from (os.path.join(parent, name) for name in names if name.endswith(".lock"))
