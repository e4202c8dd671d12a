"""Keys and values in Redis: a hash for each key with its value and version, and a sorted set of all keys.

All of them are in one slot of a cluster. To use many machines, use event streams, each of which has its own slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weakfs.storage.engine_base import BatchedStorage
from weakfs.storage.engines.redis.client import Client, texts, words
from weakfs.storage.keys import LAST, check_item, check_key
from weakfs.storage.storage import Versioned

# KEYS: the sorted set, the counter of versions. ARGV: the prefix of hashes, then the arguments of each script.
_PUT = """
local function put(key, value)
    local version = redis.call('INCR', KEYS[2])
    redis.call('HSET', ARGV[1] .. key, 'value', value, 'version', version)
    redis.call('ZADD', KEYS[1], 0, key)
    return tostring(version)
end
"""
_SET = _PUT + "for at = 2, #ARGV, 2 do put(ARGV[at], ARGV[at + 1]) end return 1"
_CREATE = _PUT + "if redis.call('EXISTS', ARGV[1] .. ARGV[2]) == 1 then return '' end return put(ARGV[2], ARGV[3])"
_REPLACE = (
    _PUT
    + "if redis.call('HGET', ARGV[1] .. ARGV[2], 'version') ~= ARGV[4] then return '' end return put(ARGV[2], ARGV[3])"
)
_GET = """
local found = {}
for at = 2, #ARGV do found[at - 1] = redis.call('HGET', ARGV[1] .. ARGV[at], 'value') end
return found
"""
_DELETE = "redis.call('ZREM', KEYS[1], ARGV[2]) return redis.call('DEL', ARGV[1] .. ARGV[2])"
_CLEAR = """
local keys = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[2], ARGV[3])
for _, key in ipairs(keys) do redis.call('DEL', ARGV[1] .. key) end
redis.call('ZREMRANGEBYLEX', KEYS[1], ARGV[2], ARGV[3])
return #keys
"""


class AsyncRedisStorage(BatchedStorage):
    """An `AsyncStorage` in Redis; `open_async_storage` and `RedisStorage` open it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        tag = f"{{{client.namespace}}}"
        self._keys, self._prefix = [f"{tag}:keys", f"{tag}:versions"], f"{tag}:item:"

    @property
    def url(self) -> str:
        return self._client.url

    async def get_versioned(self, key: str) -> Versioned | None:
        value, version = words(await self._client.read("HMGET", self._prefix + check_key(key), "value", "version"))
        return Versioned(value, version.decode()) if isinstance(value, bytes) and isinstance(version, bytes) else None

    async def exists(self, key: str) -> bool:
        return await self._client.read("EXISTS", self._prefix + check_key(key)) == 1

    async def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        wanted = [check_key(key) for key in keys]
        values = words(await self._client.run(_GET, self._keys, self._prefix, *wanted, is_change=False))
        return {key: value for key, value in zip(wanted, values, strict=True) if isinstance(value, bytes)}

    async def set_many(self, values: Mapping[str, bytes]) -> None:
        pairs = [word for key, value in values.items() for word in (check_item(key, value), value)]
        await self._client.run(_SET, self._keys, self._prefix, *pairs)

    async def create(self, key: str, value: bytes) -> str | None:
        return _version(await self._client.run(_CREATE, self._keys, self._prefix, check_item(key, value), value))

    async def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        return _version(
            await self._client.run(_REPLACE, self._keys, self._prefix, check_item(key, value), value, version)
        )

    async def delete(self, key: str) -> bool:
        return await self._client.run(_DELETE, self._keys, self._prefix, check_key(key)) == 1

    async def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return await listed(self._client, self._keys[0], prefix, after, limit)

    async def clear(self, prefix: str = "") -> int:
        first, last = f"[{prefix}", f"({prefix}{LAST}"
        return int(str(await self._client.run(_CLEAR, self._keys, self._prefix, first, last)))

    async def close(self) -> None:
        await self._client.close()


async def listed(client: Client, names: str, prefix: str, after: str, limit: int | None) -> list[str]:
    """Return the members of a sorted set that start with `prefix` and follow `after`, in order."""
    first = f"({after}" if after >= prefix and after else f"[{prefix}"
    count = -1 if limit is None else limit
    return texts(await client.read("ZRANGEBYLEX", names, first, f"({prefix}{LAST}", "LIMIT", 0, count))


def _version(answer: object) -> str | None:
    return answer.decode() or None if isinstance(answer, bytes) else None
