"""Errors that end a command, reported in one line: thing, cause and remedy."""

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
    errno.ENOENT: ("no such file or directory", "check the name"),
    errno.ENOTDIR: ("a part of the path is not a directory", "check the path"),
    errno.EISDIR: ("it is a directory", "name a file"),
    errno.EACCES: ("permission denied", "check its permissions"),
    errno.EPERM: ("permission denied", "check its permissions"),
    errno.ENOSPC: ("the disk is full", "free some space, or name a place on another disk"),
    errno.EROFS: ("the disk is read-only", "name a place on another disk"),
    errno.EADDRINUSE: ("another program uses the port", "name another port, or 0 for any free one"),
    errno.EADDRNOTAVAIL: ("it is not an address of this machine", "name one of its addresses"),
}


class Failure(Exception):
    """An error that ends a command. The message is complete, and `status` is the exit status of the program."""

    def __init__(self, message: str, *, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


def usage(message: str) -> Failure:
    """Return the failure for an invalid command line."""
    return Failure(message, status=USAGE)


@contextmanager
def as_failure(doing: str) -> Generator[None]:
    """Turn exceptions raised inside into a `Failure`. `doing` completes `cannot ...`, as in `read 'x'`."""
    try:
        yield
    except UnknownType as error:
        remedy = "name the registry of your types: --registry MODULE:NAME"
        raise Failure(f"cannot {doing}: {str(error).partition(';')[0]}; {remedy}") from error
    except SessionFileError as error:
        raise Failure(f"cannot {doing}: {error}") from error
    except OSError as error:
        raise Failure(_message(doing, error)) from error
    except (SessionError, ValueError) as error:
        raise Failure(_without_prefix(doing, str(error))) from error


def _message(doing: str, error: OSError) -> str:
    # The library's own errors have only a message; those of the host have an errno and a file name.
    if error.strerror is None:
        return _without_prefix(doing, str(error))
    if error.errno not in CAUSES and error.strerror.startswith("cannot "):
        # A message of the library, with its remedy.
        return error.strerror
    cause, remedy = CAUSES.get(error.errno or 0, (error.strerror, "fix the cause and try again"))
    where = "" if error.filename is None or repr(error.filename) in doing else f" ({error.filename!r})"
    return f"cannot {doing}: {cause}{where}; {remedy}"


def _without_prefix(doing: str, message: str) -> str:
    return message if message.startswith("cannot ") else f"cannot {doing}: {message}"
