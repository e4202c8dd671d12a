"""What ends a command early, and how that is told: one line of thing, cause and remedy."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager

from weakfs.session import SessionError, SessionFileError, UnknownType

# Exit statuses, for scripts. They are documented in the help of the command.
DONE = 0
FAILED = 1
USAGE = 2
UNMET = 3
INTERRUPTED = 130

CAUSES = {
    errno.ENOENT: ("there is no such file or directory", "check the name"),
    errno.ENOTDIR: ("a part of the path is not a directory", "check the path"),
    errno.EISDIR: ("it is a directory", "name a file"),
    errno.EACCES: ("access is refused", "check its permissions"),
    errno.EPERM: ("access is refused", "check its permissions"),
    errno.ENOSPC: ("the disk is full", "free some space, or name a place on another disk"),
    errno.EROFS: ("the disk is read-only", "name a place on another disk"),
}


class Failure(Exception):
    """A command cannot go on. The message needs no more words, and `status` is what the program exits with."""

    def __init__(self, message: str, *, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def telling(doing: str) -> Generator[None]:
    """Turn what may go wrong inside into a `Failure`: `doing` is what cannot be done, such as `read 'x'`."""
    try:
        yield
    except UnknownType as error:
        remedy = "name the registry of your types: --registry MODULE:NAME"
        raise Failure(f"cannot {doing}: {str(error).partition(';')[0]}; {remedy}") from error
    except SessionFileError as error:
        raise Failure(f"cannot {doing}: {error}") from error
    except OSError as error:
        raise Failure(_told(doing, error)) from error
    except (SessionError, ValueError) as error:
        raise Failure(_without_prefix(doing, str(error))) from error


def _told(doing: str, error: OSError) -> str:
    # The library's own errors are a message and nothing else; those of the host have the parts of one.
    if error.strerror is None:
        return _without_prefix(doing, str(error))
    cause, remedy = CAUSES.get(error.errno or 0, (error.strerror, "see to it and try again"))
    where = "" if error.filename is None or repr(error.filename) in doing else f" ({error.filename!r})"
    return f"cannot {doing}: {cause}{where}; {remedy}"


def _without_prefix(doing: str, message: str) -> str:
    return message if message.startswith("cannot ") else f"cannot {doing}: {message}"
