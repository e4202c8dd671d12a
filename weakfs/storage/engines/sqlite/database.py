"""A connection to a SQLite file, and the tables."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from errno import ENOSPC
from urllib.parse import quote

from weakfs.storage.errors import StorageDamaged, StorageError, check_process

# The types of a value in SQL, in a row or as a parameter.
Value = str | bytes | int | float | None

SCHEMA = """
CREATE TABLE IF NOT EXISTS items (key TEXT PRIMARY KEY, value BLOB NOT NULL, version TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS streams (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, number INTEGER NOT NULL DEFAULT 0,
    fencing INTEGER NOT NULL DEFAULT 0, owner TEXT NOT NULL DEFAULT '',
    expires REAL NOT NULL DEFAULT 0, seconds REAL);
CREATE TABLE IF NOT EXISTS frames (
    stream INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL, checksum INTEGER,
    PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contents (
    stream INTEGER NOT NULL, digest TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (stream, digest));
CREATE TABLE IF NOT EXISTS checkpoints (
    stream INTEGER PRIMARY KEY, number INTEGER NOT NULL, data BLOB NOT NULL, checksum TEXT);
"""
# The columns that files of earlier versions lack.
ADDED = {"streams": "seconds REAL", "frames": "checksum INTEGER", "checkpoints": "checksum TEXT"}
# The version of the schema, in the header of the file. Since version 2, frames and checkpoints have checksums.
VERSION = 2
# What every append changes.
_NUMBERS = "SELECT id, number FROM streams ORDER BY id"
# How long to wait for another process's transaction, in seconds.
BUSY = 60.0


class Database:
    """One connection, which threads take turns using. A file without write permission is only read."""

    def __init__(self, path: str, *, durability: str = "process") -> None:
        if durability not in ("process", "power", "manual"):
            raise ValueError(f"invalid durability {durability!r}: choose 'process', 'power' or 'manual'")
        self.path, self._lock, self._is_closed = path, threading.RLock(), False
        self._process = os.getpid()
        self._file = None if path == ":memory:" else os.path.abspath(path)
        # The column with checksums, or what stands for it in a file of version 1 that cannot be written.
        self.checksum = "checksum"
        # A file that exists is identified before it is opened; one that is created can only be identified afterwards.
        self._identity = _identity(self._status())
        # The size of the file when it was last seen. It does not shrink, unless it is vacuumed.
        self._size = 0
        is_read_only = path != ":memory:" and os.path.isfile(path) and not os.access(path, os.W_OK)
        name = f"file:{quote(os.path.abspath(path))}?mode=ro" if is_read_only else path
        with self._errors():
            self._connection = sqlite3.connect(
                name, timeout=BUSY, isolation_level=None, check_same_thread=False, uri=is_read_only
            )
        try:
            if is_read_only:
                self._check_readable()
            else:
                with self._errors():
                    self._use_write_ahead_log()
                    self._connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
            self._identity = self._identity or _identity(self._status())
            if not is_read_only:
                self._make_schema()
        except BaseException:
            self._connection.close()
            raise

    def _check_readable(self) -> None:
        try:
            ((version,),) = self._connection.execute("PRAGMA user_version").fetchall()
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"cannot read {self.path!r}: {error}; SQLite can read a file without write permission "
                "only in a writable directory; copy the file to a directory of your own"
            ) from error
        except sqlite3.DatabaseError as error:
            raise StorageDamaged(f"cannot use {self.path!r}: {error}; restore the file from a backup") from error
        self._check_version(version)
        if version == 0:
            raise StorageError(f"cannot read {self.path!r}: nothing has been stored in it; check the path")
        if version == 1:
            self.checksum = "NULL"

    def _use_write_ahead_log(self) -> None:
        # SQLite does not wait here while another connection opens the file or recovers it after a kill.
        last = time.monotonic() + BUSY
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > last:
                    raise
            time.sleep(0.01)

    def _make_schema(self) -> None:
        with self.transaction():
            ((version,),) = self.rows("PRAGMA user_version")
            if self._check_version(version) < VERSION:
                for statement in filter(str.strip, SCHEMA.split(";")):
                    self.rows(statement)
                for table, column in ADDED.items():
                    name = column.partition(" ")[0]
                    if not self.rows("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", [table, name]):
                        self.rows(f"ALTER TABLE {table} ADD COLUMN {column}")
                self.rows(f"PRAGMA user_version = {VERSION}")

    def _check_version(self, version: object) -> int:
        if not isinstance(version, int) or version > VERSION:
            raise StorageError(
                f"cannot open {self.path!r}: its schema has version {version!r}, but this weakfs reads only up to "
                f"version {VERSION}; upgrade weakfs"
            )
        return version

    @property
    def url(self) -> str:
        is_plain = "?" not in self.path and not self.path.startswith("//")
        return f"sqlite:{self.path}" if is_plain else f"sqlite://{quote(os.path.abspath(self.path))}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            # Of a message of SQLite that quotes a damaged schema.
            raise StorageDamaged(f"cannot use {self.path!r}: {error}; restore the file from a backup") from error
        except sqlite3.OperationalError as error:
            if "Could not decode to UTF-8" in str(error):
                why = " ".join(ascii(str(error)).split())
                raise StorageDamaged(f"cannot use {self.path!r}: {why}; restore the file from a backup") from error
            is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            remedy = "free space on its disk, and try again" if is_full else "check the file, the disk and permissions"
            failed = StorageError(f"cannot use {self.path!r}: {error}; {remedy}")
            failed.errno = ENOSPC if is_full else None
            raise failed from error
        except sqlite3.DataError as error:
            # A value is longer than the file can hold: a gigabyte, unless SQLite was built otherwise.
            raise StorageError(f"cannot store this in {self.path!r}: {error}; split it") from error
        except sqlite3.DatabaseError as error:
            raise StorageDamaged(f"cannot use {self.path!r}: {error}; restore the file from a backup") from error

    def _status(self) -> os.stat_result | None:
        """Return the status of the file that has the path now; `None` if there is none, or the data is in memory."""
        try:
            return None if self._file is None else os.stat(self._file)
        except OSError:
            return None

    def _check_usable(self) -> None:
        """Raise `StorageError` if the connection was closed, or would use a file that is no longer at the path.

        SQLite would go on writing to that file, which nobody else can open. In a transaction, also raise
        `StorageDamaged` if an older copy was written over the file.
        """
        if self._is_closed:
            raise StorageError(f"cannot use {self.path!r}: it was closed; open it again")
        check_process(self._process, self.path)
        status = self._status()
        if _identity(status) != self._identity:
            raise StorageError(
                f"cannot use {self.path!r}: the file was removed or replaced while it was open; open it again"
            )
        if status is not None and status.st_size != self._size:
            if status.st_size < self._size:
                if not self._connection.in_transaction:
                    return
                self._check_overwritten()
            self._size = status.st_size

    def _check_overwritten(self) -> None:
        """Raise `StorageDamaged` if the file does not hold what this connection reads. Called inside a transaction.

        The file has shrunk: it was vacuumed, or an older copy was written over it. SQLite does not notice the latter,
        since the newest pages are in its cache and in the write-ahead log. Therefore another connection looks.
        """
        assert self._file is not None
        with self._errors(), closing(sqlite3.connect(self._file, timeout=BUSY)) as other:
            is_same = other.execute(_NUMBERS).fetchall() == self._connection.execute(_NUMBERS).fetchall()
            found = str(other.execute("PRAGMA quick_check(1)").fetchone()[0])
        if found != "ok" or not is_same:
            raise StorageDamaged(
                f"cannot use {self.path!r}: an older file was written over it while it was open; close it in all "
                f"programs, and restore it from a backup"
            )

    def rows(self, statement: str, parameters: Sequence[Value] = ()) -> list[tuple[Value, ...]]:
        with self._lock, self._errors():
            if self._is_closed or not self._connection.in_transaction:
                self._check_usable()
            return self._connection.execute(statement, parameters).fetchall()

    def many(self, statement: str, parameters: Iterable[Sequence[Value]]) -> None:
        with self._lock, self._errors():
            self._connection.executemany(statement, parameters)

    def changed(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        """Execute a statement; return the number of rows that it changed."""
        with self._lock, self._errors():
            if self._is_closed or not self._connection.in_transaction:
                self._check_usable()
            return self._connection.execute(statement, parameters).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make several changes as one, or none of them if the block raises an exception."""
        with self._lock:
            self.rows("BEGIN IMMEDIATE")
            try:
                # The statement may have waited for the transaction of another process.
                self._check_usable()
                yield
                self.rows("COMMIT")
            except BaseException:
                # If the disk is full, SQLite has rolled back already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def flush(self) -> None:
        """Copy the write-ahead log into the file, which syncs both."""
        self.rows("PRAGMA wal_checkpoint(FULL)")
        self._check_usable()

    def check(self) -> None:
        """Read the whole file. Raises `StorageDamaged` if its pages, tables and indexes contradict each other."""
        found = [str(one) for (one,) in self.rows("PRAGMA integrity_check(1)")]
        if found != ["ok"]:
            why = " ".join(found[0].split())
            raise StorageDamaged(f"cannot use {self.path!r}: {why}; restore the file from a backup")

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._process == os.getpid():
                self._connection.close()


def _identity(status: os.stat_result | None) -> tuple[int, int] | None:
    return None if status is None else (status.st_dev, status.st_ino)
