"""Event streams in tables of SQLite: an append is a transaction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from weakfs.storage.checksums import checked_checkpoint, checkpoint_mark, checksum_of
from weakfs.storage.engine_base import Page, PagedEventStore
from weakfs.storage.engines.sqlite.database import Database, Value
from weakfs.storage.errors import StorageDamaged, StreamConflict
from weakfs.storage.event_store import Checkpoint, Lease
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
            id_, number, newest, owner, left = self._state(stream) or (0, 0, None, "", 0.0)
            if number != expected and frames and await self._has_frames(stream, expected, frames):
                return expected + len(frames)
            if newest is not None:
                check_fencing(stream, fencing, newest=newest, owner=owner, is_held=left > 0)
            if number != expected:
                raise StreamConflict(stream, expected, number)
            id_ = id_ or self._existing(stream)
            self._store_contents(id_, contents or {})
            last = expected + len(frames)
            name = stream.encode()
            rows = [(id_, at, data, checksum_of(name, at, data)) for at, data in enumerate(frames, expected + 1)]
            self._database.many("INSERT INTO frames (stream, number, data, checksum) VALUES (?, ?, ?, ?)", rows)
            self._database.rows("UPDATE streams SET number = ? WHERE id = ?", [last, id_])
        refers_to(stream, id_, last)
        return last

    async def _page(self, stream: str, after: int, limit: int) -> Page:
        id_, head = self._find(stream)
        rows = self._database.rows(
            f"SELECT number, data, {self._database.checksum} FROM frames WHERE stream = ? AND number > ? "
            "ORDER BY number LIMIT ?",
            [id_, after, limit],
        )
        last = rows[-1][0] if rows else after
        if isinstance(last, int) and last != head:
            # Others may have appended since, or deleted the stream.
            found, now = self._find(stream)
            if found != id_:
                return await self._page(stream, after, limit)
            if last > head:
                head = min(last, now)
        return Page(head, rows)

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
                "INSERT INTO checkpoints (stream, number, data, checksum) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (stream) DO UPDATE SET number = excluded.number, data = excluded.data, "
                "checksum = excluded.checksum WHERE number <= excluded.number",
                [id_, *checkpoint, checkpoint_mark(stream, checkpoint)],
            )

    async def get_checkpoint(self, stream: str) -> Checkpoint | None:
        id_, _ = self._find(stream)
        statement = f"SELECT number, data, {self._database.checksum} FROM checkpoints WHERE stream = ?"
        for number, data, mark in self._database.rows(statement, [id_]):
            return checked_checkpoint(stream, number, data, mark, self.url)
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
            _, _, fencing, by, left = self._state(stream) or (0, 0, 0, "", 0.0)
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
        self._database.flush()

    async def close(self) -> None:
        self._database.close()

    def _find(self, stream: str) -> tuple[int, int]:
        """Return the id and the newest frame of a stream; zeros if the stream does not exist.

        A handle whose stream is gone stands for a stream that does not exist.
        """
        for row in self._database.rows("SELECT id, number FROM streams WHERE name = ?", [check_stream(stream)]):
            id_, number = self._numbers(stream, *row)
            return (id_, number) if refers_to(stream, id_, number) else (0, 0)
        return 0, 0

    def _numbers(self, stream: str, id_: Value, number: Value) -> tuple[int, int]:
        if not isinstance(id_, int) or not isinstance(number, int):
            raise StorageDamaged(
                f"cannot read stream {str(stream)!r} in {self.url!r}: the number of its newest frame is {number!r:.60}"
                f"; restore the file from a backup"
            )
        return id_, number

    def _existing(self, stream: str) -> int:
        """Return the id of the stream that has a name now; create the stream if there is none."""
        name = str(stream)
        id_, _ = self._find(name)
        if not id_:
            self._database.rows("INSERT INTO streams (name) VALUES (?)", [name])
            id_, _ = self._find(name)
        return id_

    def _state(self, stream: str) -> tuple[int, int, int, str, float] | None:
        """Return the id and the newest frame of a stream, the number of its newest lease, its owner and time left.

        The first two are zero for a handle whose stream is gone. Return `None` if there is no stream.
        """
        statement = "SELECT id, number, fencing, owner, expires, seconds FROM streams WHERE name = ?"
        for id_, number, fencing, owner, expires, seconds in self._database.rows(statement, [check_stream(stream)]):
            found = self._numbers(stream, id_, number)
            try:
                left = seconds_left(float(expires or 0), _float(seconds), time.time())
                lease = int(fencing or 0), str(owner), left
            except ValueError as error:
                raise StorageDamaged(
                    f"cannot read the lease of stream {str(stream)!r} in {self.url!r}: {error}; restore the file from "
                    f"a backup"
                ) from error
            return (*(found if refers_to(stream, *found) else (0, 0)), *lease)
        return None

    def _store_contents(self, id_: int, contents: Mapping[str, bytes]) -> None:
        rows = [(id_, digest, data) for digest, data in contents.items()]
        self._database.many("INSERT OR IGNORE INTO contents VALUES (?, ?, ?)", rows)


def _float(value: Value) -> float | None:
    return None if value is None else float(value)


def _check_digests(contents: Mapping[str, bytes]) -> None:
    for digest in contents:
        check_digest(digest)
