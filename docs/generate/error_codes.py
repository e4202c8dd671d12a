"""The table of error codes, from the tables and classes that tools use."""

from __future__ import annotations

import errno
import inspect

from weakfs import editing
from weakfs.tools.errors import BY_CLASS, BY_ERRNO

# Codes that belong to no exception in the tables.
OTHER = {
    "aborted": ("error", "The runtime aborted a call whose work is done elsewhere; its changes were undone."),
    "cancelled": ("error", "The call was cancelled while it ran; all its changes were undone."),
    "internal_error": ("error", "The handler has a bug. The exception is raised again after the call has been undone."),
}

BUILT_IN: dict[type, str] = {
    FileNotFoundError: "There is no such entry.",
    IsADirectoryError: "A file is needed, but the path is a directory.",
    NotADirectoryError: "A directory is needed, but the path or one of its parents is a file.",
    FileExistsError: "An entry with that name exists.",
    PermissionError: "The path leads outside, or a link on the way is not followed.",
    TimeoutError: "A shell command timed out.",
    OSError: "Another error of the operating system.",
    ValueError: "A value cannot be used.",
}

NUMBERED = {
    errno.EBUSY: "Another unfinished call, or another process, is changing this path.",
    errno.EROFS: "The filesystem is read-only.",
    errno.ENOTEMPTY: "The directory is not empty, and `recursive` was not given.",
    errno.EFBIG: "The file would be larger than `Limits.max_file_size`.",
    errno.EDQUOT: "A quota on total size or number of entries would be exceeded.",
    errno.ENOSPC: "The disk is full.",
    errno.ENAMETOOLONG: "The path has too many segments, or a segment is too long.",
    errno.ELOOP: "The path leads through too many symbolic links.",
}


def rows() -> list[tuple[str, str, str, str]]:
    """Return code, status, exception and meaning of every error code, sorted by code."""
    found: list[tuple[str, str, str, str]] = []
    for kind, (status, code) in BY_CLASS.items():
        found.append((code, status, f"`{kind.__name__}`", BUILT_IN.get(kind) or _first_line(kind)))
    for number, (status, code) in BY_ERRNO.items():
        name = errno.errorcode[number]
        found.append((code, status, f"`OSError` with `{name}`", NUMBERED[number]))
    for name in editing.__all__:
        kind = getattr(editing, name)
        own_code: object = getattr(kind, "error_code", None)
        if isinstance(kind, type) and isinstance(own_code, str):
            found.append((own_code, str(getattr(kind, "status", "error")), f"`{name}`", _first_line(kind)))
    for code, (status, meaning) in OTHER.items():
        found.append((code, status, "", meaning))
    return sorted(found)


def page() -> str:
    """Return the table as Markdown."""
    lines = ["| code | status | exception | meaning |", "| --- | --- | --- | --- |"]
    lines += [f"| `{code}` | `{status}` | {exception} | {meaning} |" for code, status, exception, meaning in rows()]
    return "\n".join(lines) + "\n"


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]
