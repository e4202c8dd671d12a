"""The journals of others over the same directory: of processes that are gone, and of those that are at work."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from attrs import define, field

from weakfs.filesystem.results import Note
from weakfs.platforms import fcntl
from weakfs.reducers.tree.node import Segments
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.journal.journal import LOG, Journal, read_frames


@define
class Others:
    """What was found: how many pieces of work were undone, and the paths that those still going on have changed."""

    undone: int = 0
    at_work: list[list[Segments]] = field(factory=list[list[Segments]])


def settle(
    disk: HostDirectory, start: str, own: Collection[str], go_back: Callable[[str], Iterable[Note] | None]
) -> Others:
    """Undo what processes that are gone left unfinished, and see what others are at.

    `start` is how the paths of this directory's journals begin, `own` are those that are not to be looked at.
    """
    found = Others()
    for path in _journals(start):
        if path in own:
            continue
        try:
            journal = Journal.taken_over(disk, path, go_back)
        except BlockingIOError:
            found.at_work.append(_changed(path))
        except FileNotFoundError:
            # It ended, or another process was quicker.
            continue
        else:
            if journal is not None:
                found.undone += journal.mark > 0
                journal.undo()
    return found


def count_left_behind(start: str) -> int:
    """Tell how many pieces of work processes that are gone left unfinished, and change nothing."""
    left = 0
    for path in _journals(start):
        with suppress(OSError):
            log = os.open(os.path.join(path, LOG.decode()), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
                left += os.fstat(log).st_size > 0
            finally:
                os.close(log)
    return left


def _changed(path: str) -> list[Segments]:
    """Give the paths that a piece of work has changed so far."""
    changed: list[Segments] = []
    with suppress(FileNotFoundError), open(os.path.join(path, LOG.decode()), "rb") as stream:
        for _, frame in read_frames(stream):
            changed.append(tuple(frame["path"]))
            if "to" in frame:
                changed.append(tuple(frame["to"]))
            changed += map(tuple, frame.get("names", ()))
    return changed


def _journals(start: str) -> list[str]:
    """Give the directories of all journals whose paths begin so, the newest first."""
    folder, name = os.path.split(start)
    found: list[tuple[int, str]] = []
    with suppress(FileNotFoundError), os.scandir(folder) as listing:
        for entry in listing:
            with suppress(FileNotFoundError):
                if entry.name.startswith(f"{name}-") and entry.is_dir(follow_symlinks=False):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    return [path for _, path in sorted(found, reverse=True)]
