"""Event streams in Redis: a Redis stream with an entry for each frame, whose id is the frame's number.

The name of an entry's only field is the checksum of the frame, as in `crc32:0a1b2c3d`; earlier versions, which ignore
the name, write `data`.

The keys of a stream are `NAMESPACE:{STREAM}:head`, `:frames`, `:contents` and `:checkpoint`, all in one slot of a
cluster. `NAMESPACE:streams` holds the names of all streams.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence

from weakfs.storage.checksums import checked_checkpoint, checkpoint_mark, checksum_of
from weakfs.storage.engine_base import Page, PagedEventStore
from weakfs.storage.engines.redis.client import BLOCK, Client, texts, words
from weakfs.storage.engines.redis.items import listed
from weakfs.storage.errors import StorageDamaged, StreamConflict
from weakfs.storage.event_store import Checkpoint, Lease
from weakfs.storage.keys import check_digest, check_frames, check_stream
from weakfs.storage.lease_rules import SKEW, check_fencing, lease_is_held
from weakfs.storage.stream_handle import StreamHandle, begin_append, refers_to

# KEYS of all scripts: head, frames, contents, checkpoint. A handle's identity is the `id` in the head, which a stream
# gets with its first frame; streams of earlier versions have none, and '' stands for that.
_IDENTITY = """
local function identity()
    return redis.call('HGET', KEYS[1], 'id') or ''
end
local function is_other(wanted)
    return wanted ~= '*' and wanted ~= identity()
end
"""
# The time left of a lease is computed as by `seconds_left`.
_HEAD = """
local function head()
    local found = redis.call('HMGET', KEYS[1], 'number', 'fencing', 'owner', 'expires', 'seconds')
    local now = redis.call('TIME')
    local left = tonumber(found[4] or '0') - now[1] - now[2] / 1000000
    if found[5] and left > tonumber(found[5]) + SKEW then left = 0 end
    return tonumber(found[1] or '0'), tonumber(found[2] or '0'), found[3] or '', left
end
""".replace("SKEW", str(SKEW))
# ARGV: the expected number, the fencing number, the number of frames, for each frame its field and data, the identity
# ('*' for any), the id of a new stream, then digests and contents alternately.
_APPEND = (
    _IDENTITY
    + _HEAD
    + """
local number, fencing, owner, left = head()
local count = tonumber(ARGV[3])
local rest = 4 + 2 * count
if is_other(ARGV[rest]) then return {0} end
local is_held_by_other = (ARGV[2] == '' and left > 0) or (ARGV[2] ~= '' and tonumber(ARGV[2]) ~= fencing)
if number ~= tonumber(ARGV[1]) or is_held_by_other then
    return {0, number, fencing, owner, tostring(left)}
end
for at = rest + 2, #ARGV, 2 do redis.call('HSETNX', KEYS[3], ARGV[at], ARGV[at + 1]) end
for at = 1, count do
    redis.call('XADD', KEYS[2], string.format('%.0f-0', number + at), ARGV[2 + 2 * at], ARGV[3 + 2 * at])
end
redis.call('HSET', KEYS[1], 'number', string.format('%.0f', number + count))
if number == 0 and count > 0 then redis.call('HSETNX', KEYS[1], 'id', ARGV[rest + 1]) end
return {1, identity()}
"""
)
_PUT = """
for at = 1, #ARGV, 2 do redis.call('HSETNX', KEYS[3], ARGV[at], ARGV[at + 1]) end
return 1
"""
_HAS = """
local found = {}
for at = 1, #ARGV do if redis.call('HEXISTS', KEYS[3], ARGV[at]) == 1 then found[#found + 1] = ARGV[at] end end
return found
"""
# ARGV: the first entry, and how many; the answer is the identity, the number of the newest frame, and the entries.
_READ = f"""{_IDENTITY}
local head = redis.call('HGET', KEYS[1], 'number') or '0'
return {{identity(), head, redis.call('XRANGE', KEYS[2], ARGV[1], '+', 'COUNT', ARGV[2])}}
"""
_GET_CHECKPOINT = f"""{_IDENTITY}
return {{identity(), redis.call('HGET', KEYS[4], 'number'), redis.call('HGET', KEYS[4], 'data'),
    redis.call('HGET', KEYS[4], 'checksum')}}
