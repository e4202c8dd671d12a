"""Checkouts: a filesystem's files in a host directory, for programs that do not use this library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from weakfs.class_decorators import frozen


def _go_on() -> None:
    """Do nothing, so that a scan continues."""


@frozen(kw_only=True)
class ReadBack:
    """Limits on reading back what a program changed, in addition to those of the filesystem; `None` means no limit.

    `max_entries` limits the number of new files and directories, `max_bytes` the total size of new and changed files.
    `check` is called repeatedly and raises to stop, for instance at a timeout.
    """

    max_entries: int | None = None
    max_bytes: int | None = None
    check: Callable[[], object] = _go_on


class Checkout(Protocol):
    """Files checked out into a directory while a program works on them."""

    @property
    def directory(self) -> str:
        """The absolute path, on the host, of the directory with the files that were checked out."""
        ...

    @property
    def changed(self) -> tuple[str, ...]:
        """The canonical paths that were added, changed, moved or removed, sorted; empty until the block ends."""
        ...

    @property
    def set_id_removed(self) -> tuple[str, ...]:
        """The canonical paths of entries from which set-uid or set-gid bits left by the program were removed."""
        ...


@runtime_checkable
class SupportsCheckout(Protocol):
    """A filesystem whose files a program on the host can work on.

    Not every filesystem can: a mock has no files, and a view of the past accepts no changes.
    """

    def checkout(
        self,
        path: str = "/",
        *,
        read_back: ReadBack = ReadBack(),  # noqa: B008  # frozen
    ) -> AbstractContextManager[Checkout]:
        """Check out the files below `path` into a directory, and read changes back.

        If the block ends without an exception, the changes in the directory become events like any other change, or
        reading them back raises and the filesystem is unchanged. If the block raises, the filesystem is unchanged
        whatever the program did. A host filesystem uses its own directory in place and undoes changes there; other
        filesystems fill a private directory, which is removed afterwards. Files that exceed the limits or `read_back`
        are refused based on their status, before they are read. New and changed entries lose set-uid and set-gid bits
        that the program set; a directory keeps those that it had.
        """
        ...
