"""Exceptions of the store."""

from __future__ import annotations

from weakfs.errors import WeakfsError


class StoreDamaged(WeakfsError, ValueError):
    """Raised if a file of a store is damaged; the message names the file and the remedy."""


class StoreUnwritable(WeakfsError, OSError):
    """Raised if a store cannot grow: its limit is reached (EDQUOT), or the disk is full (ENOSPC) or refuses the write.

    The previous contents of the store are unchanged.
    """


def unwritable(errno: int, message: str) -> StoreUnwritable:
    """Return a `StoreUnwritable` with an errno."""
    error = StoreUnwritable(message)
    error.errno = errno
    return error
