"""Event streams in tables of PostgreSQL.

The row of a stream holds the number of its newest frame. An append is one statement that advances this number if it is
the expected one, which locks the row, and adds the frames and contents.

It sends a notification only if a reader is waiting, which the row records: the server commits transactions with
notifications one at a time. With 16 connections, it makes 3,400 commits a second, but only 150 to 400 if each one sends
a notification.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from weakfs.storage.checksums import checked_checkpoint, checkpoint_mark, checksum_of
from weakfs.storage.engine_base import Page, PagedEventStore
from weakfs.storage.engines.postgresql.database import Database, Parameter, Row, Statement
from weakfs.storage.errors import StreamConflict
from weakfs.storage.event_store import Checkpoint, Lease
from weakfs.storage.keys import LAST, check_digest, check_frames, check_stream
from weakfs.storage.lease_rules import SKEW, check_fencing, lease_is_held
from weakfs.storage.stream_handle import StreamHandle, begin_append, refers_to

# How long a stream counts as watched after a reader starts to wait, and the remaining time at which that is renewed, in
# seconds.
WATCHED, RENEWED = 60, 30
# How often a stream that does not exist yet is checked, in seconds.
PAUSE = 0.25

# How long the lease of a stream still lasts, computed as by `seconds_left`.
_LEFT = """
CASE WHEN expires > clock_timestamp() + make_interval(secs => seconds + {skew}) THEN 0
ELSE extract(epoch FROM expires - clock_timestamp()) END::float8
""".replace("{skew}", str(SKEW))
_ADD = "INSERT INTO {schema}.streams (name) VALUES (%s) ON CONFLICT DO NOTHING"
_APPEND = f"""
WITH moved AS (
    UPDATE {{schema}}.streams SET number = number + cardinality(%b::bytea[])
    WHERE name = %s AND number = %s AND id = coalesce(%s, id)
        AND CASE WHEN %s::bigint IS NULL THEN {_LEFT} <= 0 ELSE fencing = %s END
    RETURNING id, name, number, watched > clock_timestamp() AS is_watched
), stored AS (
    INSERT INTO {{schema}}.contents SELECT moved.id, new.digest, new.data
    FROM moved, unnest(%s::text[], %b::bytea[]) AS new (digest, data) ON CONFLICT DO NOTHING
), added AS (
    INSERT INTO {{schema}}.frames (stream, number, data, checksum) SELECT moved.id, %s + new.at, new.data, new.checksum
    FROM moved, unnest(%b::bytea[], %s::bigint[]) WITH ORDINALITY AS new (data, checksum, at)
)
SELECT id, number, CASE WHEN is_watched THEN pg_notify(%s, name) END FROM moved
"""
_WATCH = f"""
UPDATE {{schema}}.streams SET watched = clock_timestamp() + interval '{WATCHED} s'
WHERE name = %s AND watched < clock_timestamp() + interval '{RENEWED} s'
"""
_STATE = f"SELECT id, number, fencing, owner, {_LEFT} AS left FROM {{schema}}.streams WHERE name = %s"
# One statement, so that the frames and the head are those of one moment.
_READ = """
SELECT streams.id, streams.number, found.number, found.data, found.checksum FROM {schema}.streams LEFT JOIN LATERAL (
    SELECT number, data, checksum FROM {schema}.frames WHERE stream = streams.id AND number > %s
    ORDER BY number LIMIT %s
) AS found ON true WHERE streams.name = %s ORDER BY found.number
"""
_PUT = (
    # The lock waits for a trim. Otherwise contents that it is about to delete would count as present.
    "WITH stream AS (SELECT id FROM {schema}.streams WHERE name = %s FOR KEY SHARE) "
    "INSERT INTO {schema}.contents SELECT stream.id, new.digest, new.data FROM stream, "
    "unnest(%s::text[], %b::bytea[]) AS new (digest, data) ON CONFLICT DO NOTHING"
)
_GET = (
    "SELECT digest, data FROM {schema}.contents "
    "WHERE stream = (SELECT id FROM {schema}.streams WHERE name = %s) AND digest = ANY(%s)"
)
_HAS = _GET.replace("digest, data", "digest")
_PUT_CHECKPOINT = (
    "INSERT INTO {schema}.checkpoints AS old (stream, number, data, checksum) SELECT id, %s, %b, %s "
    "FROM {schema}.streams WHERE name = %s AND number >= %s AND id = coalesce(%s, id) ON CONFLICT (stream) "
    "DO UPDATE SET number = excluded.number, data = excluded.data, checksum = excluded.checksum "
    "WHERE old.number <= excluded.number"
)
_GET_CHECKPOINT = (
    "SELECT number, data, checksum, stream FROM {schema}.checkpoints "
    "WHERE stream = (SELECT id FROM {schema}.streams WHERE name = %s)"
)
_LOCK = "SELECT 1 FROM {schema}.streams WHERE name = %s FOR UPDATE"
_NUMBER = "SELECT id, number FROM {schema}.streams WHERE name = %s"
_OF_STREAM = "stream = (SELECT id FROM {schema}.streams WHERE name = %s)"
# The rows of a stream, if it ends at the expected frame or none is expected, and has the id that a handle has.
_AT_END = (
    "stream = (SELECT id FROM {schema}.streams "
    "WHERE name = %s AND number = coalesce(%s, number) AND id = coalesce(%s, id))"
)
_OLD_LEFT = _LEFT.replace("expires", "old.expires").replace("seconds", "old.seconds")
_LEASE = f"""
INSERT INTO {{schema}}.streams AS old (name, fencing, owner, expires, seconds)
VALUES (%s, 1, %s, clock_timestamp() + make_interval(secs => %s), %s)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires = excluded.expires, seconds = excluded.seconds,
    fencing = old.fencing + CASE WHEN {_OLD_LEFT} > 0 THEN 0 ELSE 1 END
