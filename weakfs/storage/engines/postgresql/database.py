"""A pool of connections to PostgreSQL, synchronous or asynchronous, and the tables."""

from __future__ import annotations

import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from weakfs.storage.engines.postgresql.notifications import AsyncNotifications, Notifications, SyncNotifications
from weakfs.storage.engines.urls import redacted, shown_cause, take_options, without_secrets
from weakfs.storage.errors import DurabilityWarning, OutcomeUnknown, StorageError, check_process, check_size

Parameter = str | bytes | int | float | None | Sequence[str] | Sequence[bytes] | Sequence[int]
Row = tuple[object, ...]
# A statement, in which `{schema}` stands for the schema, and its parameters.
Statement = tuple[str, Sequence[Parameter]]

VERSION = 1
SCHEMA = """
SELECT pg_advisory_xact_lock(8390880602711483);
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.format (version integer NOT NULL PRIMARY KEY);
CREATE SEQUENCE IF NOT EXISTS {schema}.versions;
CREATE TABLE IF NOT EXISTS {schema}.items (
    key text COLLATE "C" PRIMARY KEY, value bytea NOT NULL, version bigint NOT NULL);
CREATE TABLE IF NOT EXISTS {schema}.streams (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE,
    number bigint NOT NULL DEFAULT 0, fencing bigint NOT NULL DEFAULT 0, owner text NOT NULL DEFAULT '',
    expires timestamptz NOT NULL DEFAULT 'epoch', watched timestamptz NOT NULL DEFAULT 'epoch',
    seconds float8);
CREATE TABLE IF NOT EXISTS {schema}.frames (
    stream bigint NOT NULL, number bigint NOT NULL, data bytea NOT NULL, checksum bigint,
    PRIMARY KEY (stream, number));
CREATE TABLE IF NOT EXISTS {schema}.contents (
    stream bigint NOT NULL, digest text NOT NULL, data bytea NOT NULL, PRIMARY KEY (stream, digest));
CREATE TABLE IF NOT EXISTS {schema}.checkpoints (
    stream bigint PRIMARY KEY, number bigint NOT NULL, data bytea NOT NULL, checksum text);
INSERT INTO {schema}.format VALUES (1) ON CONFLICT DO NOTHING;
"""
# The columns that tables of earlier versions lack, the newest last; these versions can still use them. Each is a
# transaction of its own: whoever holds one of these locks and waits for another one deadlocks with readers.
COLUMNS = (
    "ALTER TABLE {schema}.streams ADD COLUMN IF NOT EXISTS seconds float8",
    "ALTER TABLE {schema}.frames ADD COLUMN IF NOT EXISTS checksum bigint",
    "ALTER TABLE {schema}.checkpoints ADD COLUMN IF NOT EXISTS checksum text",
)
_IS_COMPLETE = (
    "SELECT to_regclass('{schema}.streams') IS NOT NULL AND EXISTS (SELECT FROM pg_attribute "
    "WHERE attrelid = to_regclass('{schema}.checkpoints') AND attname = 'checksum')"
)
# The maximum size of the values of one statement, in bytes: the server reads it into a buffer of a gigabyte.
LARGEST = (1 << 30) - (1 << 20)
# How long to wait for a connection, in seconds.
CONNECT = 10.0
# The pool gives up connecting after this many seconds, because it doubles the pauses between its attempts: so no pause
# left over from an outage outlasts the wait of a call.
RECONNECT = CONNECT / 2
POOL: Any = {"min_size": 0, "max_size": 8, "timeout": CONNECT, "reconnect_timeout": RECONNECT, "name": "weakfs"}


