"""The errors of storage engines and event streams."""

from __future__ import annotations

import os

from weakfs.errors import WeakfsError


class StorageError(WeakfsError, OSError):
    """An engine refused an operation or could not be reached; nothing was changed."""


def check_size(size: int, most: int, url: str) -> None:
    """Raise `StorageError` for more bytes than a server accepts: it would just drop the connection."""
    if size > most:
        raise StorageError(
            f"cannot store {size:,} bytes at once in {url!r}: the server accepts at most {most:,}; split it, or "
            f"change less in one transaction"
        )


def check_process(opened_by: int, url: str) -> None:
    """Raise `StorageError` in a process that was forked after storage was opened: two would use one connection."""
    if opened_by != os.getpid():
        raise StorageError(
            f"cannot use {url!r} in a forked process: its connection is that of process {opened_by}; open it again here"
        )


class OutcomeUnknown(StorageError):
    """The connection was lost during a change, which may or may not have taken effect.

    Repeating an append is safe: frames that are already there are recognized.
    """


class StorageDamaged(StorageError):
    """An engine returned data that differs from what was stored; the message says where, and what can be saved."""


class FrameDamaged(StorageDamaged):
    """Frames of a stream, from `first` to `last`, are damaged or missing, for the reason `cause`."""

    def __init__(self, stream: str, first: int, last: int, cause: str, url: str) -> None:
        self.stream, self.first, self.last, self.cause = str(stream), first, last, cause
        intact = f"; frames up to {first - 1} are intact" if first > 1 else ""
        super().__init__(
            f"cannot read {self.frames} of stream {str(stream)!r} in {url!r}: {cause}{intact}; restore the storage "
            f"from a backup"
        )

    @property
    def frames(self) -> str:
        """What is damaged, as in `frame 3` or `frames 3 to 5`."""
        return f"frame {self.first}" if self.first == self.last else f"frames {self.first} to {self.last}"


class StreamConflict(StorageError):
    """The stream does not end at the expected frame, since another writer appended first; nothing was changed.

    `expected` is the number of the frame at which the stream should have ended, and `actual` the number at which it
    ends.
    """

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        self.stream, self.expected, self.actual = str(stream), expected, actual
        super().__init__(
            f"cannot change stream {stream!r} after frame {expected}: it ends at frame {actual}"
            + (
                f"; read what follows frame {expected} first"
                if actual >= expected
                else ", as if it had been deleted; read it from the beginning"
            )
        )


class LeaseLost(StorageError):
    """Another writer, `owner` if it is known, holds the lease of the stream; nothing was changed."""

    def __init__(self, message: str, *, owner: str = "") -> None:
        self.owner = owner
        super().__init__(message)


class DurabilityWarning(UserWarning):
    """An engine may lose acknowledged changes, because of how its server is configured."""