"""
# ARGV: the number, the data, the checksum and the identity ('*' for any).
_PUT_CHECKPOINT = f"""{_IDENTITY}
if is_other(ARGV[4]) then return '0' end
local number = redis.call('HGET', KEYS[1], 'number') or '0'
if tonumber(number) < tonumber(ARGV[1]) then return number end
if tonumber(redis.call('HGET', KEYS[4], 'number') or '0') > tonumber(ARGV[1]) then return '' end
redis.call('HSET', KEYS[4], 'number', ARGV[1], 'data', ARGV[2], 'checksum', ARGV[3])
return ''
"""
# ARGV: the expected number of the newest frame ('' for any), the number of the first frame that is kept, the identity
# ('*' for any), and digests.
_TRIM = f"""{_IDENTITY}
if is_other(ARGV[3]) then return {{0, '0'}} end
local number = redis.call('HGET', KEYS[1], 'number') or '0'
if ARGV[1] ~= '' and ARGV[1] ~= number then return {{0, number}} end
redis.call('XTRIM', KEYS[2], 'MINID', ARGV[2])
for at = 4, #ARGV do redis.call('HDEL', KEYS[3], ARGV[at]) end
return {{1, number}}
"""
_LEASE = (
    _HEAD
    + """
local _, fencing, owner, left = head()
if left > 0 and owner ~= ARGV[1] then return {0, owner, tostring(left)} end
if left <= 0 then fencing = fencing + 1 end
local expires = redis.call('TIME')
expires = string.format('%.6f', expires[1] + expires[2] / 1000000 + tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'fencing', fencing, 'owner', ARGV[1], 'expires', expires, 'seconds', ARGV[2])
return {1, fencing}
"""
)
_RELEASE = """
local found = redis.call('HMGET', KEYS[1], 'owner', 'fencing')
if found[1] == ARGV[1] and found[2] == ARGV[2] then redis.call('HSET', KEYS[1], 'owner', '', 'expires', 0) end
return 1
"""


class AsyncRedisEventStore(PagedEventStore):
    """An `AsyncEventStore` in Redis; `open_async_event_store` and `RedisEventStore` open it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names = f"{client.namespace}:streams"

    @property
    def url(self) -> str:
        return self._client.url

    async def head(self, stream: str) -> int:
        found, id_ = words(await self._client.read("HMGET", self._keys(stream)[0], "number", "id"))
        number = 0 if found is None else self._number(stream, found)
        return number if refers_to(stream, _text(id_), number) else 0

    async def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        keys = self._keys(stream)
        check_frames(frames)
        begin_append(stream, expected)
        pairs = [word for digest, data in (contents or {}).items() for word in (check_digest(digest), data)]
        if expected == 0:
            await self._register(stream)
        fence = "" if fencing is None else fencing
        identities = _identity(stream), os.urandom(8).hex()
        fields = [word for at, data in enumerate(frames, expected + 1) for word in (_field(stream, at, data), data)]
        run = self._client.run(_APPEND, keys, expected, fence, len(frames), *fields, *identities, *pairs)
        answer = words(await run)
        if answer[0] == 1:
            refers_to(stream, _text(answer[1]), expected + len(frames))
            return expected + len(frames)
        if len(answer) == 1:
            raise StreamConflict(stream, expected, 0)
        number, newest, owner, left = texts(answer[1:])
        if int(number) != expected and frames and await self._has_frames(stream, expected, frames):
            return expected + len(frames)
        check_fencing(stream, fencing, newest=int(newest), owner=owner, is_held=float(left) > 0)
        raise StreamConflict(stream, expected, int(number))

    async def _page(self, stream: str, after: int, limit: int) -> Page:
        keys = self._keys(stream)
        id_, head, entries = words(await self._client.run(_READ, keys, f"{after + 1}-0", limit, is_change=False))
        number = self._number(stream, head)
        if not refers_to(stream, _text(id_), number):
            return Page(0, ())
        return Page(number, [_stored(words(entry)) for entry in words(entries)])

    async def wait(self, stream: str, after: int, timeout: float) -> int:
        key = self._keys(stream)[1]
        end = time.monotonic() + timeout
        while True:
            number = await self.head(stream)
            left = end - time.monotonic()
            if number > after or left <= 0:
                return number
            # At least a millisecond: zero would wait forever.
            pause = max(int(min(left, BLOCK) * 1000), 1)
            # If the stream of a handle is gone, another one of its name may have entries already: wait for a new one.
            start = f"{after}-0" if number == after else "$"
            await self._client.read("XREAD", "COUNT", 1, "BLOCK", pause, "STREAMS", key, start)

    async def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        keys = self._keys(stream)
        pairs = [word for digest, data in contents.items() for word in (check_digest(digest), data)]
        await self._register(stream)
        await self._client.run(_PUT, keys, *pairs)

    async def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        key, wanted = self._keys(stream)[2], list(map(check_digest, digests))
        values = words(await self._client.read("HMGET", key, *wanted)) if wanted else []
        return {digest: value for digest, value in zip(wanted, values, strict=True) if isinstance(value, bytes)}

    async def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        wanted = list(map(check_digest, digests))
        return set(texts(await self._client.run(_HAS, self._keys(stream), *wanted, is_change=False)))

    async def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        keys = self._keys(stream)
        if not checkpoint.number:
            await self._register(stream)
        arguments = *checkpoint, checkpoint_mark(stream, checkpoint), _identity(stream)
        end = await self._client.run(_PUT_CHECKPOINT, keys, *arguments)
        if isinstance(end, bytes) and end:
            raise StreamConflict(stream, checkpoint.number, int(end))

    async def get_checkpoint(self, stream: str) -> Checkpoint | None:
        id_, found, data, mark = words(await self._client.run(_GET_CHECKPOINT, self._keys(stream), is_change=False))
        if found is None and data is None:
            return None
        number = self._number(stream, found)
        if not refers_to(stream, _text(id_), number):
            return None
        return checked_checkpoint(stream, number, data, None if mark is None else _text(mark), self.url)

    async def trim(
        self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None
    ) -> None:
        digests, end = map(check_digest, contents), "" if expected is None else expected
        arguments = end, max(before, 0), _identity(stream), *digests
        is_done, number = texts(await self._client.run(_TRIM, self._keys(stream), *arguments))
        if expected is not None and is_done == "0":
            raise StreamConflict(stream, expected, int(number))

    async def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        return await listed(self._client, self._names, prefix, after, limit)

    async def delete(self, stream: str) -> bool:
        keys = self._keys(stream)
        deleted = await self._client.change("DEL", *keys)
        # The name comes last, so that a stream is listed for as long as any of it remains.
        return (await self._client.change("ZREM", self._names, stream), deleted) != (0, 0)

    async def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        keys = self._keys(stream)
        await self._register(stream)
        is_taken, *found = words(await self._client.run(_LEASE, keys, owner, seconds))
        if is_taken != 1:
            by, left = texts(found)
            lease_is_held(stream, owner, by=by, left=float(left))
        return Lease(stream, owner, int(str(found[0])), seconds)

    async def release(self, lease: Lease) -> None:
        await self._client.run(_RELEASE, self._keys(lease.stream), lease.owner, lease.fencing)

    async def close(self) -> None:
        await self._client.close()

    def _keys(self, stream: str) -> list[str]:
        # The text between the braces determines the slot; braces in the name itself are escaped.
        tag = check_stream(stream).replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
        name = f"{self._client.namespace}:{{{tag}}}"
        return [f"{name}:{part}" for part in ("head", "frames", "contents", "checkpoint")]

    def _number(self, stream: str, found: object) -> int:
        """Return the number of a frame that a hash holds."""
        if isinstance(found, bytes) and found.isdigit():
            return int(found)
        raise StorageDamaged(
            f"cannot read stream {str(stream)!r} in {self.url!r}: the number of a frame is {found!r:.60}; restore the "
            f"database from a backup"
        )

    async def _register(self, stream: str) -> None:
        await self._client.change("ZADD", self._names, 0, stream)


def _identity(stream: str) -> str:
    """Return the identity of the stream that a handle refers to; `*` for any stream of that name."""
    identity = stream.identity if isinstance(stream, StreamHandle) else None
    return identity if isinstance(identity, str) else "*"


def _text(id_: object) -> str:
    return id_.decode(errors="replace") if isinstance(id_, bytes) else ""


def _field(stream: str, number: int, data: bytes) -> str:
    return f"crc32:{checksum_of(stream.encode(), number, data):08x}"


def _stored(entry: list[object]) -> tuple[object, object, object]:
    """Return the number, the data and the checksum of a frame in an entry; other values if the entry is damaged."""
    name, fields = entry
    if not isinstance(name, bytes) or not name.endswith(b"-0") or not isinstance(fields, list) or len(fields) != 2:
        return None, None, None
    field, data = fields
    if field == b"data":
        return int(name[:-2]), data, None
    try:
        checksum = int(field.removeprefix(b"crc32:"), 16)
    except ValueError:
        checksum = -1
    return int(name[:-2]), data, checksum
