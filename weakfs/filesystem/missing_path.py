"""Error messages for missing paths: which directory is missing, and which path may be meant."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher, get_close_matches
from typing import Protocol, runtime_checkable

from attrs import field

from weakfs.class_decorators import define
from weakfs.filesystem.errors import Absence, no_directory
from weakfs.filesystem.paths import join, parent
from weakfs.filesystem.protocol import Filesystem
from weakfs.filesystem.results import FileEntry

# Limits on one search for a similar path.
MAX_ENTRIES = 1000
MAX_DIRECTORIES = 100
# The maximum number of entries with the same name that are compared with the path.
MAX_SAME = 50


@runtime_checkable
class SupportsNaming(Protocol):
    """A filesystem that decides which paths a message may suggest."""

    def may_name(self, path: str) -> bool: ...


def why_absent(fs: Filesystem, path: str, *, excluded: Callable[[str], bool] = lambda path: False) -> str:
    """Return why there is nothing at a canonical path, and what to do. Paths that are `excluded` are not suggested."""
    similar = similar_path(fs, path, excluded=excluded)
    directory, missing = parent(path), None
    while directory != "/" and not _is_directory(fs, directory):
        directory, missing = parent(directory), directory
    cause = "there is no such file" if missing is None else no_directory(missing)
    return f"{cause}; {_remedy(similar) or f'list {directory!r} to see what is there'}"


def with_proposal(fs: Filesystem, absence: Absence) -> str:
    """Return an error's message, with the path that may be meant as its remedy if there is one."""
    return f"{absence.cause}; {_remedy(similar_path(fs, absence.path)) or absence.remedy}"


def _remedy(similar: str | None) -> str | None:
    return None if similar is None else f"did you mean {similar!r}?"


def similar_path(fs: Filesystem, path: str, *, excluded: Callable[[str], bool] = lambda path: False) -> str | None:
    """Return the existing path that was probably meant by a missing one; `None` if there is none.

    Prefers a path that differs only in letter case, then a similar name in the same directory, then the same name
    elsewhere with the most similar path. Examines up to `MAX_ENTRIES` entries, from the nearest directory outwards.
    """
    if path.count("/") > MAX_DEPTH:
        return None

    def may_propose(candidate: str) -> bool:
        return not excluded(candidate) and (not isinstance(fs, SupportsNaming) or fs.may_name(candidate))

    look = _Look(fs)
    found = _but_for_case(look, path)
    if found is not None and may_propose(found):
        return found
    directory, name = parent(path), path.rpartition("/")[2]
    beside = [entry.name for entry in look.entries(directory) if may_propose(join(directory, entry.name))]
    near = get_close_matches(name, beside, n=1) or [other for other in beside if name.startswith(f"{other} ")]
    if near:
        return join(directory, near[0])
    same = _within(filter(may_propose, _of_name(look, directory, name)), MAX_SAME)
    return max(same, key=lambda candidate: SequenceMatcher(None, path, candidate).ratio(), default=None)


def _within(paths: Iterator[str], most: int) -> list[str]:
    return [path for _, path in zip(range(most), paths, strict=False)]


# No suggestions are made for deeper paths, because each parent directory would have to be listed.
MAX_DEPTH = 64


@define
class _Look:
    """Lists directories, each once and within the limits; one that may not be listed counts as empty."""

    fs: Filesystem
    left: int = field(factory=lambda: MAX_ENTRIES)
    listed: dict[str, tuple[FileEntry, ...]] = field(factory=dict[str, "tuple[FileEntry, ...]"])

    def entries(self, directory: str) -> tuple[FileEntry, ...]:
        """Return the entries of a directory by name, up to the remaining limit."""
        if directory not in self.listed:
            if not self.left or len(self.listed) >= MAX_DIRECTORIES:
                return ()
            try:
                found = self.fs.list(directory)[: self.left]
            except (OSError, ValueError):
                found = ()
            self.left -= len(found)
            self.listed[directory] = found
        return self.listed[directory]


def _but_for_case(look: _Look, path: str) -> str | None:
    """Return the existing path that differs from `path` only in letter case."""
    found = "/"
    for segment in path[1:].split("/"):
        names = [entry.name for entry in look.entries(found)]
        equal = segment if segment in names else next((n for n in names if n.casefold() == segment.casefold()), None)
        if equal is None:
            return None
        found = join(found, equal)
    return found if found != path else None


def _of_name(look: _Look, directory: str, name: str) -> Iterator[str]:
    """Yield the paths of entries with this name, nearest first: below the nearest existing directory, then above it."""
    seen: set[str] = set()
    top = directory
    while True:
        waiting = deque([top])
        while waiting:
            here = waiting.popleft()
            if here in seen:
                continue
            seen.add(here)
            for entry in look.entries(here):
                path = join(here, entry.name)
                if entry.name == name:
                    yield path
                # Files of tools, such as those in .git, are not suggested.
                if entry.is_directory and not entry.name.startswith("."):
                    waiting.append(path)
        if top == "/":
            return
        top = parent(top)


def _is_directory(fs: Filesystem, path: str) -> bool:
    try:
        return fs.is_directory(path)
    except (OSError, ValueError):
        return False
