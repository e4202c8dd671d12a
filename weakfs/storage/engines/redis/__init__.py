"""Storage in Redis 7, by redis-py; needs the extra `redis`.

Every change is one script, and so takes effect as a whole. What Redis acknowledges is as durable as its append-only
file: opening warns if that is not synced at every change. The option `namespace` of the URL begins the names of keys.
"""

from weakfs.storage.engines.redis.opening import (
    ENGINE,
    RedisEventStore,
    RedisStorage,
    open_async_event_store,
    open_async_storage,
)

__all__ = ["ENGINE", "RedisEventStore", "RedisStorage", "open_async_event_store", "open_async_storage"]
