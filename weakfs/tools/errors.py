"""What a tool answers when it fails: one table from exceptions to a status and an error code."""

from __future__ import annotations

import errno

from weakfs.errors import WeakfsError
from weakfs.session import MergeConflict, SessionClosed


class ToolValidationError(WeakfsError, ValueError):
    """A call cannot be made as it was asked for; `problems` names each thing that is wrong with it."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class UnknownTool(ToolValidationError):
    """A tool was called that the toolset does not have."""


class DeadlineExceeded(WeakfsError, TimeoutError):
    """A call took longer than its deadline allowed."""


class NotText(WeakfsError, ValueError):
    """A file was to be read or edited as text and is not UTF-8."""


class InvalidRegex(WeakfsError, ValueError):
    """A search was asked for with a regular expression that the engine does not have."""


class InvalidPattern(WeakfsError, ValueError):
    """A search was asked for with a malformed glob pattern."""


class OperationForbidden(WeakfsError, PermissionError):
    """A call asked for an operation that its capability does not have."""


class PolicyDenied(WeakfsError, PermissionError):
    """A rule of the policy forbids what a call asked for; `reason` is the rule's."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class LimitExceeded(WeakfsError, PermissionError):
    """A call would change more than its capability allows."""


class InlineTooLarge(WeakfsError, ValueError):
    """An answer was required inline and is too large for that."""


class UnknownBlob(WeakfsError, ValueError):
    """A call refers to a blob that its session does not have."""


class StaleRead(WeakfsError):
    """A file is to be changed that somebody else changed since the caller last read it."""


class UnreadFile(WeakfsError):
    """A file is to be changed that the caller never read, where the toolset requires that."""


# What stands nearest to an error's own class counts.
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
}

# More exact than the class, where an error has a number.
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

# What becomes an answer. Everything else is a fault of a program and goes on to whoever made the call.
ANSWERED = (OSError, ValueError, MergeConflict, StaleRead, UnreadFile, SessionClosed)


def classify(error: BaseException) -> tuple[str, str]:
    """Give the status and the error code of an exception; `("error", "internal_error")` for an unforeseen one."""
    number = error.errno if isinstance(error, OSError) else None
    if number in BY_ERRNO:
        return BY_ERRNO[number]
    for kind in type(error).__mro__:
        if kind in BY_CLASS:
            return BY_CLASS[kind]
    return "error", "internal_error"
