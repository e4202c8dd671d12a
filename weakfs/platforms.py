"""Open files, and differences between operating systems: locks, flags of open(2), the error for unsupported features.

Sessions, files in memory and tools need no more than Python itself, and run on Windows and macOS too. Host
directories and commands need Linux: descriptors for paths (O_PATH) and /proc, so that no link leads out of a root.
"""

from __future__ import annotations

import gc
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from errno import EINVAL, ELOOP, ENOTSUP, ENXIO

from weakfs.errors import fault

try:
    import fcntl as fcntl  # for the other modules, which take it from here
except ImportError:
    fcntl = None  # type: ignore[assignment]  # Windows; only used where HAS_FILE_LOCKS, or where Linux is required

HAS_FILE_LOCKS = fcntl is not None
# Whether a directory can be opened, and so be locked and synced.
HAS_DIRECTORY_DESCRIPTORS = hasattr(os, "O_DIRECTORY")
# Whether the permission bits of an open file can be set and have a meaning.
HAS_PERMISSION_BITS = hasattr(os, "geteuid")


def _flag(name: str) -> int:
    """Return a flag of open(2); 0 if the system does not have it."""
    value: int = getattr(os, name, 0)
    return value


O_CLOEXEC = _flag("O_CLOEXEC")
O_DIRECTORY = _flag("O_DIRECTORY")
O_NOCTTY = _flag("O_NOCTTY")
O_NOFOLLOW = _flag("O_NOFOLLOW")
O_NONBLOCK = _flag("O_NONBLOCK")
O_PATH = _flag("O_PATH")
# On Windows, line endings are changed in a file that is opened without this flag.
O_BINARY = _flag("O_BINARY")

# The flags for creating one of weakfs's own files.
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_BINARY


# The errors of `open_regular_file` for a name that is taken by something else.
NOT_A_REGULAR_FILE = frozenset((EINVAL, ELOOP, ENXIO))

# With this many new objects, a collection takes about a millisecond; with `VERY_MANY`, it is a noticeable pause.
MANY = 10_000
VERY_MANY = 100_000


def open_regular_file(path: str, *, follow: bool = False) -> int:
    """Open one of weakfs's own files for reading, without waiting, and return its descriptor.

    Raises `OSError` with an errno in `NOT_A_REGULAR_FILE` for a directory, a FIFO, a device or a socket, and, unless
    `follow`, for a link.
    """
    descriptor = os.open(path, os.O_RDONLY | O_CLOEXEC | O_BINARY | O_NONBLOCK | (0 if follow else O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(EINVAL, "it is not a regular file", path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Opened:
    """A context manager for an open descriptor: gives it to the block, and closes it at the end."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def lock_unless_replaced(descriptor: int, path: str, *, follow: bool = False) -> bool:
    """Lock an open file or directory, and return whether `path` still names it. If not, or on errors, close it.

    The previous holder of the lock may have removed or renamed the file. `follow` says whether `path` may be a link to
    it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # pyright: ignore[reportOptionalMemberAccess]  # see above
        if os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=follow)):
            return True
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return False


def require_linux(action: str, remedy: str) -> None:
    """Raise `OSError` (ENOTSUP) on a system where host directories and commands do not work.

    `action` says what cannot be done, as in "open '/srv' as a HostFilesystem".
    """
    if HAS_FILE_LOCKS and O_PATH and hasattr(os, "fork"):
        return
    raise fault(
        OSError,
        ENOTSUP,
        f"cannot {action}: that needs Linux (open with O_PATH, flock, fork), and this platform is {sys.platform!r}; "
        f"{remedy}",
    )


@contextmanager
def garbage_collection_paused() -> Generator[None]:
    """Pause the collector while many long-lived objects are created: it would visit them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            count = gc.get_count()[0]
            # Move the new objects to the oldest generation, so that the next collection does not visit them.
            if count > MANY and not gc.get_freeze_count():
                if count > VERY_MANY:
                    # A tuple without containers is tracked until a collection has visited it, and a tuple of such
                    # tuples until the next one. Done here rather than in a later call: the first full collection after
                    # loading 1,000,000 records took 0.6 s. The second collection is a full one if the collector would
                    # soon start one otherwise: it does when the new objects are more than a quarter of the older ones.
                    gc.collect(0)
                    new, older = (len(gc.get_objects(generation)) for generation in (1, 2))
                    gc.collect(2 if 4 * new > older else 1)
                gc.freeze()
                gc.unfreeze()
            gc.enable()
