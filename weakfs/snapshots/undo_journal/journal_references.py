"""References from journals: the trees in a store that unfinished work needs. The journals are only read."""

from __future__ import annotations

import os
from contextlib import suppress

from weakfs.snapshots.store.atomic_files import names_in
from weakfs.snapshots.undo_journal.journal_directory import ELSEWHERE
from weakfs.snapshots.undo_journal.log import open_log, read_frames


def trees_needed(store: str) -> set[bytes]:
    """Return the manifests of trees to which unfinished work, abandoned or not, might be rolled back.

    A compaction keeps these trees. The journals of all directories that keep their snapshots in this store are
    included.
    """
    needed: set[bytes] = set()
    folder = os.path.join(store, "journals")
    for name in names_in(folder):
        if name.startswith(ELSEWHERE):
            continue
        journal = os.path.join(folder, name)
        # A journal without a log has not begun or has ended.
        with suppress(FileNotFoundError, NotADirectoryError), os.fdopen(open_log(journal), "rb") as log:
            needed.update(
                bytes.fromhex(frame["ref"]) for frame, _ in read_frames(log, journal) if frame["op"] == "tree"
            )
    return needed
