"""References from journals: the trees in a store that unfinished work needs. The journals are only read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import orjson

from weakfs.snapshots.undo_journal.journal import LOG


def trees_needed(store: str) -> set[bytes]:
    """Return the manifests of trees to which unfinished work, abandoned or not, might be rolled back.

    For a compaction. The journals of all directories that keep their snapshots in this store are included.
    """
    needed: set[bytes] = set()
    for log in _logs(os.path.join(store, "journals")):
        with open(log, "rb") as stream:
            for line in stream:
                if line.endswith(b"\n") and (frame := orjson.loads(line))["op"] == "tree":
                    needed.add(bytes.fromhex(frame["ref"]))
    return needed


def _logs(folder: str) -> Iterator[int]:
    """Yield an open descriptor for the log of each journal; the caller closes it."""
    with suppress(FileNotFoundError), os.scandir(folder) as journals:
        for journal in journals:
            # A journal without a log has not begun or has ended.
            with suppress(FileNotFoundError, NotADirectoryError):
                path = os.path.join(journal.path, os.fsdecode(LOG))
                yield os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
