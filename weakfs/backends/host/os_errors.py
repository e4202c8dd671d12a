"""Errors of the operating system, reported with a verb, a path and a remedy."""

from __future__ import annotations

import os
from errno import EACCES, EDQUOT, EINVAL, EIO, ENOENT, ENOSPC, EPERM, EROFS

from weakfs.errors import fault
from weakfs.reducers.tree import name_escaping as names
from weakfs.snapshots.directory.entries import TEMPORARY

REMEDIES = {
    EACCES: "get permission, or use another path",
    EPERM: "get permission, or use another path",
    ENOENT: "it disappeared in the meantime; list its directory to see what is there",
    ENOSPC: "nothing was changed; free some disk space and try again",
    EDQUOT: "nothing was changed; free some disk space and try again",
    EROFS: "the disk is mounted read-only; use another directory",
    EINVAL: "stat it to see what it is",
}


class described_errors:  # noqa: N801  # a context manager; a class costs a third as much as a generator
    """Add the verb and path to the system's errors. An error that already has a full message is left as it is."""

    __slots__ = ("_path", "_verb")

    def __init__(self, verb: str, path: str) -> None:
        self._verb, self._path = verb, path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        # The system's errors have two arguments; those of `fault` have one.
        if not isinstance(error, OSError) or len(error.args) < 2:
            return
        number, verb, path = error.errno or EIO, self._verb, self._path
        remedy = REMEDIES.get(number, "remove the cause and try again")
        raise fault(type(error), number, f"cannot {verb} {path!r}: {described(error, path)}; {remedy}") from error


def described(error: OSError, path: str) -> str:
    """Return the system's message, with the name of the file that it concerns unless `path` ends with that name."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    if not name or name == "." or path.endswith("/" + name) or TEMPORARY.fullmatch(name):
        return str(error.strerror)
    return f"{error.strerror}: {names.from_bytes(os.fsencode(name))!r}"
