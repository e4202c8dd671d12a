"""The base class of the errors that weakfs defines.

Most failures of a filesystem are built-in errors, such as `FileNotFoundError`. They are the same on every backend, and
code that works with files already catches them. Errors that have no built-in equivalent derive from `WeakfsError` and
from the closest built-in error.
"""

__all__ = ["WeakfsError"]


class WeakfsError(Exception):
    """Base class of the errors that weakfs defines."""
