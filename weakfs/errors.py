"""The base class of the errors that weakfs defines.

Most failures of a filesystem are built-in errors, such as `FileNotFoundError`: the same on every backend, and what
code that works with files catches already. What the built-in errors have no word for derives from `WeakfsError` as
well as from the built-in error that comes nearest.
"""

__all__ = ["WeakfsError"]


class WeakfsError(Exception):
    """Base class of the errors that weakfs defines."""
