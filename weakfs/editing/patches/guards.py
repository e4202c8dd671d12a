"""What a patch asks of a filesystem that restricts its callers, as the guard of a tool does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from weakfs.filesystem.protocol import Filesystem


@runtime_checkable
class ForeseesChanges(Protocol):
    """A filesystem that may refuse changes for reasons of its own."""

    def foresee(self, changes: Iterable[tuple[str, int]]) -> None:
        """Raise what it would raise for changes of these paths, with so many bytes written at each."""


@runtime_checkable
class HidesContents(Protocol):
    """A filesystem with files that no message may quote, and whose contents stay where that is so."""

    def may_show(self, path: str) -> bool:
        """Tell whether a message may quote the file at a canonical path."""
        ...

    def foresee_transfer(self, source: str, destination: str) -> None:
        """Raise what it would raise for taking a file's contents from one canonical path to another."""


def may_quote(fs: Filesystem, *paths: str | None) -> bool:
    """Tell whether a message may quote contents that come from all of these canonical paths."""
    return not isinstance(fs, HidesContents) or all(fs.may_show(path) for path in paths if path is not None)


def check_transfer(fs: Filesystem, source: str | None, destination: str) -> None:
    """Raise what taking a file's contents to another path would be refused for."""
    if source is not None and source != destination and isinstance(fs, HidesContents):
        fs.foresee_transfer(source, destination)
