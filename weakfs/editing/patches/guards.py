"""Protocols of filesystems that restrict their callers, such as the guard of a tool, for use by patches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from weakfs.filesystem.protocol import Filesystem


@runtime_checkable
class ChecksPlannedChanges(Protocol):
    """A filesystem that may refuse changes for reasons of its own."""

    def check_planned(self, changes: Iterable[tuple[str, int]]) -> None:
        """Raise the error that changing these paths would raise, with this many bytes written to each."""


@runtime_checkable
class HidesContents(Protocol):
    """A filesystem with files that no message may quote, and whose contents must not be moved elsewhere."""

    def may_show(self, path: str) -> bool:
        """Return whether a message may quote the file at a canonical path."""
        ...

    def check_planned_transfer(self, source: str, destination: str) -> None:
        """Raise the error that transferring a file's contents from one canonical path to another would raise."""


def may_quote(fs: Filesystem, *paths: str | None) -> bool:
    """Return whether a message may quote contents that come from all of these canonical paths."""
    return not isinstance(fs, HidesContents) or all(fs.may_show(path) for path in paths if path is not None)


def check_transfer(fs: Filesystem, source: str | None, destination: str) -> None:
    """Raise the error that transferring a file's contents to another path would raise, if any."""
    if source is not None and source != destination and isinstance(fs, HidesContents):
        fs.check_planned_transfer(source, destination)