class Database(ABC):
    """Statements on a pool of connections, and notifications. Each call is a transaction."""

    notifications: Notifications

    def __init__(self, url: str) -> None:
        self._conninfo, options = take_options(url, {"schema"})
        self.schema = options.get("schema", "weakfs")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,50}", self.schema):
            raise ValueError(f"invalid schema {self.schema!r}: use lower-case letters, digits and underscores only")
        self.url, self._secret_url = redacted(url), url
        self._process = os.getpid()
        self._settings = {"autocommit": True, "connect_timeout": int(CONNECT), "application_name": "weakfs"}

    async def rows(self, *statements: Statement, is_change: bool = True) -> list[Row]:
        """Execute statements as one transaction, and return the rows of the last one."""
        self.check_sizes(statements)
        with self.errors(is_change=is_change):
            try:
                return await self._rows(statements)
            except psycopg.OperationalError as error:
                if error.sqlstate and error.sqlstate[:3] != "57P":
                    raise
                # The server was restarted: the other connections of the pool are lost too.
                await self._check_pool()
                if is_change:
                    raise
                return await self._rows(statements)

    @abstractmethod
    async def open(self) -> None:
        """Connect, so that a wrong address or password is found immediately."""

    @abstractmethod
    async def _rows(self, statements: Sequence[Statement]) -> list[Row]: ...

    @abstractmethod
    async def _check_pool(self) -> None:
        """Replace the connections of the pool that are lost."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections, unless they are those of the process from which this one was forked."""

    @property
    def channel(self) -> str:
        return f"weakfs_{self.schema}"

    @property
    def listen_statement(self) -> bytes:
        return f'LISTEN "{self.channel}"'.encode()

    async def make_tables(self) -> None:
        """Create the tables if they are missing, and warn if the server may lose acknowledged changes.

        Raises `StorageError` if the tables are those of a newer version.
        """
        ((is_complete,),) = await self.rows((_IS_COMPLETE, ()), is_change=False)
        if not is_complete:
            await self.rows(*((statement, ()) for statement in SCHEMA.split(";\n") if statement))
            for statement in COLUMNS:
                await self.rows((statement, ()))
        ((version,),) = await self.rows(("SELECT max(version) FROM {schema}.format", ()), is_change=False)
        if not isinstance(version, int) or version > VERSION:
            raise StorageError(
                f"cannot open {self.url!r}: its tables have version {version}, but this weakfs reads only up "
                f"to version {VERSION}; upgrade weakfs"
            )
        settings = "SELECT name FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit') AND setting = 'off'"
        if weak := [str(name) for (name,) in await self.rows((settings, ()), is_change=False)]:
            warnings.warn(
                f"{self.url!r} may lose acknowledged changes when its machine fails: {' and '.join(weak)} off; turn on "
                f"{' and '.join(weak)}",
                DurabilityWarning,
                stacklevel=6,
            )

    def check_sizes(self, statements: Sequence[Statement]) -> None:
        """Raise `StorageError` if a statement is too large for the server."""
        for _, parameters in statements:
            values = chain.from_iterable(one if isinstance(one, list | tuple) else (one,) for one in parameters)
            check_size(sum(len(value) for value in values if type(value) is bytes), LARGEST, self.url)

    def sql(self, statement: str) -> bytes:
        return statement.replace("{schema}", f'"{self.schema}"').encode()

    @contextmanager
    def errors(self, *, is_change: bool) -> Iterator[None]:
        """Raise the client's errors as errors of storage; no message contains a password."""
        check_process(self._process, self.url)
        try:
            yield
        except (PoolTimeout, psycopg.Error) as error:
            why = without_secrets(" ".join(str(error).split()), self._secret_url)
            state = getattr(error, "sqlstate", None) or ""
            # 57P: the server is shutting down; 08: the connection failed; no state: the client lost it.
            is_lost = isinstance(error, psycopg.OperationalError) and (not state or state.startswith(("57P", "08")))
            cause = shown_cause(error, self._secret_url)
            if is_change and is_lost and not isinstance(error, PoolTimeout):
                raise OutcomeUnknown(f"cannot tell whether {self.url!r} was changed: {why}; repeat the call") from cause
            raise StorageError(f"cannot use {self.url!r}: {why}; check the server and its address") from cause


class SyncDatabase(Database):
    """A database whose coroutines never wait: they block."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._pool = ConnectionPool(self._conninfo, kwargs=self._settings, open=False, **POOL)
        self.notifications = SyncNotifications(self._connect_listener)

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._conninfo, **self._settings)  # type: ignore[arg-type]

    def _connect_listener(self) -> psycopg.Connection:
        with self.errors(is_change=False):
            connection = self._connect()
            connection.execute(self.listen_statement)
            return connection

    async def open(self) -> None:
        with self.errors(is_change=False):
            self._connect().close()
            self._pool.open()

    async def _check_pool(self) -> None:
        self._pool.check()

    async def _rows(self, statements: Sequence[Statement]) -> list[Row]:
        with self._pool.connection() as connection:
            if len(statements) == 1:
                return _fetch(connection.execute(self.sql(statements[0][0]), statements[0][1] or None, binary=True))
            rows: list[Row] = []
            with connection.transaction():
                for statement, parameters in statements:
                    rows = _fetch(connection.execute(self.sql(statement), parameters or None, binary=True))
            return rows

    async def close(self) -> None:
        if self._process == os.getpid():
            await self.notifications.close()
            self._pool.close()


class AsyncDatabase(Database):
    """A database on the event loop that it was opened on."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._pool = AsyncConnectionPool(self._conninfo, kwargs=self._settings, open=False, **POOL)
        self.notifications = AsyncNotifications(self._connect_listener)

    async def _connect(self) -> psycopg.AsyncConnection:
        return await psycopg.AsyncConnection.connect(self._conninfo, **self._settings)  # type: ignore[arg-type]

    async def _connect_listener(self) -> psycopg.AsyncConnection:
        connection = await self._connect()
        try:
            await connection.execute(self.listen_statement)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def open(self) -> None:
        with self.errors(is_change=False):
            await (await self._connect()).close()
            await self._pool.open()

    async def _check_pool(self) -> None:
        await self._pool.check()

    async def _rows(self, statements: Sequence[Statement]) -> list[Row]:
        async with self._pool.connection() as connection:
            if len(statements) == 1:
                cursor = await connection.execute(self.sql(statements[0][0]), statements[0][1] or None, binary=True)
                return await cursor.fetchall() if cursor.description else []
            rows: list[Row] = []
            async with connection.transaction():
                for statement, parameters in statements:
                    cursor = await connection.execute(self.sql(statement), parameters or None, binary=True)
                    rows = await cursor.fetchall() if cursor.description else []
            return rows

    async def close(self) -> None:
        if self._process != os.getpid():
            return
        try:
            await self.notifications.close()
        finally:
            await self._pool.close()


def _fetch(cursor: psycopg.Cursor[Row]) -> list[Row]:
    return cursor.fetchall() if cursor.description else []
