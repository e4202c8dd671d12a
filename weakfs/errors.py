"""The base class of the errors that weakfs defines.

Most failures of a filesystem are built-in errors, such as `FileNotFoundError`. They are the same on every backend, and
code that works with files already catches them. Errors that have no built-in equivalent derive from `WeakfsError` and
from the closest built-in error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["WeakfsError"]


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
