"""Storage in PostgreSQL, by psycopg and its pool; needs the extra `postgresql`.

Event streams have tables of their own: an append is one statement, and those who wait are woken by NOTIFY. The option
`schema` of the URL names the schema of the tables, which are made where they are missing.
"""

from weakfs.storage.engines.postgresql.opening import (
    ENGINE,
    PostgresEventStore,
    PostgresStorage,
    open_async_event_store,
    open_async_storage,
)

__all__ = ["ENGINE", "PostgresEventStore", "PostgresStorage", "open_async_event_store", "open_async_storage"]
