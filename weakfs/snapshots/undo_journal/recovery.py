"""Recovery: undoing the journals of processes that have ended, and reading the journals of running ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import IO

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.platforms import fcntl
from weakfs.reducers.tree.node import Segments
from weakfs.session.durable.commits.uncertain_commits import was_stored_anywhere
from weakfs.session.external_filesystems import CommitPlace
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.hard_links import Inode
from weakfs.snapshots.undo_journal.journal import Journal
from weakfs.snapshots.undo_journal.log import BEGUN, PREPARED, is_elsewhere, open_log, read_frames
from weakfs.snapshots.undo_journal.undo import RestoreManifest

# Returns whether a commit was stored.
WasStored = Callable[[CommitPlace], bool]


@define
class Recovery:
    """Other processes' journals: how many were undone, and the paths changed by those still in progress."""

    undone: int = 0
    in_progress: list[list[Segments]] = field(factory=list[list[Segments]])


def recover_journals(
    disk: HostDirectory,
    start: str,
    own: Collection[str],
    restore_manifest: RestoreManifest,
    was_stored: WasStored = was_stored_anywhere,
    *,
    keeps_files: bool = False,
) -> Recovery:
    """Undo the unfinished work of processes that have ended, and list the paths that running processes have changed.

    `start` is the path prefix of this directory's journals; `own` are journals to skip. Journals that belong elsewhere
    are set aside. Work whose commit was stored is finished. With `keeps_files`, all work counts as finished: the files
    stay as those processes left them. Raises what `was_stored` raises, with nothing changed.
    """
    found = Recovery()
    left: list[Journal] = []
    try:
        for path in _journals(start, own):
            try:
                journal = Journal.taken_over(disk, path, restore_manifest)
            except BlockingIOError:
                found.in_progress.append(_changed(path))
            except FileNotFoundError:
                # The work was committed, or another process recovered it first.
                continue
            else:
                if journal is not None:
                    left.append(journal)
        # All outcomes are known before anything is undone.
        stored = [any(map(was_stored, journal.commits)) for journal in left]
        for journal, is_stored in zip(left, stored, strict=True):
            if is_stored or keeps_files:
                journal.close()
            else:
                found.undone += journal.mark > 0
                journal.undo()
    finally:
        for journal in left:
            journal.release()
    return found


def count_unfinished(disk: HostDirectory, start: str) -> int:
    """Return how many journals were left unfinished by processes that have ended; change nothing.

    Those that are damaged count, and those that belong elsewhere do not.
    """
    left = 0
    for path in _journals(start):
        with suppress(OSError), os.fdopen(open_log(path), "rb") as log:
            fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
            left += os.fstat(log.fileno()).st_size > 0 and not _is_elsewhere(disk, log, path)
    return left


def _is_elsewhere(disk: HostDirectory, log: IO[bytes], path: str) -> bool:
    try:
        for frame, _ in read_frames(log, path):
            return frame["op"] == BEGUN and is_elsewhere(frame, os.fstat(log.fileno()), os.fstat(disk.descriptor))
    except OSError:
        pass
    return False


@frozen
class HeldNames:
    """The names of files in all journals of a disk, also in directories that they keep."""

    start: str

    def links_to(self, inode: Inode) -> int:
        """Return how many names of a file the journals hold. O(entries in the journals)."""
        count, stack = 0, _journals(self.start)
        while stack:
            with suppress(FileNotFoundError, PermissionError), os.scandir(stack.pop()) as listing:
                for entry in listing:
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
                    elif entry.inode() == inode[1]:
                        status = entry.stat(follow_symlinks=False)
                        count += (status.st_dev, status.st_ino) == inode
        return count


def _changed(path: str) -> list[Segments]:
    """Return the paths that a unit of work has changed so far."""
    changed: list[Segments] = []
    with suppress(FileNotFoundError), os.fdopen(open_log(path), "rb") as stream:
        for frame, _ in read_frames(stream, path):
            if frame["op"] in (BEGUN, PREPARED):
                continue
            changed.append(tuple(frame["path"]))
            if "to" in frame:
                changed.append(tuple(frame["to"]))
            changed += map(tuple, frame.get("names", ()))
    return changed


def _journals(start: str, own: Collection[str] = ()) -> list[str]:
    """Return the directories of all journals with this path prefix, except one's own, newest first."""
    folder, _, name = start.rpartition("/")
    found: list[tuple[int, str]] = []
    with suppress(FileNotFoundError), os.scandir(folder) as listing:
        for entry in listing:
            with suppress(FileNotFoundError):
                is_one = entry.name.startswith(f"{name}-") and entry.path not in own
                if is_one and entry.is_dir(follow_symlinks=False):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    return [path for _, path in sorted(found, reverse=True)]
