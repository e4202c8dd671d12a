"""The directories of journals: removing one when its work has ended, or setting it aside if it belongs elsewhere."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT

from weakfs.snapshots.directory.entries import DIRECTORY
from weakfs.snapshots.directory.entries import remove as remove_entry

logger = logging.getLogger("weakfs.snapshots")

# The prefix of the names of directories that hold deleted entries which cannot be removed.
UNREMOVABLE = "unremovable-"
# The prefix of the names of journals that were copied here, or whose directory was replaced. Nothing undoes them.
ELSEWHERE = "elsewhere-"


def is_new(path: str) -> bool:
    """Return whether the directory of a journal may still get a log."""
    return time.time() - os.stat(path).st_mtime < 10


def remove_journal(path: str) -> None:
    """Remove the directory of a journal, or rename it if something in it cannot be removed.

    Such an entry may belong to another user, or be a mount point.
    """
    folder, name = os.path.split(path)
    with _opened(folder) as directory, suppress(FileNotFoundError):
        try:
            remove_entry(directory, os.fsencode(name))
        except OSError as error:
            if error.errno == ENOENT:
                raise
            # Under another name, it is not taken for a journal again.
            os.rename(name, UNREMOVABLE + name, src_dir_fd=directory, dst_dir_fd=directory)
            logger.warning(
                "cannot remove %r, which holds deleted entries: %s; remove it by hand",
                os.path.join(folder, UNREMOVABLE + name),
                error.strerror,
            )


def set_aside(path: str, root: str) -> None:
    """Rename the directory of a journal that belongs elsewhere, so that nothing in `root` is undone with it."""
    aside = os.path.join(os.path.dirname(path), ELSEWHERE + secrets.token_hex(8))
    os.rename(path, aside)
    logger.warning(
        "unfinished work in the store is not undone in %r: it was copied from another store, or was done in an earlier "
        "directory of that name; remove %r",
        root,
        aside,
    )


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
