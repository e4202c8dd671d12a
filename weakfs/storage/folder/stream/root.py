"""The folder of a store, and its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from weakfs.class_decorators import frozen
from weakfs.storage.folder.files import (
    Descriptor,
    TemporaryFolder,
    is_removed,
    make_folder,
    make_root,
    open_folder,
    open_root,
)


class Root:
    """The folder of a store, opened on first use and created on the first write."""

    def __init__(self, path: str, *, is_synced: bool) -> None:
        self.path, self.is_synced = path, is_synced
        self._folder: Descriptor | None = None
        self._temporary_folder: TemporaryFolder | None = None

    def folder(self) -> Descriptor | None:
        """Return the folder; `None` if it does not exist."""
        self._forget_removed()
        if self._folder is None:
            with suppress(FileNotFoundError):
                self._folder = open_root(self.path)
        return self._folder

    def made(self) -> Descriptor:
        """Return the folder, creating it if it does not exist."""
        self._forget_removed()
        if self._folder is None:
            self._folder = make_root(self.path, is_synced=self.is_synced)
        return self._folder

    def find(self, parts: Sequence[str]) -> Descriptor | None:
        """Open a directory below the folder; return `None` if it does not exist."""
        folder = self.folder()
        if folder is not None:
            try:
                for part in parts:
                    folder = open_folder(part, folder)
            except FileNotFoundError:
                return None
        return folder

    def make(self, parts: Sequence[str]) -> Descriptor:
        """Open a directory below the folder, creating what does not exist."""
        folder = self.made()
        for part in parts:
            folder = make_folder(part, folder, is_synced=self.is_synced)
        return folder

    def temporary_folder(self) -> TemporaryFolder:
        """Return the directory of temporary files."""
        root = self.made()
        if self._temporary_folder is None:
            self._temporary_folder = TemporaryFolder(root, is_synced=self.is_synced)
        return self._temporary_folder

    def _forget_removed(self) -> None:
        """Forget the folder if it was removed: there may be another one in its place."""
        if self._folder is not None and is_removed(self._folder):
            self._folder = self._temporary_folder = None


@frozen
class Options:
    """The options of a store."""

    # Whether appends wait for the disk.
    is_synced: bool
    # A segment that has reached this size is sealed by the next append.
    segment_size: int
    # How long to wait for another process, in seconds.
    lock_timeout: float
    # The time in seconds since 1970, for leases.
    clock: Callable[[], float]
