"""Errors of background processes."""

from __future__ import annotations

from weakfs.errors import WeakfsError


class UnknownProcess(WeakfsError, ValueError):
    """There is no process with the given id."""


class NotRunning(WeakfsError, OSError):
    """A process has ended or has not begun, so it accepts neither input nor signals."""


class InputClosed(WeakfsError, OSError):
    """A process accepts no more input: its input was closed, or the process does not read it."""


class TooManyProcesses(WeakfsError, OSError):
    """The maximum number of processes is already running."""


class ProcessesRunning(WeakfsError, OSError):
    """Something cannot be done while processes may change the files."""
