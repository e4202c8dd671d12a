"""What SQLite, PostgreSQL and Redis store of a stream named `s`, read and replaced behind the back of the library."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.storage.servers import Server


class Row(NamedTuple):
    """A frame as it is stored; without a checksum if an earlier version stored it."""

    data: bytes
    checksum: int | None


class CheckpointRow(NamedTuple):
    number: int
    data: bytes
    checksum: str | None


class StoredRows(ABC):
    """The rows of one stream at `url`."""

    url: str

    @abstractmethod
    def frames(self) -> dict[int, Row]: ...

    @abstractmethod
    def set_frames(self, frames: Mapping[int, Row]) -> None:
        """Replace all frames."""

    @abstractmethod
    def checkpoint(self) -> CheckpointRow: ...

    @abstractmethod
    def set_checkpoint(self, row: CheckpointRow) -> None: ...

    @abstractmethod
    def set_head(self, number: int) -> None: ...


class SqlRows(StoredRows):
    """Rows of tables, through any client of a database."""

    # The prefix of the names of tables, and what stands for a parameter.
    schema, parameter = "", "?"

    @abstractmethod
    def execute(self, *statements: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Execute statements, each followed by its parameters, in a transaction; return the rows of the last one."""

    def frames(self) -> dict[int, Row]:
        rows = self._rows(f"SELECT number, data, checksum FROM {self.schema}frames ORDER BY number")
        return {number: Row(data, checksum) for number, data, checksum in rows}

    def set_frames(self, frames: Mapping[int, Row]) -> None:
        insert = (
            f"INSERT INTO {self.schema}frames (stream, number, data, checksum) "
            f"SELECT id, ?, ?, ? FROM {self.schema}streams"
        )
        added = [(insert, number, *row) for number, row in frames.items()]
        self._change((f"DELETE FROM {self.schema}frames",), *added)

    def checkpoint(self) -> CheckpointRow:
        ((number, data, checksum),) = self._rows(f"SELECT number, data, checksum FROM {self.schema}checkpoints")
        return CheckpointRow(number, data, checksum)

    def set_checkpoint(self, row: CheckpointRow) -> None:
        self._change((f"UPDATE {self.schema}checkpoints SET number = ?, data = ?, checksum = ?", *row))

    def set_head(self, number: int) -> None:
        self._change((f"UPDATE {self.schema}streams SET number = ?", number))

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.execute((statement,))

    def _change(self, *statements: tuple[Any, ...]) -> None:
        self.execute(*((one[0].replace("?", self.parameter), *one[1:]) for one in statements))


class SqliteRows(SqlRows):
    def __init__(self, path: Path) -> None:
        self.url, self._path = f"sqlite:{path}", path

    def execute(self, *statements: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        with closing(sqlite3.connect(self._path)) as connection, connection:
            for statement, *parameters in statements:
                rows = connection.execute(statement, parameters).fetchall()
        return rows


class PostgresRows(SqlRows):
    schema, parameter = "damaged.", "%s"

    def __init__(self, url: str) -> None:
        self._url, self.url = url, f"{url}&schema=damaged"
        self.execute(("DROP SCHEMA IF EXISTS damaged CASCADE",))

    def execute(self, *statements: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        psycopg: Any = pytest.importorskip("psycopg")
        rows: list[tuple[Any, ...]] = []
        with psycopg.connect(self._url) as connection:
            for statement, *parameters in statements:
                cursor = connection.execute(statement, parameters or None, binary=True)
                rows = cursor.fetchall() if cursor.description else []
        return rows


class RedisRows(StoredRows):
    frames_key, head_key, checkpoint_key = (f"damaged:{{s}}:{part}" for part in ("frames", "head", "checkpoint"))

    def __init__(self, url: str) -> None:
        self._url, self.url = url, f"{url}?namespace=damaged"
        self._execute("FLUSHALL")

    def _execute(self, *command: object) -> Any:
        redis: Any = pytest.importorskip("redis")
        with redis.Redis.from_url(self._url) as client:
            return client.execute_command(*command)

    def frames(self) -> dict[int, Row]:
        found: dict[int, Row] = {}
        # In a script, because the client converts the answer to the command itself.
        script = "return redis.call('XRANGE', KEYS[1], '-', '+')"
        for name, (field, data) in self._execute("EVAL", script, 1, self.frames_key):
            checksum = None if field == b"data" else int(field.removeprefix(b"crc32:"), 16)
            found[int(name.removesuffix(b"-0"))] = Row(data, checksum)
        return found

    def set_frames(self, frames: Mapping[int, Row]) -> None:
        self._execute("DEL", self.frames_key)
        for number, (data, checksum) in sorted(frames.items()):
            field = "data" if checksum is None else f"crc32:{checksum:08x}"
            self._execute("XADD", self.frames_key, f"{number}-0", field, data)

    def checkpoint(self) -> CheckpointRow:
        number, data, checksum = self._execute("HMGET", self.checkpoint_key, "number", "data", "checksum")
        return CheckpointRow(int(number), data, checksum.decode())

    def set_checkpoint(self, row: CheckpointRow) -> None:
        self._execute("HSET", self.checkpoint_key, "number", row.number, "data", row.data)
        if row.checksum is None:
            self._execute("HDEL", self.checkpoint_key, "checksum")
        else:
            self._execute("HSET", self.checkpoint_key, "checksum", row.checksum)

    def set_head(self, number: int) -> None:
        self._execute("HSET", self.head_key, "number", number)


def stored_rows(engine: str, request: pytest.FixtureRequest, folder: Path) -> StoredRows:
    """Return the rows of an empty database."""
    if engine == "sqlite":
        return SqliteRows(folder / "a.db")
    server: Server = request.getfixturevalue(f"{engine}_server")
    return PostgresRows(server.url) if engine == "postgresql" else RedisRows(server.url)
