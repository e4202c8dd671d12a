"""Locks on a host directory, held for one step, and on the paths that an unfinished call has changed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import EBUSY
from threading import RLock

from attrs import field

from weakfs.class_decorators import define
from weakfs.errors import fault
from weakfs.platforms import fcntl
from weakfs.reducers.tree.node import Segments, path_of
from weakfs.session.interruption import check_interrupted
from weakfs.snapshots.directory.directory import HostDirectory

# How long to wait for another process's step, in seconds; the longest step is a scan of a large directory.
PATIENCE = 60.0
PAUSE = 0.002


class RootLock:
    """A reentrant lock that makes a read and the change that follows one atomic step.

    It locks the descriptor of the root, so it works even if processes use different stores. Raises `OSError` (EBUSY) if
    another process holds it for a minute, so that no process waits forever.
    """

    def __init__(self, directory: HostDirectory) -> None:
        self._directory = directory
        self._threads = RLock()
        self._depth = 0

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            if not self._depth:
                self._lock()
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        try:
            if not self._depth and self._directory.descriptor >= 0:
                fcntl.flock(self._directory.descriptor, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    @contextmanager
    def attempt(self) -> Iterator[bool]:
        """Hold the lock if no other thread does; yield whether it is held."""
        if not self._threads.acquire(blocking=False):
            yield False
            return
        try:
            with self:
                yield True
        finally:
            self._threads.release()

    def _lock(self) -> None:
        patience = PATIENCE
        # A directory that cannot be opened again cannot be used either.
        while self._directory.descriptor >= 0:
            try:
                fcntl.flock(self._directory.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if patience <= 0:
                    raise fault(
                        OSError,
                        EBUSY,
                        f"cannot use {self._directory.root!r}: another process has been using it for a minute; "
                        f"try again when it is done",
                    ) from None
            check_interrupted()
            time.sleep(PAUSE)
            patience -= PAUSE


@define(eq=False)
class Claim:
    """The paths that one unit of work changed."""

    paths: set[Segments] = field(factory=set[Segments])
    # All parent directories of those paths.
    above: set[Segments] = field(factory=set[Segments])

    def touches(self, segments: Segments) -> bool:
        """Return whether a path is a changed path, contains one, or is inside one."""
        if segments in self.paths or segments in self.above:
            return True
        return any(segments[:depth] in self.paths for depth in range(len(segments)))

    def add(self, segments: Segments) -> None:
        """Add a path."""
        self.paths.add(segments)
        self.above.update(segments[:depth] for depth in range(len(segments)))


class Claims:
    """The claims of all unfinished work on one disk. Callers must hold the disk's lock."""

    def __init__(self) -> None:
        self._by_owner: dict[object, Claim] = {}

    def take(self, owner: object, *paths: Segments) -> None:
        """Claim paths for `owner`; raise `OSError` (EBUSY) if another owner's unfinished work changed one of them."""
        self.check(owner, *paths)
        own = self._by_owner.setdefault(owner, Claim())
        for segments in paths:
            own.add(segments)

    def check(self, owner: object, *paths: Segments) -> None:
        """Raise `OSError` (EBUSY) if the unfinished work of an owner other than `owner` changed one of the paths."""
        for other, claim in self._by_owner.items():
            if other is not owner:
                _refuse_touched(claim, paths)

    def check_changed(self, changed: Iterable[Segments], *paths: Segments) -> None:
        """Raise `OSError` (EBUSY) if one of the paths overlaps with `changed`, which another process may undo."""
        claim = Claim()
        for segments in changed:
            claim.add(segments)
        _refuse_touched(claim, paths)

    def of_others(self, owner: object) -> set[Segments]:
        """Return the paths that the unfinished work of other owners changed."""
        return {path for other, claim in self._by_owner.items() if other is not owner for path in claim.paths}

    def release(self, owner: object) -> None:
        """Release the claims of work that ended."""
        self._by_owner.pop(owner, None)


def _refuse_touched(claim: Claim, paths: Iterable[Segments]) -> None:
    for segments in paths:
        if claim.touches(segments):
            shown = path_of(segments)
            raise fault(
                OSError,
                EBUSY,
                f"cannot use {shown!r}: another call that has not ended yet changed it or something in it; try again "
                f"when that call has ended",
            )
