"""Making the built-in errors: with an errno, and a message of thing, cause and remedy without a prefix."""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound=OSError)


def fault(kind: type[E], errno: int, message: str) -> E:
    """Give an error to raise. `str()` of it is the message alone, so that it can go to a model as it is."""
    error = kind(message)
    error.errno = errno
    return error
