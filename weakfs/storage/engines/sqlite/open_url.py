"""Opening storage in SQLite."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote

from weakfs.storage.adapters import SyncEventStore, SyncStorage, run_in_place
from weakfs.storage.engines import Engine
from weakfs.storage.engines.sqlite.database import Database
from weakfs.storage.engines.sqlite.items import AsyncSqliteStorage
from weakfs.storage.engines.sqlite.streams import AsyncSqliteEventStore


class SqliteStorage(SyncStorage):
    """A `Storage` in a SQLite file."""

    def __init__(self, path: str, *, durability: str = "process") -> None:
        self._path, self._durability = path, durability
        super().__init__(AsyncSqliteStorage(Database(path, durability=durability)), run=run_in_place)

    def event_store(self) -> SqliteEventStore:
        """Open the event streams in the same file, on their own connection."""
        return SqliteEventStore(self._path, durability=self._durability)


class SqliteEventStore(SyncEventStore):
    """An `EventStore` in a SQLite file."""

    def __init__(self, path: str, *, durability: str = "process") -> None:
        self._database = Database(path, durability=durability)
        super().__init__(AsyncSqliteEventStore(self._database), run=run_in_place)

    def check_file(self) -> None:
        """Read the whole file. Raises `StorageDamaged` if its pages, tables and indexes contradict each other."""
        self._database.check()


def _location(url: str) -> tuple[str, str]:
    """Return the path and the durability in a URL: `sqlite:PATH`, or `sqlite:///PATH` with `%20` and the like."""
    rest, _, query = url.partition(":")[2].partition("?")
    options = parse_qs(query, keep_blank_values=True)
    if unknown := options.keys() - {"durability"}:
        raise ValueError(
            f"cannot open {url!r}: unknown option {sorted(unknown)[0]!r}; the only one is 'durability', and a path "
            f"with a question mark is written sqlite:///PATH with %3F"
        )
    if rest.startswith("//") and not rest.startswith("///"):
        raise ValueError(f"cannot open {url!r}: it names a host; write sqlite:PATH or sqlite:///PATH")
    path = unquote(rest[2:], errors="surrogateescape") if rest.startswith("//") else rest
    if not path or "\0" in path:
        raise ValueError(f"cannot open {url!r}: it has {'a NUL in its' if path else 'no'} path; write sqlite:PATH")
    return path, options.get("durability", ["process"])[-1]


def _open_storage(url: str) -> SqliteStorage:
    path, durability = _location(url)
    return SqliteStorage(path, durability=durability)


def _open_event_store(url: str) -> SqliteEventStore:
    path, durability = _location(url)
    return SqliteEventStore(path, durability=durability)


ENGINE = Engine(_open_storage, _open_event_store, path=lambda url: _location(url)[0])
