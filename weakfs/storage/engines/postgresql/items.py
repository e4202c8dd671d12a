"""Keys and values in a table of PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping

from weakfs.storage.engine_base import PAGE, BatchedStorage
from weakfs.storage.engines.postgresql.database import Database
from weakfs.storage.keys import LAST, check_item, check_key
from weakfs.storage.storage import Versioned

_SET = (
    "INSERT INTO {schema}.items SELECT key, value, nextval('{schema}.versions') "
    "FROM unnest(%s::text[], %b::bytea[]) AS new (key, value) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version"
)
_CREATE = (
    "INSERT INTO {schema}.items VALUES (%s, %b, nextval('{schema}.versions')) ON CONFLICT DO NOTHING RETURNING version"
)
_REPLACE = (
    "UPDATE {schema}.items SET value = %b, version = nextval('{schema}.versions') "
    "WHERE key = %s AND version::text = %s RETURNING version"
)
_KEYS = "SELECT key FROM {schema}.items WHERE key >= %s AND key < %s AND key > %s ORDER BY key LIMIT %s"
_PAGE = "SELECT key, value FROM {schema}.items WHERE key >= %s AND key < %s AND key > %s ORDER BY key LIMIT %s"
_CLEAR = "WITH gone AS (DELETE FROM {schema}.items WHERE key >= %s AND key < %s RETURNING 1) SELECT count(*) FROM gone"


class AsyncPostgresStorage(BatchedStorage):
    """An `AsyncStorage` in PostgreSQL; `open_async_storage` and `PostgresStorage` open it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def url(self) -> str:
        return self._database.url

    async def get_versioned(self, key: str) -> Versioned | None:
        statement = "SELECT value, version FROM {schema}.items WHERE key = %s"
        for value, version in await self._database.rows((statement, [check_key(key)]), is_change=False):
            assert isinstance(value, bytes)
            return Versioned(value, str(version))
        return None

    async def exists(self, key: str) -> bool:
        statement = "SELECT 1 FROM {schema}.items WHERE key = %s"
        return bool(await self._database.rows((statement, [check_key(key)]), is_change=False))

    async def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        statement = "SELECT key, value FROM {schema}.items WHERE key = ANY(%s)"
        return _values(await self._database.rows((statement, [[check_key(key) for key in keys]]), is_change=False))

    async def set_many(self, values: Mapping[str, bytes]) -> None:
        # In order, so that two batches never wait for each other.
        keys = sorted(check_item(key, value) for key, value in values.items())
        await self._database.rows((_SET, [keys, [values[key] for key in keys]]))

    async def create(self, key: str, value: bytes) -> str | None:
        rows = await self._database.rows((_CREATE, [check_item(key, value), value]))
        return str(rows[0][0]) if rows else None

    async def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        rows = await self._database.rows((_REPLACE, [value, check_item(key, value), version]))
        return str(rows[0][0]) if rows else None

    async def delete(self, key: str) -> bool:
        statement = "DELETE FROM {schema}.items WHERE key = %s RETURNING 1"
        return bool(await self._database.rows((statement, [check_key(key)])))

    async def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        rows = await self._database.rows((_KEYS, [prefix, prefix + LAST, after, limit]), is_change=False)
        return [str(key) for (key,) in rows]

    async def items(self, prefix: str = "") -> AsyncIterator[tuple[str, bytes]]:
        after = ""
        while rows := await self._database.rows((_PAGE, [prefix, prefix + LAST, after, PAGE]), is_change=False):
            for item in _values(rows).items():
                yield item
                after = item[0]

    async def clear(self, prefix: str = "") -> int:
        ((count,),) = await self._database.rows((_CLEAR, [prefix, prefix + LAST]))
        return int(str(count))

    async def close(self) -> None:
        await self._database.close()


def _values(rows: Iterable[tuple[object, ...]]) -> dict[str, bytes]:
    return {str(key): value for key, value in rows if isinstance(value, bytes)}
