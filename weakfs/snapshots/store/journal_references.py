"""What unfinished work needs of a store: read from its journals, which stay as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import orjson

from weakfs.snapshots.journal.journal import LOG


def trees_needed(store: str) -> set[bytes]:
    """Give the manifests of the trees that unfinished work, left behind or not, would be put back to.

    For a compaction: those of all directories that have their snapshots in this store.
    """
    needed: set[bytes] = set()
    for log in _logs(os.path.join(store, "journals")):
        with open(log, "rb") as stream:
            for line in stream:
                if line.endswith(b"\n") and (frame := orjson.loads(line))["op"] == "tree":
                    needed.add(bytes.fromhex(frame["ref"]))
    return needed


def _logs(folder: str) -> Iterator[int]:
    """Open the log of one journal after another; whoever takes one closes it."""
    with suppress(FileNotFoundError), os.scandir(folder) as journals:
        for journal in journals:
            # Without a log it was not begun, or is ended.
            with suppress(FileNotFoundError, NotADirectoryError):
                path = os.path.join(journal.path, os.fsdecode(LOG))
                yield os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
