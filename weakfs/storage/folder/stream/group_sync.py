"""Group commit: one sync of the disk for all appends that are waiting for one."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from weakfs.storage.errors import OutcomeUnknown, StorageError

# A segment, and an offset in it.
Position = tuple[int, int]


class GroupSync:
    """Lets one waiting thread sync for all threads that are waiting at that time.

    Threads that come later wait for the next sync.

    After a failed sync, nothing is synced again: the system may have dropped the data that it could not write, and the
    next sync would succeed without it.
    """

    def __init__(self, stream: str, failure: OSError | None = None) -> None:
        self._stream = stream
        self._leading = Lock()
        self.reached: Position = (0, 0)
        self.failure = failure

    def wait(self, position: Position, sync: Callable[[], Position]) -> None:
        """Return once everything up to `position` is on the disk. `sync` returns the position up to which it synced.

        Raises `OutcomeUnknown` if a sync fails.
        """
        with self._leading:
            if self.failure is not None:
                raise self._unknown() from self.failure
            if self.reached >= position:
                return
            try:
                self.reached = max(self.reached, sync())
            except OSError as error:
                self.failure = error
                raise self._unknown() from error

    def refuse_after_failure(self) -> None:
        """Raise `StorageError` if a sync has failed."""
        if self.failure is not None:
            raise StorageError(
                f"cannot append to stream {self._stream!r}: the disk failed to keep an earlier append "
                f"({self.failure.strerror}); check the disk, then open the store again and see where the stream ends"
            ) from self.failure

    def _unknown(self) -> OutcomeUnknown:
        assert self.failure is not None
        return OutcomeUnknown(
            f"cannot tell whether the append to stream {self._stream!r} is on the disk: syncing it failed "
            f"({self.failure.strerror}); check the disk, then open the store again and see where the stream ends"
        )
