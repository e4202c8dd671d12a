"""Replacing the whole stored history of a session in one step, so that no trace of the old one stays on the disk.

A copy is written first. In a folder the directories of the two streams are exchanged by renameat2(2); in SQLite the
rows are replaced in one transaction, and the file is rewritten. If the process is killed at any moment, the storage
holds the old history or the new one; what it left behind is removed when a session is opened in that storage, by the
next replacement, or by `erase`.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
from collections.abc import Callable
from functools import partial

from weakfs.session.durable.held_lease import HeldLease
from weakfs.session.durable.open_session import event_store
from weakfs.session.durable.replacement_workplaces import remove_left, workplace
from weakfs.session.errors import SessionConflict, SessionError
from weakfs.storage.errors import StorageError, StreamConflict
from weakfs.storage.folder import FolderEventStore
from weakfs.storage.folder.names import components
from weakfs.storage.locations import local_path
from weakfs.storage.steps import run

# Appended to the name of a stream in SQLite while its rows are replaced.
_REPLACEMENT = ".forgetting-"
_EXCHANGE = 2
_TABLES = ("frames", "contents", "checkpoints")


def local_of(url: str) -> str:
    """Return the folder or the file of a storage. Raises `SessionError` for storage whose bytes it cannot erase."""
    path = local_path(url)
    if path is None or not url.startswith(("folder:", "sqlite:")):
        raise SessionError(
            f"cannot erase anything from {url}: only folders and SQLite files can be erased for good; export the "
            f"session to a file, forget there, delete the session, and import the file"
        )
    return os.path.abspath(path)


def replace_stream(url: str, name: str, expected: int, lease: HeldLease, copy_to: Callable[[str], None]) -> None:
    """Replace the stream of a session, which ends at frame `expected`, with the copy that `copy_to` stores elsewhere.

    The caller holds the lease of the stream, so that nobody else can append. Raises `SessionConflict`, with nothing
    changed, if the session was changed since, `LeaseLost` if the lease expired and another process took it, and
    `SessionError` for storage whose bytes cannot be erased.
    """
    path = local_of(url)
    is_folder = url.startswith("folder:")
    _check_end(lease, name, expected)
    with workplace(path) as work:
        target = os.path.join(work, "copy" if is_folder else "copy.db")
        copy_to(f"{'folder' if is_folder else 'sqlite'}:{target}")
        _check_end(lease, name, expected)
        if is_folder:
            _exchange_locked(url, name, expected, partial(_exchange, path, target, name))
        else:
            _exchange_rows(path, target, name)
    erase(url)


def _exchange_locked(url: str, name: str, expected: int, exchange: Callable[[], None]) -> None:
    store = event_store(url, "power")
    assert isinstance(store, FolderEventStore)
    with store:
        try:
            store.exchange(name, expected, exchange)
        except StreamConflict as conflict:
            raise SessionConflict(name, expected, conflict.actual) from None


def _check_end(lease: HeldLease, name: str, expected: int) -> None:
    """Raise `SessionConflict` if a stream does not end at frame `expected`."""
    # First: nobody can append after this.
    run(lease.fencing(), lease.store)
    if (head := lease.store.head(name)) != expected:
        raise SessionConflict(name, expected, head)


def erase(url: str) -> None:
    """Remove what killed replacements left in a folder or next to a SQLite file, and the file's free pages."""
    path = local_of(url)
    if not os.path.lexists(path):
        return
    remove_left(path)
    if url.startswith("folder:"):
        return
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"cannot erase the free pages of {path!r}: {error}; close other programs that use the file, free as much "
            f"space as the file takes, and forget again"
        ) from error
    finally:
        connection.close()


def _exchange(folder: str, copy: str, name: str) -> None:
    """Exchange the directories of a stream in two folders in one step."""
    parts = components(name, ".stream")
    old, new = os.path.join(folder, *parts), os.path.join(copy, *parts)
    call = ctypes.CDLL(None, use_errno=True).renameat2
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    if call(-100, os.fsencode(new), -100, os.fsencode(old), _EXCHANGE):
        error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), old)
        raise StorageError(
            f"cannot replace session {name!r} in {folder!r}: {error.strerror}; the filesystem has to support the "
            f"exchange of two names (renameat2), as ext4, xfs, btrfs and tmpfs do"
        ) from error
    for parent in (os.path.dirname(old), os.path.dirname(new)):
        descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _exchange_rows(path: str, copy: str, name: str) -> None:
    """Replace the rows of a stream with those of a copy, in one transaction that overwrites the space it frees."""
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    try:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("ATTACH ? AS copied", (copy,))
        connection.execute("BEGIN IMMEDIATE")
        ((new, number),) = connection.execute("SELECT id, number FROM copied.streams WHERE name = ?", (name,))
        ((old,),) = connection.execute("SELECT id FROM main.streams WHERE name = ?", (name,))
        # Another id: a process that has the session open finds its stream deleted.
        connection.execute(
            "INSERT INTO main.streams (name, number, fencing) SELECT ?, ?, fencing FROM main.streams WHERE id = ?",
            (f"{name}\n{_REPLACEMENT}", number, old),
        )
        ((own,),) = connection.execute("SELECT last_insert_rowid()")
        for table in _TABLES:
            rest = {"frames": "number, data", "contents": "digest, data", "checkpoints": "number, data"}[table]
            connection.execute(f"DELETE FROM main.{table} WHERE stream = ?", (old,))
            connection.execute(
                f"INSERT INTO main.{table} (stream, {rest}) SELECT ?, {rest} FROM copied.{table} WHERE stream = ?",
                (own, new),
            )
        connection.execute("DELETE FROM main.streams WHERE id = ?", (old,))
        connection.execute("UPDATE main.streams SET name = ? WHERE id = ?", (name, own))
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        # Closing the connection rolls back.
        raise StorageError(
            f"cannot replace session {name!r} in {path!r}: {error}; check the disk, and that no other program uses it"
        ) from error
    finally:
        connection.close()
