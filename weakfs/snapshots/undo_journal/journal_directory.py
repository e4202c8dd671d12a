"""The directories of journals: removing one when the work in it has ended, and telling whether one is still new."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT

from weakfs.snapshots.directory.entries import DIRECTORY
from weakfs.snapshots.directory.entries import remove as remove_entry

logger = logging.getLogger("weakfs.snapshots")

# The prefix of the names of directories that hold deleted entries which cannot be removed.
UNREMOVABLE = "unremovable-"


def is_new(path: str) -> bool:
    """Return whether the directory of a journal may still get a log."""
    return time.time() - os.stat(path).st_mtime < 10


def remove_journal(path: str) -> None:
    """Remove the directory of a journal, or rename it if something in it cannot be removed.

    That may belong to another user, or be a mount point.
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


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
