"""Looking at the journals of a directory without touching them: what was left unfinished, and what they need."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress

import orjson

from weakfs.snapshots.journal import LOG


def unfinished(folder: str) -> int:
    """Count the pieces of work that processes which are gone left unfinished. `folder` is where journals lie."""
    found = 0
    for log in _logs(folder):
        if os.fstat(log).st_size:
            with suppress(BlockingIOError):
                # Whoever is at work holds its journal.
                fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
                found += 1
    return found


def trees_needed(store: str) -> set[bytes]:
    """Give the manifests of the trees that unfinished work, left behind or not, would be put back to.

    For a compaction: those of all directories that have their snapshots in this store.
    """
    needed: set[bytes] = set()
    for folder in _folders(os.path.join(store, "journals")):
        for log in _logs(folder):
            with open(log, "rb", closefd=False) as stream:
                for line in stream:
                    if line.endswith(b"\n") and (frame := orjson.loads(line))["op"] == "tree":
                        needed.add(bytes.fromhex(frame["ref"]))
    return needed


def _folders(journals: str) -> list[str]:
    """List the folders that hold journals: one for each directory."""
    with suppress(FileNotFoundError), os.scandir(journals) as found:
        return [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
    return []


def _logs(folder: str) -> Iterator[int]:
    """Open the log of one journal after another."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as journals:
        for journal in journals:
            if not journal.is_dir(follow_symlinks=False):
                continue
            try:
                log = os.open(os.path.join(os.fsencode(journal.path), LOG), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                # Not begun, or ended.
                continue
            try:
                yield log
            finally:
                os.close(log)