WHERE old.owner = excluded.owner OR {_OLD_LEFT} <= 0
RETURNING fencing
"""
_RELEASE = "UPDATE {schema}.streams SET owner = '', expires = 'epoch' WHERE name = %s AND owner = %s AND fencing = %s"
_STREAMS = "SELECT name FROM {schema}.streams WHERE name >= %s AND name < %s AND name > %s ORDER BY name LIMIT %s"


class AsyncPostgresEventStore(PagedEventStore):
    """An `AsyncEventStore` in PostgreSQL; `open_async_event_store` and `PostgresEventStore` open it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def url(self) -> str:
        return self._database.url

    async def head(self, stream: str) -> int:
        return _number(stream, await self._database.rows((_NUMBER, [check_stream(stream)]), is_change=False))

    async def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        check_frames(frames)
        begin_append(check_stream(stream), expected)
        new = contents or {}
        # In order, so that two writers never wait for each other.
        digests = sorted(map(check_digest, new))
        if expected == 0:
            await self._database.rows((_ADD, [stream]))
        data = [new[digest] for digest in digests]
        place: list[Parameter] = [stream, expected, _id(stream), fencing, fencing]
        name = stream.encode()
        checksums = [checksum_of(name, number, frame) for number, frame in enumerate(frames, expected + 1)]
        parameters: list[Parameter] = [list(frames), *place, digests, data, expected, list(frames), checksums]
        append: Statement = (_APPEND, [*parameters, self._database.channel])
        while not (appended := await self._database.rows(append)):
            found = await self._database.rows((_STATE, [stream]), is_change=False)
            if found and not refers_to(stream, found[0][0], _number(str(stream), found)):
                raise StreamConflict(stream, expected, 0)
            _, number, newest, owner, left = found[0] if found else (0, 0, 0, "", 0.0)
            if number != expected and frames and await self._has_frames(stream, expected, frames):
                break
            is_held = isinstance(left, float) and left > 0
            if found:
                check_fencing(stream, fencing, newest=int(str(newest)), owner=str(owner), is_held=is_held)
            if number != expected:
                raise StreamConflict(stream, expected, int(str(number)))
        _number(stream, appended)
        return expected + len(frames)

    async def _page(self, stream: str, after: int, limit: int) -> Page:
        rows = await self._database.rows((_READ, [after, limit, stream]), is_change=False)
        if not rows or not refers_to(stream, rows[0][0], head := int(str(rows[0][1]))):
            return Page(0, ())
        # A stream without such frames is a row without one.
        return Page(head, [row[2:] for row in rows if row[2] is not None])

    async def wait(self, stream: str, after: int, timeout: float) -> int:
        number = await self.head(stream)
        if number > after or timeout <= 0:
            return number
        notifications = self._database.notifications
        await notifications.listen()
        end = time.monotonic() + timeout
        while True:
            seen = notifications.seen[stream]
            # Marked before reading the head, so that any later append sends a notification.
            await self._database.rows((_WATCH, [stream]), is_change=False)
            number = await self.head(stream)
            left = end - time.monotonic()
            if number > after or left <= 0:
                return number
            await notifications.wait(stream, seen, left if number else min(left, PAUSE))

    async def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        digests = sorted(map(check_digest, contents))
        data = [contents[digest] for digest in digests]
        await self._database.rows((_ADD, [check_stream(stream)]), (_PUT, [stream, digests, data]))

    async def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        parameters = [check_stream(stream), list(map(check_digest, digests))]
        rows = await self._database.rows((_GET, parameters), is_change=False)
        return {str(digest): data for digest, data in rows if isinstance(data, bytes)}

    async def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        parameters = [check_stream(stream), list(map(check_digest, digests))]
        return {str(digest) for (digest,) in await self._database.rows((_HAS, parameters), is_change=False)}

    async def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        number, mark = checkpoint.number, checkpoint_mark(check_stream(stream), checkpoint)
        put: Statement = (_PUT_CHECKPOINT, [*checkpoint, mark, stream, number, _id(stream)])
        create: list[Statement] = [] if number else [(_ADD, [stream])]
        end = _number(stream, await self._database.rows(*create, put, (_NUMBER, [stream])))
        if end < number:
            raise StreamConflict(stream, number, end)

    async def get_checkpoint(self, stream: str) -> Checkpoint | None:
        rows = await self._database.rows((_GET_CHECKPOINT, [check_stream(stream)]), is_change=False)
        for number, data, mark, id_ in rows:
            if refers_to(stream, id_, int(str(number))):
                return checked_checkpoint(stream, number, data, mark, self.url)
        return None

    async def trim(
        self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None
    ) -> None:
        digests = list(map(check_digest, contents))
        end: list[Parameter] = [stream, expected, _id(stream)]
        rows = await self._database.rows(
            (_LOCK, [check_stream(stream)]),
            (f"DELETE FROM {{schema}}.frames WHERE {_AT_END} AND number < %s", [*end, before]),
            (f"DELETE FROM {{schema}}.contents WHERE {_AT_END} AND digest = ANY(%s)", [*end, digests]),
            (_NUMBER, [stream]),
        )
        number = _number(stream, rows)
        if expected is not None and expected != number:
            raise StreamConflict(stream, expected, number)

    async def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        rows = await self._database.rows((_STREAMS, [prefix, prefix + LAST, after, limit]), is_change=False)
        return [str(name) for (name,) in rows]

    async def delete(self, stream: str) -> bool:
        rows = await self._database.rows(
            (_LOCK, [check_stream(stream)]),
            *((f"DELETE FROM {{schema}}.{name} WHERE {_OF_STREAM}", [stream]) for name in _TABLES),
            ("DELETE FROM {schema}.streams WHERE name = %s RETURNING 1", [stream]),
        )
        return bool(rows)

    async def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        while True:
            for (fencing,) in await self._database.rows(
                (_LEASE, [check_stream(stream), owner, float(seconds), float(seconds)])
            ):
                return Lease(stream, owner, int(str(fencing)), seconds)
            for *_, by, left in await self._database.rows((_STATE, [stream]), is_change=False):
                lease_is_held(stream, owner, by=str(by), left=left if isinstance(left, float) else 0.0)

    async def release(self, lease: Lease) -> None:
        await self._database.rows((_RELEASE, [lease.stream, lease.owner, lease.fencing]))

    async def close(self) -> None:
        await self._database.close()


def _number(stream: str, rows: Sequence[Row]) -> int:
    """Return the number of a stream's newest frame, which its row holds after its id; 0 if there is no such stream."""
    for id_, found, *_ in rows:
        number = int(str(found))
        return number if refers_to(stream, id_, number) else 0
    return 0


def _id(stream: str) -> int | None:
    """Return the id of the stream that a handle refers to; `None` for any stream of that name."""
    identity = stream.identity if isinstance(stream, StreamHandle) else None
    return identity if isinstance(identity, int) else None


_TABLES = ("frames", "contents", "checkpoints")
