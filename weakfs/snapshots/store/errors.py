"""What a store raises by itself."""

from __future__ import annotations


class StoreDamaged(ValueError):
    """A file of a store does not hold what was written there; the message names the file and what to do."""


class StoreUnwritable(OSError):
    """A store cannot take more: it is at its limit (EDQUOT), or the disk is full (ENOSPC) or refuses otherwise.

    What the store held before is as it was.
    """


def unwritable(errno: int, message: str) -> StoreUnwritable:
    """Give the error to raise."""
    error = StoreUnwritable(message)
    error.errno = errno
    return error
