"""Errors of the operating system, said as thing, cause and remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EINVAL, EIO, ENOENT, ENOSPC, EPERM, EROFS

from weakfs.filesystem.errors import fault
from weakfs.reducers.tree import name_escaping as names
from weakfs.snapshots.directory.entries import TEMPORARY

REMEDIES = {
    EACCES: "give yourself the permission, or use another path",
    EPERM: "give yourself the permission, or use another path",
    ENOENT: "it vanished meanwhile; list its directory to see what is there",
    ENOSPC: "nothing was changed; make room on the disk and try again",
    EDQUOT: "nothing was changed; make room on the disk and try again",
    EROFS: "the disk is mounted read-only; use another directory",
    EINVAL: "stat it to see what it is",
}


@contextmanager
def told(verb: str, path: str) -> Iterator[None]:
    """Say of the system's errors what was to be done with which path. An error that has a message stays as it is."""
    try:
        yield
    except OSError as error:
        # What the system raises has two arguments; `fault` gives one.
        if len(error.args) < 2:
            raise
        number = error.errno or EIO
        remedy = REMEDIES.get(number, "remove the cause and try again")
        raise fault(type(error), number, f"cannot {verb} {path!r}: {_said(error, path)}; {remedy}") from error


def _said(error: OSError, path: str) -> str:
    """Give what the system said, with the name that it was about if that is not the path's own."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    if not name or name == "." or path.endswith("/" + name) or TEMPORARY.fullmatch(name):
        return str(error.strerror)
    return f"{error.strerror}: {names.from_bytes(os.fsencode(name))!r}"
