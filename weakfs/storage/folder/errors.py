"""The errors of the folder engine, with the place of the damage or the cause of the failure."""

from __future__ import annotations

from errno import EBADF, ENOTDIR

from weakfs.storage.errors import StorageDamaged, StorageError


class JournalDamaged(StorageDamaged):
    """A file of a stream is damaged.

    `path` is the file, and `offset` the byte at which the damage begins. `number` is the last frame before the damage,
    up to which everything is intact; `None` if the damage is not in a journal.
    """

    def __init__(self, path: str, offset: int, number: int | None, cause: str) -> None:
        self.path, self.offset, self.number, self.cause = path, offset, number, cause
        whole = "the frames are not affected" if number is None else f"everything up to frame {number} is intact"
        super().__init__(
            f"cannot read {path!r} from byte {offset} on: {cause}; {whole}: restore the file from a backup, or give up "
            f"the damaged part with `weakfs fsck --give-up`"
        )


def failure(action: str, error: OSError) -> StorageError:
    """Return the error for a failed system call; `action` says what could not be done, with the path."""
    # A file without write permission was opened for reading only.
    cause = "Permission denied" if error.errno == EBADF else error.strerror or error
    remedy = "name a folder, or sqlite:PATH" if error.errno == ENOTDIR else "fix the cause and try again"
    failed = StorageError(f"cannot {action}: {cause}; {remedy}")
    failed.errno = error.errno
    return failed
