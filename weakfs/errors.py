"""The errors of weakfs: built-in ones with an errno, and the base class of those that weakfs defines.

Most failures of a filesystem are built-in errors, such as `FileNotFoundError`. They are the same on every backend, and
code that works with files already catches them. Errors that have no built-in equivalent derive from `WeakfsError` and
from the closest built-in error. All of them can be copied and pickled, for example to raise them in another process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["WeakfsError", "fault"]

E = TypeVar("E", bound=OSError)


def fault(kind: type[E], errno: int, message: str) -> E:
    """Return an error to raise. Its `str()` is the message alone, so that it can be sent to a model unchanged."""
    error = kind(message)
    error.errno = errno
    if not issubclass(kind, WeakfsError):
        error.__dict__ = _Attributes(errno=errno)
    return error


class _Attributes(dict[str, Any]):
    """The attributes of a built-in error with an errno, which Python does not pickle if the message has no prefix.

    When such an error is unpickled, each entry is assigned to the attribute of its name: `errno` restores the errno,
    and `__dict__` lets the error be pickled again.
    """

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], dict[str, Any]], tuple[dict[str, Any]]]:
        return _assignments, (dict(self),)


def _assignments(attributes: dict[str, Any]) -> dict[str, Any]:
    return {"__dict__": _Attributes(attributes), "errno": attributes["errno"]}


class WeakfsError(Exception):
    """Base class of the errors that weakfs defines.

    They can be copied and pickled, for example to raise them in another process, whatever their constructors take.
    """

    def __reduce__(
        self,
    ) -> tuple[Callable[..., WeakfsError], tuple[type[WeakfsError], tuple[Any, ...], dict[str, Any]]]:
        state = dict(vars(self))
        if isinstance(self, OSError) and self.errno is not None:
            state["errno"] = self.errno
        return _rebuilt, (type(self), self.args, state)


def _rebuilt(cls: type[WeakfsError], args: tuple[Any, ...], state: dict[str, Any]) -> WeakfsError:
    """Return an error with this state, without a call of its constructor."""
    error = cls.__new__(cls, *args)
    error.args = args
    for name, value in state.items():
        setattr(error, name, value)
    return error
