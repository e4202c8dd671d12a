"""Checks of the fields of file events, made when a record is written to a file and when it is read.

By the time an event is made, the filesystem has already checked them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from weakfs.reducers.tree import name_escaping as names
from weakfs.session.codec.scalars import is_text

# The pattern is compiled when the first path that is not plain is checked.
CANONICAL = r"/|(?:/(?!\.\.?(?:/|\Z))[^/\\\0\ud800-\udfff]+)+"


def is_plain(path: str) -> bool:
    """Return true for nearly every canonical path, in a third of the time that the pattern takes."""
    return (
        path.isascii()
        and path[:1] == "/"
        and path[-1] != "/"
        and "//" not in path
        and "/." not in path
        and "\\" not in path
        and "\0" not in path
    )


class CanonicalPath:
    """A rule for canonical paths; with `below`, for canonical paths other than the root."""

    def __init__(self, *, below: bool) -> None:
        self._below = below

    def __call__(self, path: str) -> None:
        if is_plain(path) and path != "/":
            return
        if not re.fullmatch(CANONICAL, path) or (self._below and path == "/") or names.canonical(path) != path:
            raise ValueError(f"{path!r:.60} is not a canonical path such as '/src/a.py'")

    def check_all(self, paths: Sequence[str]) -> None:
        """Check many paths at once for characters and segments that none may contain."""
        joined = "\0" + "\0".join(paths) + "\0"
        parts = ("//", "/\0", "\\", *(("/./", "/../", "/.\0", "/..\0") if "/." in joined else ()))
        if (
            any(part in joined for part in parts)
            or not is_text(joined)
            or names.canonical(joined) != joined
            or joined.count("\0") != len(paths) + 1
            or joined.count("\0/") != len(paths)
        ):
            for path in paths:
                self(path)


def is_mode(mode: object) -> bool:
    """Return whether a value is a set of permission bits."""
    return type(mode) is int and 0 <= mode <= 0o7777


def check_mode(mode: int | None) -> None:
    """Raise `ValueError` if a mode is not a set of permission bits."""
    if mode is not None and not 0 <= mode <= 0o7777:
        raise ValueError(f"{mode} is not a set of permission bits from 0 to 4095")


def check_target(target: str) -> None:
    """Raise `ValueError` if a link cannot point to `target`."""
    if not target or "\0" in target:
        raise ValueError(f"{target!r:.60} cannot be the target of a link")


Path = Annotated[str, CanonicalPath(below=False)]
EntryPath = Annotated[str, CanonicalPath(below=True)]
Mode = Annotated[int, check_mode]
OptionalMode = Annotated[int | None, check_mode]
Target = Annotated[str, check_target]
