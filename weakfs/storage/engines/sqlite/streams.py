"""Event streams in tables of SQLite: an append is a transaction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from weakfs.storage.engine_base import PagedEventStore
from weakfs.storage.engines.sqlite.database import Database, Value
from weakfs.storage.errors import StreamConflict
from weakfs.storage.event_store import Checkpoint, Frame, Lease
from weakfs.storage.keys import LAST, check_digest, check_frames, check_stream
from weakfs.storage.lease_rules import check_fencing, lease_is_held, seconds_left
from weakfs.storage.stream_handle import begin_append, refers_to


class AsyncSqliteEventStore(PagedEventStore):
    """An `AsyncEventStore` in a SQLite file, whose methods block; `SqliteEventStore` opens it."""

    first_pause, longest_pause = 0.002, 0.1

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def url(self) -> str:
        return self._database.url

    async def head(self, stream: str) -> int:
        return self._find(stream)[1]

    async def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        _check_digests(contents or {})
        check_frames(frames)
        begin_append(stream, expected)
        with self._database.transaction():
            id_, number = self._find(stream)
            if number != expected and frames and await self._has_frames(stream, expected, frames):
                return expected + len(frames)
            self._check_fencing(stream, fencing)
            if number != expected:
                raise StreamConflict(stream, expected, number)
            id_ = id_ or self._existing(stream)
            self._store_contents(id_, contents or {})
            last = expected + len(frames)
            rows = zip([id_] * len(frames), range(expected + 1, last + 1), frames, strict=True)
            self._database.many("INSERT INTO frames VALUES (?, ?, ?)", rows)
            self._database.rows("UPDATE streams SET number = ? WHERE id = ?", [last, id_])
        refers_to(stream, id_, last)
        return last

    async def _page(self, stream: str, after: int, limit: int) -> list[Frame]:
        rows = self._database.rows(
            "SELECT number, data FROM frames WHERE stream = ? AND number > ? ORDER BY number LIMIT ?",
            [self._find(stream)[0], after, limit],
        )
        return [Frame(number, data) for number, data in rows if isinstance(number, int) and isinstance(data, bytes)]

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def put_contents(self, stream: str, contents: Mapping[str, bytes]) -> None:
        _check_digests(contents)
        with self._database.transaction():
            self._store_contents(self._existing(stream), contents)

    async def get_contents(self, stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        id_, _ = self._find(stream)
        found: dict[str, bytes] = {}
        for digest in digests:
            for (data,) in self._database.rows(
                "SELECT data FROM contents WHERE stream = ? AND digest = ?", [id_, check_digest(digest)]
            ):
                assert isinstance(data, bytes)
                found[digest] = data
        return found

    async def has_contents(self, stream: str, digests: Iterable[str]) -> set[str]:
        id_, _ = self._find(stream)
        statement = "SELECT 1 FROM contents WHERE stream = ? AND digest = ?"
        return {digest for digest in digests if self._database.rows(statement, [id_, check_digest(digest)])}

    async def put_checkpoint(self, stream: str, checkpoint: Checkpoint) -> None:
        with self._database.transaction():
            id_, number = self._find(stream)
            if checkpoint.number > number:
                raise StreamConflict(stream, checkpoint.number, number)
            id_ = id_ or self._existing(stream)
            self._database.rows(
                "INSERT INTO checkpoints VALUES (?, ?, ?) ON CONFLICT (stream) DO UPDATE "
                "SET number = excluded.number, data = excluded.data WHERE number <= excluded.number",
                [id_, checkpoint.number, checkpoint.data],
            )

    async def get_checkpoint(self, stream: str) -> Checkpoint | None:
        id_, _ = self._find(stream)
        for number, data in self._database.rows("SELECT number, data FROM checkpoints WHERE stream = ?", [id_]):
            assert isinstance(number, int)
            assert isinstance(data, bytes)
            return Checkpoint(number, data)
        return None

    async def trim(
        self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None
    ) -> None:
        with self._database.transaction():
            id_, number = self._find(stream)
            if expected is not None and expected != number:
                raise StreamConflict(stream, expected, number)
            self._database.rows("DELETE FROM frames WHERE stream = ? AND number < ?", [id_, before])
            rows = [(id_, check_digest(digest)) for digest in contents]
            self._database.many("DELETE FROM contents WHERE stream = ? AND digest = ?", rows)

    async def streams(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        rows = self._database.rows(
            "SELECT name FROM streams WHERE name >= ? AND name < ? AND name > ? ORDER BY name LIMIT ?",
            [prefix, prefix + LAST, after, -1 if limit is None else limit],
        )
        return [str(name) for (name,) in rows]

    async def delete(self, stream: str) -> bool:
        with self._database.transaction():
            id_, _ = self._find(stream)
            for table in ("frames", "contents", "checkpoints"):
                self._database.rows(f"DELETE FROM {table} WHERE stream = ?", [id_])
            return bool(self._database.changed("DELETE FROM streams WHERE id = ?", [id_]))

    async def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        with self._database.transaction():
            id_ = self._existing(stream)
            ((fencing, by, left),) = self._leases(stream)
            fencing += not lease_is_held(stream, owner, by=by, left=left)
            self._database.rows(
                "UPDATE streams SET fencing = ?, owner = ?, expires = ?, seconds = ? WHERE id = ?",
                [fencing, owner, time.time() + seconds, seconds, id_],
            )
            return Lease(stream, owner, fencing, seconds)

    async def release(self, lease: Lease) -> None:
        self._database.rows(
            "UPDATE streams SET owner = '', expires = 0 WHERE name = ? AND owner = ? AND fencing = ?",
            [lease.stream, lease.owner, lease.fencing],
        )

    async def flush(self) -> None:
        """Copy the write-ahead log into the file, which syncs both."""
        self._database.rows("PRAGMA wal_checkpoint(FULL)")

    async def close(self) -> None:
        self._database.close()

    def _find(self, stream: str) -> tuple[int, int]:
        """Return the id and the newest frame of a stream; zeros if the stream does not exist.

        A handle whose stream is gone stands for a stream that does not exist.
        """
        for id_, number in self._database.rows("SELECT id, number FROM streams WHERE name = ?", [check_stream(stream)]):
            assert isinstance(id_, int)
            assert isinstance(number, int)
            return (id_, number) if refers_to(stream, id_, number) else (0, 0)
        return 0, 0

    def _existing(self, stream: str) -> int:
        """Return the id of the stream that has a name now; create the stream if there is none."""
        name = str(stream)
        id_, _ = self._find(name)
        if not id_:
            self._database.rows("INSERT INTO streams (name) VALUES (?)", [name])
            id_, _ = self._find(name)
        return id_

    def _check_fencing(self, stream: str, fencing: int | None) -> None:
        for newest, owner, left in self._leases(stream):
            check_fencing(stream, fencing, newest=newest, owner=owner, is_held=left > 0)

    def _leases(self, stream: str) -> list[tuple[int, str, float]]:
        """Return the number of the newest lease, its owner and how long it lasts; nothing for a new stream."""
        found = self._database.rows("SELECT fencing, owner, expires, seconds FROM streams WHERE name = ?", [stream])
        return [
            (int(fencing or 0), str(owner), seconds_left(float(expires or 0), _float(seconds), time.time()))
            for fencing, owner, expires, seconds in found
        ]

    def _store_contents(self, id_: int, contents: Mapping[str, bytes]) -> None:
        rows = [(id_, digest, data) for digest, data in contents.items()]
        self._database.many("INSERT OR IGNORE INTO contents VALUES (?, ?, ?)", rows)


def _float(value: Value) -> float | None:
    return None if value is None else float(value)


def _check_digests(contents: Mapping[str, bytes]) -> None:
    for digest in contents:
        check_digest(digest)
