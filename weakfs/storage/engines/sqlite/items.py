"""Keys and values in a table of SQLite."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from weakfs.storage.engine_base import BatchedStorage
from weakfs.storage.engines.sqlite.database import Database, Value
from weakfs.storage.keys import LAST, check_item, check_key
from weakfs.storage.storage import Versioned


class AsyncSqliteStorage(BatchedStorage):
    """An `AsyncStorage` in a SQLite file, whose methods block; `SqliteStorage` opens it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def url(self) -> str:
        return self._database.url

    async def get_versioned(self, key: str) -> Versioned | None:
        for value, version in self._database.rows("SELECT value, version FROM items WHERE key = ?", [check_key(key)]):
            assert isinstance(value, bytes)
            return Versioned(value, str(version))
        return None

    async def set_many(self, values: Mapping[str, bytes]) -> None:
        rows = [(check_item(key, value), value, secrets.token_hex(8)) for key, value in values.items()]
        with self._database.transaction():
            self._database.many("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", rows)

    async def create(self, key: str, value: bytes) -> str | None:
        version = secrets.token_hex(8)
        row: list[Value] = [check_item(key, value), value, version]
        return version if self._database.changed("INSERT OR IGNORE INTO items VALUES (?, ?, ?)", row) else None

    async def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        new = secrets.token_hex(8)
        statement = "UPDATE items SET value = ?, version = ? WHERE key = ? AND version = ?"
        return new if self._database.changed(statement, [value, new, check_item(key, value), version]) else None

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
