"""The directories that a survey is in the middle of, from the root down to the one that it looks through."""

from __future__ import annotations

import errno
import os
from typing import cast

from weakfs.filesystem.errors import fault
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.node import Node
from weakfs.snapshots.directory.permissions import allow_reading, open_directory, put_back
from weakfs.snapshots.scan.stat_cache import Directory, canonical_name
from weakfs.snapshots.store.manifests import Status

# Of the directories on the way down so many are held open; the others are opened again on the way back.
MAX_HELD = 64


class Frame:
    """A directory that is being gone through."""

    __slots__ = (
        "below",
        "bits",
        "descriptor",
        "fresh",
        "host",
        "is_same",
        "known",
        "nodes",
        "path",
        "pending",
        "status",
        "swaps",
    )

    def __init__(self, descriptor: int, host: str, path: str, status: Status, known: Directory | None) -> None:
        self.descriptor = descriptor
        # What its permission bits are again when it is closed, if they kept us out.
        self.bits: int | None = None
        self.host = host
        self.path = path
        self.status = status
        self.known = known
        self.fresh: dict[str, Status] = {}
        # As it is known, unless something below is not. Then `nodes` and `below` are not filled in.
        self.is_same = False
        self.nodes: dict[str, Node] = {}
        self.below: dict[str, Directory] = {}
        # Directories that are still to be looked into.
        self.pending: list[str] = []
        self.swaps = 0

    def loosen(self) -> None:
        """Make the directory anew, from what is known of it."""
        if self.is_same:
            known = cast(Directory, self.known)
            self.is_same = False
            self.nodes = dict(maps.items(known.tree._children))
            self.below = dict(known.below)

    def take(self, host: str, below: Directory) -> None:
        """Put in a directory that has been gone through."""
        if self.is_same and cast(Directory, self.known).below[host] is below:
            return
        self.loosen()
        self.below[host] = below
        self.nodes[canonical_name(host)] = below.tree

    def forget(self, host: str) -> None:
        """Take out an entry that is not there any more."""
        self.loosen()
        del self.fresh[host]
        self.nodes.pop(canonical_name(host), None)
        self.below.pop(host, None)

    def open(self, above: int) -> None:
        """Open the directory by its name in the one above."""
        self.descriptor, self.bits = open_directory(self.host, above, self.status[0])

    def allow_reading(self) -> None:
        """Let the owner read a directory that is open already."""
        self.bits = allow_reading(self.descriptor)

    def close(self) -> None:
        """Close the directory, if it is open."""
        if self.descriptor >= 0:
            try:
                put_back(self.descriptor, self.bits)
            finally:
                os.close(self.descriptor)
                self.descriptor, self.bits = -1, None


def release(stack: list[Frame]) -> None:
    """Close the directories that need not stay open: done with, or far above. The first is the way back."""
    if len(stack) > 2 and not stack[-2].pending:
        stack[-2].close()
    if len(stack) > MAX_HELD + 1:
        stack[-1 - MAX_HELD].close()


def reopened(stack: list[Frame]) -> bool:
    """Open the last directory again, and those just above it; false if it is not where it was."""
    start = max(at for at, frame in enumerate(stack) if frame.descriptor >= 0)
    for at in range(start + 1, len(stack)):
        frame = stack[at]
        try:
            frame.open(stack[at - 1].descriptor)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise refusal(error, frame.path) from error
        if 1 < at <= len(stack) - MAX_HELD // 2:
            stack[at - 1].close()
        if os.fstat(frame.descriptor).st_ino != frame.status[4]:
            frame.close()
            return False
    return True


def refusal(error: OSError, path: str) -> OSError:
    """Say of an error of the system which path it concerns."""
    if isinstance(error, PermissionError):
        return fault(
            PermissionError,
            error.errno or errno.EACCES,
            f"cannot scan {path!r}: {error.strerror}; make it readable, or take it out of the directory",
        )
    return fault(
        OSError,
        error.errno or errno.EIO,
        f"cannot scan {path!r}: {error.strerror or error}; remove the cause and scan again",
    )
