"""Operating system errors, reported with thing, cause and remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EINVAL, EIO, ENOENT, ENOSPC, EPERM, EROFS

from weakfs.filesystem.errors import fault
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


@contextmanager
def described_errors(verb: str, path: str) -> Iterator[None]:
    """Add the verb and path to the system's errors. An error that already has a full message is left as it is."""
    try:
        yield
    except OSError as error:
        # The system's errors have two arguments; those of `fault` have one.
        if len(error.args) < 2:
            raise
        number = error.errno or EIO
        remedy = REMEDIES.get(number, "remove the cause and try again")
        raise fault(type(error), number, f"cannot {verb} {path!r}: {_described(error, path)}; {remedy}") from error


def _described(error: OSError, path: str) -> str:
    """Return the system's message, with the name of the file that it concerns unless `path` ends with that name."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    if not name or name == "." or path.endswith("/" + name) or TEMPORARY.fullmatch(name):
        return str(error.strerror)
    return f"{error.strerror}: {names.from_bytes(os.fsencode(name))!r}"
