"""Canonical paths, the same on every backend."""

from __future__ import annotations

import os
import re
from errno import EACCES, ENAMETOOLONG
from functools import lru_cache

from weakfs.errors import fault
from weakfs.filesystem.errors import quoted
from weakfs.messages import a_type
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.validation import is_plain

# A canonical path and its segments.
Parsed = tuple[str, tuple[str, ...]]

# Most paths are canonical already, and most of these have only ordinary characters. `re` compiles the patterns when
# they are first used.
_CANONICAL = r"(?:/(?!\.\.?(?:/|\Z))[^/\\\0\ud800-\udfff\uf700-\uf7ff]+)+"
_FORBIDDEN = "[\0\ud800-\udfff]"

ROOT: Parsed = ("/", ())

# No path may have more segments, whatever the limits: Linux accepts paths of at most 4,096 bytes, and the cost of a
# path may grow with the square of its depth.
MAX_SEGMENTS = 2048


def normalize(path: str | os.PathLike[str]) -> str:
    """Return the canonical form of a path.

    Raises `PermissionError` for a path that climbs above the root, `ValueError` for NUL and lone surrogates,
    `TypeError` for anything that is not a path, `OSError` (ENAMETOOLONG) for more than 2,048 segments.
    """
    return parse(path)[0]


def parse(path: str | os.PathLike[str]) -> Parsed:
    """Return the canonical form of a path and its segments; see `normalize`."""
    if type(path) is str:
        return _parse(path)
    return _parse(_as_text(path))


def _as_text(path: object) -> str:
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"a path is text such as '/src/app.py', not {a_type(path)}: {path!r:.60}")
    # Take the characters themselves: a subclass may override `__str__`.
    return str.__str__(text)


@lru_cache(maxsize=2048)
def _parse(path: str) -> Parsed:
    if is_plain(path) or re.fullmatch(_CANONICAL, path):
        if path.count("/") > MAX_SEGMENTS:
            raise _too_deep(path)
        return path, tuple(path[1:].split("/"))
    bad = re.search(_FORBIDDEN, path)
    if bad:
        what = "a NUL character" if bad.group() == "\0" else "a lone surrogate"
        raise ValueError(f"the path {quoted(path)} has {what} at {bad.start()}; use a path of ordinary characters")
    segments: list[str] = []
    for segment in path.replace("\\", "/").split("/"):
        if segment == "..":
            if not segments:
                raise fault(
                    PermissionError, EACCES, f"the path {quoted(path)} climbs above the root; use a path inside it"
                )
            segments.pop()
        elif segment and segment != ".":
            segments.append(names.canonical(segment))
            if len(segments) > MAX_SEGMENTS:
                raise _too_deep(path)
    return ("/" + "/".join(segments), tuple(segments)) if segments else ROOT


def _too_deep(path: str) -> OSError:
    return fault(
        OSError,
        ENAMETOOLONG,
        f"cannot use the path {quoted(path)}: it is more than {MAX_SEGMENTS} segments deep, which no path may be; "
        f"use a shorter path",
    )


def join(directory: str, name: str) -> str:
    """Return the path of a name in a directory; both must be canonical."""
    return f"/{name}" if directory == "/" else f"{directory}/{name}"


def parent(path: str) -> str:
    """Return the directory that contains a canonical path; the root's parent is the root."""
    return path.rpartition("/")[0] or "/"


def is_within(path: str, directory: str) -> bool:
    """Return whether a canonical path is that of a directory or below it."""
    return directory == "/" or path == directory or path.startswith(directory + "/")
