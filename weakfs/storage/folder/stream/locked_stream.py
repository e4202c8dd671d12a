"""`LockedStream`: the directory of a stream and its lock, which excludes other threads and other processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from errno import EEXIST, ENOTEMPTY
from threading import Lock

from weakfs.platforms import fcntl
from weakfs.storage.errors import LeaseLost, StorageError, StreamConflict
from weakfs.storage.folder.files import (
    LOCK,
    Descriptor,
    open_folder,
    remove_folder,
    rename,
    size_under,
    sync_folder,
    unlock,
)
from weakfs.storage.folder.journal.journal import Journal, Place, create_segment, open_journal
from weakfs.storage.folder.names import components
from weakfs.storage.folder.stream.group_sync import GroupSync
from weakfs.storage.folder.stream.root import Options, Root
from weakfs.storage.stream_handle import refers_to

SUFFIX = ".stream"


class LockedStream:
    """A stream. `with stream.locked():` holds its lock: `journal` is up to date, or `None` if there is no stream."""

    def __init__(self, root: Root, name: str, options: Options) -> None:
        self.root, self.options, self.name = root, options, name
        self._parts = components(name, SUFFIX)
        self.path = os.path.join(root.path, *self._parts)
        self.place = Place(name, self.path, root.temporary_folder, options.is_synced)
        self._mutex = Lock()
        self._opened: Journal | None = None
        # The same journal if `Stream.append_next` can use it, otherwise `None`.
        self._direct: Journal | None = None
        self._sync = GroupSync(name)
        # The stream whose syncs `_sync` counts: a deleted one may have had the same name.
        self._synced_stream: object = None

    @property
    def journal(self) -> Journal | None:
        """Return the journal, `None` if the stream does not exist. The caller holds the lock."""
        return self._opened

    def journal_of(self, name: str) -> Journal | None:
        """Return the journal; `None` if there is none, or if the handle `name` refers to another stream.

        The caller holds the lock.
        """
        journal = self._opened
        return journal if journal is not None and refers_to(name, journal.active.stream_id, journal.head) else None

    @contextmanager
    def locked(self) -> Generator[None, None, None]:
        """Hold the lock."""
        # Only `with` is sure to release the lock that it acquired: an interrupt may come as `acquire` returns.
        with self._mutex:
            self._direct = None
            try:
                self._lock_journal()
                yield
            except (StreamConflict, LeaseLost):
                self._release_journal()
                raise
            except BaseException:
                # The state in memory may be behind the one on the disk.
                self._unlock()
                raise
            else:
                self._release_journal()

    def _use(self, journal: Journal | None) -> Journal | None:
        """Use a journal that was just opened, and return it."""
        self._opened = journal
        if journal is not None:
            active, synced = journal.active, self._sync
            if active.stream_id != self._synced_stream:
                self._sync, self._synced_stream = GroupSync(self.name), active.stream_id
            elif synced.reached > (active.sequence, active.end):
                # A damaged part was given up: what is appended in its place is not on the disk.
                self._sync = GroupSync(self.name, synced.failure)
        return journal

    def _lock_journal(self) -> None:
        """Open the journal, or read what others have added to it, under the lock of its directory."""
        while True:
            journal = self._opened
            if journal is None:
                journal = self._use(self._open())
                if journal is None:
                    return
            else:
                self._lock(journal.folder)
            active = journal.active
            size = size_under(active.name, journal.folder, active.file)
            if size is None:
                # The folder was removed, or a damaged part of it was given up.
                self._unlock()
                continue
            if size != active.end:
                active.kept = None
                journal.catch_up()
            if not journal.is_deleted:
                return
            self._finish_deletion(journal)

    def _release_journal(self) -> None:
        opened = self._opened
        if opened is not None:
            unlock(opened.folder)
            needs_no_sync = not (self.options.is_synced or self._sync.failure)
            # There is no need to look for another lease: whoever takes one writes its number to the journal.
            is_free = opened.fencing == opened.ended_lease
            if needs_no_sync and is_free and opened.active.end < self.options.segment_size:
                self._direct = opened

    def close(self) -> None:
        """Forget the journal, unless a thread is using it."""
        if not self._mutex.locked():
            with self._mutex:
                self._unlock()

    def _unlock(self) -> None:
        """Forget the journal, so that it is opened again."""
        opened, self._opened, self._direct = self._opened, None, None
        if opened is not None:
            with suppress(OSError):
                unlock(opened.folder)

    def _lock(self, folder: Descriptor) -> None:
        try:
            fcntl.flock(folder.number, LOCK)
        except BlockingIOError:
            self._wait_for_lock(folder)

    def _wait_for_lock(self, folder: Descriptor) -> None:
        deadline, delay = time.monotonic() + self.options.lock_timeout, 0.0001
        while True:
            time.sleep(delay)
            try:
                return fcntl.flock(folder.number, LOCK)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StorageError(
                        f"cannot use the stream {self.name!r}: another process has held the lock of {self.path!r} for "
                        f"{self.options.lock_timeout:g} s; check whether it hangs"
                    ) from None
                delay = min(2 * delay, 0.01)

    # Opening, creating and deleting

    def _open(self) -> Journal | None:
        """Open the journal under its lock; return `None` if the stream does not exist."""
        while (folder := self.root.find(self._parts)) is not None:
            self._lock(folder)
            try:
                # The stream may have been deleted while this thread waited.
                if self._is_current(folder):
                    return open_journal(self.place, folder)
            except BaseException:
                # The traceback of the error may keep the directory open.
                unlock(folder)
                raise
        return None

    @contextmanager
    def opened_folder(self) -> Generator[Descriptor | None, None, None]:
        """Hold the lock of a stream whose journal may be damaged.

        Yield its directory, or `None` if it does not exist.
        """
        with self._mutex:
            self._unlock()
            folder = self.root.find(self._parts)
            if folder is None:
                yield None
                return
            self._lock(folder)
            try:
                yield folder
            finally:
                unlock(folder)

    def _is_current(self, folder: Descriptor) -> bool:
        try:
            return os.path.samestat(os.fstat(folder.number), os.stat(self.path))
        except FileNotFoundError:
            return False

    def create(self) -> Journal:
        """Return the journal, creating the stream if it does not exist. The caller holds the lock."""
        while self._opened is None:
            folder = self.root.make(self._parts[:-1])
            temporary_folder = self.root.temporary_folder()
            temporary, made = temporary_folder.new_folder()
            try:
                create_segment(self.place, made)
                rename(temporary, temporary_folder.folder, self._parts[-1], folder)
            except OSError as error:
                remove_folder(temporary, temporary_folder.folder)
                if error.errno not in (EEXIST, ENOTEMPTY):
                    raise
                # Another process created the stream first.
                journal = self._use(self._open())
                if journal is not None and journal.is_deleted:
                    self._finish_deletion(journal)
                continue
            if self.options.is_synced:
                sync_folder(folder)
            # The lock of the stream has been held since it was created.
            self._use(open_journal(self.place, made))
        return self._opened

    def delete(self) -> bool:
        """Delete the stream; return whether there was one. The caller holds the lock."""
        journal = self._opened
        if journal is None:
            return False
        journal.delete()
        self._finish_deletion(journal)
        return True

    def exchange(self, expected: int, exchange: Callable[[], object]) -> None:
        """Let `exchange` put another directory in the place of this one.

        Raises `StreamConflict` if the stream ends elsewhere. The caller holds the lock. Others that have the old
        directory open find its journal gone: the lease alone does not keep them out until everything in it is removed.
        """
        journal = self._opened
        if journal is None or journal.head != expected:
            raise StreamConflict(self.name, expected, 0 if journal is None else journal.head)
        exchange()
        folder = journal.folder.number
        for name in os.listdir(folder):
            if name.endswith(".journal"):
                os.unlink(name, dir_fd=folder)
        self._unlock()

    def _finish_deletion(self, journal: Journal) -> None:
        """Remove the files of a stream that is marked as deleted, unless that has been done already."""
        self._opened = None
        parent = self.root.made()
        for part in self._parts[:-1]:
            parent = open_folder(part, parent)
        if self._is_current(journal.folder):
            temporary_folder = self.root.temporary_folder()
            remove_folder(temporary_folder.discard(self._parts[-1], parent), temporary_folder.folder)
            if self.options.is_synced:
                sync_folder(parent)
        unlock(journal.folder)
