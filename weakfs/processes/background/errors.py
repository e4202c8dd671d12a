"""Errors of background processes, by what is wrong with the request."""

from __future__ import annotations

from weakfs.errors import WeakfsError


class UnknownProcess(WeakfsError, ValueError):
    """There is no process with the id that was given."""


class NotRunning(WeakfsError, OSError):
    """A process has ended, or has not begun, and takes neither input nor signals."""


class InputClosed(WeakfsError, OSError):
    """A process takes no more input: it was closed, or the process does not read it."""


class TooManyProcesses(WeakfsError, OSError):
    """As many processes as allowed are running."""


class ProcessesRunning(WeakfsError, OSError):
    """Something cannot be done while processes may change the files."""
