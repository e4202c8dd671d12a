"""Built-in exceptions with an errno, and a message that names thing, cause and remedy, without a prefix."""

from __future__ import annotations

from errno import ENOENT

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.messages import clip

# The characters of a path that a message quotes: enough for its beginning and its name.
MAX_QUOTED = 120


@frozen
class Absence:
    """The parts of the message of a `FileNotFoundError`: the canonical path, the cause, the remedy."""

    path: str
    cause: str
    remedy: str


def not_found(path: str, cause: str, remedy: str) -> FileNotFoundError:
    """Return the error for a path that does not exist. `absence_in` returns these parts of the error."""
    error = fault(FileNotFoundError, ENOENT, f"{cause}; {remedy}")
    vars(error)["absence"] = Absence(path, cause, remedy)
    return error


def absence_in(error: BaseException) -> Absence | None:
    """Return the parts of an error created by `not_found`; `None` for any other error."""
    found = vars(error).get("absence")
    return found if isinstance(found, Absence) else None


def quoted(path: str) -> str:
    """Return a path as messages quote it, with the middle of a long one left out."""
    return repr(clip(path, MAX_QUOTED))


def no_directory(missing: str) -> str:
    """Return the text saying that a directory does not exist in its parent, which exists."""
    return f"there is no directory {quoted(missing)} in {quoted(missing.rpartition('/')[0] or '/')}"
