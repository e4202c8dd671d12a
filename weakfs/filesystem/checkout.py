"""A filesystem's files in a directory of the host, for programs that know nothing of this library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from attrs import frozen


def _go_on() -> None:
    """Never stop a scan."""


@frozen(kw_only=True)
class ReadBack:
    """Bounds on reading back what a program changed, besides the limits of the filesystem; `None` is no bound.

    `max_entries` is how many files and directories may be new, `max_bytes` how large all new and changed files may be
    together. `check` is called all the time and raises to stop, for instance when the time is over.
    """

    max_entries: int | None = None
    max_bytes: int | None = None
    check: Callable[[], object] = _go_on


class Checkout(Protocol):
    """Files laid out in a directory while a program works on them."""

    @property
    def directory(self) -> str:
        """The absolute path, on the host, of the directory that stands for what was checked out."""
        ...

    @property
    def changed(self) -> tuple[str, ...]:
        """The canonical paths that were added, changed, moved or removed, sorted; empty until the block is left."""
        ...

    @property
    def set_id_removed(self) -> tuple[str, ...]:
        """The canonical paths of the files that the program left set-uid or set-gid, and that are not so any more."""
        ...


@runtime_checkable
class SupportsCheckout(Protocol):
    """A filesystem whose files a program of the host can work on.

    Not every filesystem can: a script of answers has no files, a view of the past takes no changes.
    """

    def checkout(self, path: str = "/", *, read_back: ReadBack = ReadBack()) -> AbstractContextManager[Checkout]:
        """Lay the files below `path` out in a directory, and read back what became of them.

        When the block is left without an exception, what changed in the directory has become events like any
        other change, or the reading back raises and the filesystem is as it was before. When it is left with
        an exception, the filesystem is as it was before, however far the program came. A host's own
        directory is used as it is and put back; other filesystems fill a private one, which then goes away.
        What goes over the limits or `read_back` is refused by its status, before any of it is read. New and changed
        files lose their set-uid and set-gid bits.
        """
        ...
