"""Errors of tools, and the table that maps exceptions to the status and error code of an answer."""

from __future__ import annotations

import errno

from weakfs.errors import WeakfsError
from weakfs.processes.background.errors import (
    InputClosed,
    NotRunning,
    ProcessesRunning,
    TooManyProcesses,
    UnknownProcess,
)
from weakfs.processes.errors import SandboxUnavailable
from weakfs.session import MergeConflict, SessionClosed


class ToolValidationError(WeakfsError, ValueError):
    """A call has invalid arguments; `problems` has a message for each problem."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class UnknownTool(ToolValidationError):
    """A call names a tool that the toolset does not have."""


class DeadlineExceeded(WeakfsError, TimeoutError):
    """A call took longer than its deadline allowed."""


class NotText(WeakfsError, ValueError):
    """A file that is not UTF-8 cannot be read or edited as text."""


class InvalidRegex(WeakfsError, ValueError):
    """The regular expression of a search is invalid, or the engine does not support it."""


class InvalidPattern(WeakfsError, ValueError):
    """The glob pattern of a search is malformed."""


class OperationForbidden(WeakfsError, PermissionError):
    """A call needs an operation that its capability does not allow."""


class PolicyDenied(WeakfsError, PermissionError):
    """A rule of the policy forbids a call; `reason` is the reason of the rule."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class LimitExceeded(WeakfsError, PermissionError):
    """A call would change more than its capability allows."""


class InlineTooLarge(WeakfsError, ValueError):
    """An answer was requested inline, but it is too large for that or may not be shown."""


class UnknownBlob(WeakfsError, ValueError):
    """A call refers to a blob that its session does not have."""


class StaleRead(WeakfsError):
    """A call would change a file that has changed since its caller last saw it."""


class UnreadFile(WeakfsError):
    """A call would change a file that its caller has never read, although the toolset requires it."""


# The first class in an error's MRO that has an entry counts.
BY_CLASS: dict[type, tuple[str, str]] = {
    FileNotFoundError: ("not_found", "not_found"),
    IsADirectoryError: ("is_directory", "is_directory"),
    NotADirectoryError: ("error", "not_a_directory"),
    FileExistsError: ("conflict", "already_exists"),
    PermissionError: ("forbidden", "path_forbidden"),
    OperationForbidden: ("forbidden", "operation_forbidden"),
    PolicyDenied: ("forbidden", "policy_denied"),
    LimitExceeded: ("forbidden", "limit_exceeded"),
    DeadlineExceeded: ("error", "deadline_exceeded"),
    TimeoutError: ("error", "timed_out"),
    OSError: ("error", "io_error"),
    NotText: ("error", "not_utf8"),
    InvalidRegex: ("invalid_regex", "invalid_regex"),
    InvalidPattern: ("invalid_pattern", "invalid_pattern"),
    UnknownTool: ("error", "unknown_tool"),
    ToolValidationError: ("error", "invalid_arguments"),
    InlineTooLarge: ("error", "inline_required_too_large"),
    UnknownBlob: ("error", "unknown_blob"),
    ValueError: ("error", "invalid_input"),
    MergeConflict: ("conflict", "merge_conflict"),
    StaleRead: ("conflict", "changed_by_another"),
    SessionClosed: ("error", "session_closed"),
    UnreadFile: ("conflict", "not_read"),
    SandboxUnavailable: ("error", "sandbox_unavailable"),
    UnknownProcess: ("not_found", "process_not_found"),
    NotRunning: ("error", "process_not_running"),
    InputClosed: ("error", "input_closed"),
    TooManyProcesses: ("error", "too_many_processes"),
    ProcessesRunning: ("conflict", "processes_running"),
}

# More exact than the class, for errors that have an errno.
BY_ERRNO: dict[int, tuple[str, str]] = {
    errno.EBUSY: ("conflict", "path_in_use"),
    errno.EROFS: ("forbidden", "read_only"),
    errno.ENOTEMPTY: ("error", "directory_not_empty"),
    errno.EFBIG: ("error", "file_too_large"),
    errno.EDQUOT: ("error", "quota_exceeded"),
    errno.ENOSPC: ("error", "no_space_left"),
    errno.ENAMETOOLONG: ("error", "path_too_long"),
    errno.ELOOP: ("error", "too_many_links"),
}

# Errors that become answers. Any other error is a bug in a program and is raised to the caller.
ANSWERED = (OSError, ValueError, MergeConflict, StaleRead, UnreadFile, SessionClosed)


def classify(error: BaseException) -> tuple[str, str]:
    """Return the status and error code of an exception; `("error", "internal_error")` for an unknown one."""
    number = error.errno if isinstance(error, OSError) else None
    if number in BY_ERRNO:
        return BY_ERRNO[number]
    for kind in type(error).__mro__:
        if kind in BY_CLASS:
            return BY_CLASS[kind]
    return "error", "internal_error"
