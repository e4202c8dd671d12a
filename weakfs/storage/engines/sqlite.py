"""Storage in one SQLite file, using the standard library: for the processes of one machine.

The file is in WAL mode. A change survives the death of the process; with `?durability=power` every change is synced and
survives a power failure as well; otherwise `flush` syncs.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote

from weakfs.storage.adapters import SyncStorage, run_in_place
from weakfs.storage.derived import DerivedStorage
from weakfs.storage.engines import Engine
from weakfs.storage.engines.leases import check_fencing, lease_is_held
from weakfs.storage.errors import StorageDamaged, StorageError, StreamConflict
from weakfs.storage.event_store import Checkpoint, Frame, Lease
from weakfs.storage.keys import LAST, check_digest, check_key, check_stream
from weakfs.storage.storage import Versioned

# The types of a value in SQL, in a row or as a parameter.
Value = str | bytes | int | float | None

SCHEMA = """
CREATE TABLE IF NOT EXISTS items (key TEXT PRIMARY KEY, value BLOB NOT NULL, version TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS streams (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, number INTEGER NOT NULL DEFAULT 0,
    fencing INTEGER NOT NULL DEFAULT 0, owner TEXT NOT NULL DEFAULT '',
    expires REAL NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS frames (
    stream INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contents (
    stream INTEGER NOT NULL, digest TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (stream, digest));
CREATE TABLE IF NOT EXISTS checkpoints (stream INTEGER PRIMARY KEY, number INTEGER NOT NULL, data BLOB NOT NULL);
"""
# The version of the schema, in the header of the file.
VERSION = 1
# How long to wait for another process's transaction, in seconds.
BUSY = 60.0
PAGE = 256
FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.1


class Database:
    """One connection, which threads take turns using."""

    def __init__(self, path: str, *, durability: str = "process") -> None:
        if durability not in ("process", "power", "manual"):
            raise ValueError(f"invalid durability {durability!r}: choose 'process', 'power' or 'manual'")
        self.path, self._lock, self._is_closed = path, threading.RLock(), False
        with self._errors():
            self._connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            with self._errors():
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
            self._make_schema()
        except BaseException:
            self._connection.close()
            raise

    def _make_schema(self) -> None:
        with self.transaction():
            ((version,),) = self.rows("PRAGMA user_version")
            if not isinstance(version, int) or version > VERSION:
                raise StorageError(
                    f"cannot open {self.path!r}: its schema has version {version!r}, and this weakfs reads up to "
                    f"version {VERSION}; upgrade weakfs"
                )
            if version < VERSION:
                for statement in filter(str.strip, SCHEMA.split(";")):
                    self.rows(statement)
                self.rows(f"PRAGMA user_version = {VERSION}")

    @property
    def url(self) -> str:
        return f"sqlite:{self.path}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"cannot use {self.path!r}: {error}; check the file, the disk and permissions"
            ) from error
        except sqlite3.DatabaseError as error:
            raise StorageDamaged(f"cannot use {self.path!r}: {error}; restore the file from a backup") from error

    def rows(self, statement: str, parameters: Sequence[Value] = ()) -> list[tuple[Value, ...]]:
        with self._lock, self._errors():
            if self._is_closed:
                raise StorageError(f"cannot use {self.path!r}: it was closed; open it again")
            return self._connection.execute(statement, parameters).fetchall()

    def many(self, statement: str, parameters: Iterable[Sequence[Value]]) -> None:
        with self._lock, self._errors():
            self._connection.executemany(statement, parameters)

    def changed(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        """Execute a statement; return the number of rows that it changed."""
        with self._lock, self._errors():
            if self._is_closed:
                raise StorageError(f"cannot use {self.path!r}: it was closed; open it again")
            return self._connection.execute(statement, parameters).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make several changes as one, or none of them if the block raises an exception."""
        with self._lock:
            self.rows("BEGIN IMMEDIATE")
            try:
                yield
                self.rows("COMMIT")
            except BaseException:
                # If the disk is full, SQLite has rolled back already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._connection.close()


def _location(url: str) -> tuple[str, str]:
    """Return the path and the durability in a URL: `sqlite:PATH`, or `sqlite:///PATH` with `%20` and the like."""
    rest, _, query = url.partition(":")[2].partition("?")
    options = parse_qs(query, keep_blank_values=True)
    if unknown := options.keys() - {"durability"}:
        raise ValueError(f"cannot open {url!r}: unknown option {sorted(unknown)[0]!r}; the only one is 'durability'")
    path = unquote(rest.removeprefix("//")) if rest.startswith("///") else rest
    if not path:
        raise ValueError(f"cannot open {url!r}: it has no path; write sqlite:PATH")
    return path, options.get("durability", ["process"])[-1]


class _Items(DerivedStorage):
    """Keys and values in a table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def url(self) -> str:
        return self._database.url

    @property
    def atomic_batches(self) -> bool:
        return True

    async def get_versioned(self, key: str) -> Versioned | None:
        for value, version in self._database.rows("SELECT value, version FROM items WHERE key = ?", [check_key(key)]):
            assert isinstance(value, bytes)
            return Versioned(value, str(version))
        return None

    async def set(self, key: str, value: bytes) -> None:
        await self.set_many({key: value})

    async def set_many(self, values: Mapping[str, bytes]) -> None:
        rows = [(check_key(key), value, secrets.token_hex(8)) for key, value in values.items()]
        with self._database.transaction():
            self._database.many("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", rows)

    async def create(self, key: str, value: bytes) -> str | None:
        version = secrets.token_hex(8)
        row: list[Value] = [check_key(key), value, version]
        return version if self._database.changed("INSERT OR IGNORE INTO items VALUES (?, ?, ?)", row) else None

    async def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        new = secrets.token_hex(8)
        statement = "UPDATE items SET value = ?, version = ? WHERE key = ? AND version = ?"
        return new if self._database.changed(statement, [value, new, check_key(key), version]) else None

    async def delete(self, key: str) -> bool:
        return bool(self._database.changed("DELETE FROM items WHERE key = ?", [check_key(key)]))

    async def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        rows = self._database.rows(
            "SELECT key FROM items WHERE key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?",
            [prefix, prefix + LAST, after, -1 if limit is None else limit],
        )
        return [str(key) for (key,) in rows]

    async def clear(self, prefix: str = "") -> int:
        return self._database.changed("DELETE FROM items WHERE key >= ? AND key < ?", [prefix, prefix + LAST])

    async def close(self) -> None:
        self._database.close()


class SqliteStorage(SyncStorage):
    """A `Storage` in a SQLite file."""

    def __init__(self, path: str, *, durability: str = "process") -> None:
        self._path, self._durability = path, durability
        super().__init__(_Items(Database(path, durability=durability)), run=run_in_place)

    def event_store(self) -> SqliteEventStore:
        """Open the event streams in the same file, on a connection of their own."""
        return SqliteEventStore(self._path, durability=self._durability)


class SqliteEventStore:
    """An `EventStore` in a SQLite file: an append is a transaction."""

    def __init__(self, path: str, *, durability: str = "process") -> None:
        self._database = Database(path, durability=durability)

    @property
    def url(self) -> str:
        return self._database.url

    def head(self, stream: str) -> int:
        return self._find(stream)[1]

    def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        _check_digests(contents or {})
        with self._database.transaction():
            id_, number = self._find(stream)
            if number != expected and frames and self._has_frames(id_, expected, frames):
                return expected + len(frames)
            self._check_fencing(stream, fencing)
            if number != expected:
                raise StreamConflict(stream, expected, number)
            id_ = id_ or self._create(stream)
            self._store_contents(id_, contents or {})
            last = expected + len(frames)
            rows = zip([id_] * len(frames), range(expected + 1, last + 1), frames, strict=True)
            self._database.many("INSERT INTO frames VALUES (?, ?, ?)", rows)
            self._database.rows("UPDATE streams SET number = ? WHERE id = ?", [last, id_])
            return last

    def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> Iterator[Frame]:
        id_, _ = self._find(stream)
        while limit is None or limit > 0:
            page = PAGE if limit is None else min(PAGE, limit)
            rows = self._database.rows(
                "SELECT number, data FROM frames WHERE stream = ? AND number > ? ORDER BY number LIMIT ?",
                [id_, after, page],
            )
            for number, data in rows:
                assert isinstance(number, int)
                assert isinstance(data, bytes)
                yield Frame(number, data)
                after = number
            if len(rows) < page:
                return
            limit = None if limit is None else limit - page

    def wait(self, stream: str, after: int, timeout: float) -> int:
        pause = FIRST_PAUSE
        while True:
            number = self.head(stream)
            if number > after or timeout <= 0:
                return number
            time.sleep(min(pause, timeout))
            timeout -= pause
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        _check_digests(contents)
        with self._database.transaction():
            self._store_contents(self._find(stream)[0] or self._create(stream), contents)

    def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        id_, _ = self._find(stream)
        found: dict[str, bytes] = {}
        for digest in digests:
            for (data,) in self._database.rows(
                "SELECT data FROM contents WHERE stream = ? AND digest = ?", [id_, check_digest(digest)]
            ):
                assert isinstance(data, bytes)
                found[digest] = data
        return found

    def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        id_, _ = self._find(stream)
        statement = "SELECT 1 FROM contents WHERE stream = ? AND digest = ?"
        return {digest for digest in digests if self._database.rows(statement, [id_, check_digest(digest)])}

    def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        with self._database.transaction():
            id_ = self._find(stream)[0] or self._create(stream)
            self._database.rows(
                "INSERT INTO checkpoints VALUES (?, ?, ?) ON CONFLICT (stream) DO UPDATE "
                "SET number = excluded.number, data = excluded.data WHERE number <= excluded.number",
                [id_, checkpoint.number, checkpoint.data],
            )

    def get_checkpoint(self, stream: str) -> Checkpoint | None:
        id_, _ = self._find(stream)
        for number, data in self._database.rows("SELECT number, data FROM checkpoints WHERE stream = ?", [id_]):
            assert isinstance(number, int)
            assert isinstance(data, bytes)
            return Checkpoint(number, data)
        return None

    def trim(self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None) -> None:
        with self._database.transaction():
            id_, number = self._find(stream)
            if expected is not None and expected != number:
                raise StreamConflict(stream, expected, number)
            self._database.rows("DELETE FROM frames WHERE stream = ? AND number < ?", [id_, before])
            rows = [(id_, check_digest(digest)) for digest in contents]
            self._database.many("DELETE FROM contents WHERE stream = ? AND digest = ?", rows)

    def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        rows = self._database.rows(
            "SELECT name FROM streams WHERE name >= ? AND name < ? AND name > ? ORDER BY name LIMIT ?",
            [prefix, prefix + LAST, after, -1 if limit is None else limit],
        )
        return [str(name) for (name,) in rows]

    def delete(self, stream: str) -> bool:
        with self._database.transaction():
            id_, _ = self._find(stream)
            for table in ("frames", "contents", "checkpoints"):
                self._database.rows(f"DELETE FROM {table} WHERE stream = ?", [id_])
            return bool(self._database.changed("DELETE FROM streams WHERE id = ?", [id_]))

    def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        with self._database.transaction():
            id_ = self._find(stream)[0] or self._create(stream)
            (row,) = self._database.rows("SELECT fencing, owner, expires FROM streams WHERE id = ?", [id_])
            fencing, now = int(row[0] or 0), time.time()
            left = float(row[2] or 0) - now
            fencing += not lease_is_held(stream, owner, by=str(row[1]), left=left)
            self._database.rows(
                "UPDATE streams SET fencing = ?, owner = ?, expires = ? WHERE id = ?",
                [fencing, owner, now + seconds, id_],
            )
            return Lease(stream, owner, fencing, seconds)

    def release(self, lease: Lease) -> None:
        self._database.rows(
            "UPDATE streams SET owner = '', expires = 0 WHERE name = ? AND owner = ? AND fencing = ?",
            [lease.stream, lease.owner, lease.fencing],
        )

    def flush(self) -> None:
        """Copy the write-ahead log into the file, which syncs both."""
        self._database.rows("PRAGMA wal_checkpoint(FULL)")

    def close(self) -> None:
        self._database.close()

    def _find(self, stream: str) -> tuple[int, int]:
        """Return the id and the newest frame of a stream; zeros if the stream does not exist."""
        for id_, number in self._database.rows("SELECT id, number FROM streams WHERE name = ?", [check_stream(stream)]):
            assert isinstance(id_, int)
            assert isinstance(number, int)
            return id_, number
        return 0, 0

    def _create(self, stream: str) -> int:
        self._database.rows("INSERT INTO streams (name) VALUES (?)", [stream])
        return self._find(stream)[0]

    def _check_fencing(self, stream: str, fencing: int | None) -> None:
        statement = "SELECT fencing, owner, expires FROM streams WHERE name = ?"
        for newest, owner, expires in self._database.rows(statement, [stream]):
            is_held = float(expires or 0) > time.time()
            check_fencing(stream, fencing, newest=int(newest or 0), owner=str(owner), is_held=is_held)

    def _has_frames(self, id_: int, expected: int, frames: Sequence[bytes]) -> bool:
        found = self._database.rows(
            "SELECT data FROM frames WHERE stream = ? AND number > ? AND number <= ? ORDER BY number",
            [id_, expected, expected + len(frames)],
        )
        return [data for (data,) in found] == list(frames)

    def _store_contents(self, id_: int, contents: Mapping[str, bytes]) -> None:
        rows = [(id_, digest, data) for digest, data in contents.items()]
        self._database.many("INSERT OR IGNORE INTO contents VALUES (?, ?, ?)", rows)


def _check_digests(contents: Mapping[str, bytes]) -> None:
    for digest in contents:
        check_digest(digest)


def _open_storage(url: str) -> SqliteStorage:
    path, durability = _location(url)
    return SqliteStorage(path, durability=durability)


def _open_event_store(url: str) -> SqliteEventStore:
    path, durability = _location(url)
    return SqliteEventStore(path, durability=durability)


ENGINE = Engine(_open_storage, _open_event_store)
