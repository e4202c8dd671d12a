"""The stack of directories that a scan has entered, from the root to the current one."""

from __future__ import annotations

import errno
import os
from typing import cast

from weakfs.errors import fault
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.node import Node
from weakfs.snapshots.directory.entries import canonical_name
from weakfs.snapshots.directory.permissions import allow_reading, close_directory, open_directory
from weakfs.snapshots.scan.manifests import Status
from weakfs.snapshots.scan.stat_cache import Directory

# At most this many directories of the stack are kept open; others are reopened on the way back.
MAX_HELD = 64


class Frame:
    """A directory that is being scanned."""

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

    def __init__(
        self,
        descriptor: int,
        host: str,
        path: str,
        status: Status,
        known: Directory | None,
        bits: int | None = None,
    ) -> None:
        self.descriptor = descriptor
        # The permission bits to restore on closing, if they kept us out.
        self.bits = bits
        self.host = host
        self.path = path
        self.status = status
        self.known = known
        self.fresh: dict[str, Status] = {}
        # Whether the directory matches the cache so far. If so, `nodes` and `below` are not filled in.
        self.is_same = False
        self.nodes: dict[str, Node] = {}
        self.below: dict[str, Directory] = {}
        # Directories still to be entered.
        self.pending: list[str] = []
        self.swaps = 0

    def loosen(self) -> None:
        """Prepare the directory for changes, starting from its cached entries."""
        if self.is_same:
            known = cast(Directory, self.known)
            self.is_same = False
            self.nodes = dict(maps.items(known.tree._children))
            self.below = dict(known.below)

    def take(self, host: str, below: Directory) -> None:
        """Add a subdirectory that has been scanned."""
        if self.is_same and cast(Directory, self.known).below[host] is below:
            return
        self.loosen()
        self.below[host] = below
        self.nodes[canonical_name(host)] = below.tree

    def forget(self, host: str) -> None:
        """Remove an entry that no longer exists."""
        self.loosen()
        del self.fresh[host]
        self.nodes.pop(canonical_name(host), None)
        self.below.pop(host, None)

    def open(self, above: int) -> None:
        """Open the directory by its name in its parent, whose descriptor is `above`."""
        self.descriptor, self.bits = open_directory(self.host, above, self.status[0])

    def allow_reading(self) -> None:
        """Make an already open directory readable by its owner."""
        self.bits = allow_reading(self.descriptor)

    def close(self) -> None:
        """Close the directory, if it is open."""
        descriptor, bits, self.descriptor, self.bits = self.descriptor, self.bits, -1, None
        close_directory(descriptor, bits)


def release(stack: list[Frame]) -> None:
    """Close directories that need not stay open: finished ones, and those far above. The root stays open."""
    if len(stack) > 2 and not stack[-2].pending:
        stack[-2].close()
    if len(stack) > MAX_HELD + 1:
        stack[-1 - MAX_HELD].close()


def reopened(stack: list[Frame]) -> bool:
    """Reopen the last directory and those just above it; return false if it is no longer where it was."""
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
    """Return an operating system error as one that names the path."""
    if isinstance(error, PermissionError):
        return fault(
            PermissionError,
            error.errno or errno.EACCES,
            f"cannot scan {path!r}: {error.strerror}; make it readable, or move it out of the directory",
        )
    return fault(
        OSError,
        error.errno or errno.EIO,
        f"cannot scan {path!r}: {error.strerror or error}; remove the cause and scan again",
    )
