"""Storage in a SQLite file: the suites over it, other processes, damage, and durability."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.sampling import is_exhaustive
from tests.storage.findings import findings
from tests.storage.servers import need
from tests.storage.suites import AsyncEventStoreByUrl, AsyncStorageByUrl, EventStoreByUrl, Located, StorageByUrl
from weakfs import InMemoryFilesystem, Session, storage
from weakfs.storage import (
    MemoryStorage,
    StorageDamaged,
    StorageError,
    StorageEventStore,
)
from weakfs.storage.adapters import SyncEventStore, run_in_place
from weakfs.storage.engines.sqlite import database
from weakfs.storage.engines.sqlite.streams import AsyncSqliteEventStore


class InFile(Located):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.location = f"sqlite:{tmp_path}/weakfs.db"


class TestSqliteStorage(InFile, StorageByUrl):
    pass


class TestThreadedSqliteStorage(InFile, AsyncStorageByUrl):
    pass


class TestSqliteEventStore(InFile, EventStoreByUrl):
    pass


class TestThreadedSqliteEventStore(InFile, AsyncEventStoreByUrl):
    pass


def test_a_storage_opens_the_event_streams_of_its_file(tmp_path: Path) -> None:
    with closing(storage.open(f"sqlite:{tmp_path}/a.db")) as kept:
        with closing(storage.open_event_store(kept)) as store:
            store.append("s", 0, [b"a"])
        assert kept.keys() == []
    with closing(storage.open_event_store(f"sqlite://{tmp_path}/a.db")) as store:
        assert store.head("s") == 1
    assert isinstance(storage.open_event_store(MemoryStorage()), StorageEventStore)


def test_an_append_that_fails_midway_changes_nothing(tmp_path: Path) -> None:
    store = storage.open_event_store(f"sqlite:{tmp_path}/a.db")
    store.append("s", 0, [b"a"])
    with sqlite3.connect(tmp_path / "a.db") as other:
        other.execute("CREATE TRIGGER full BEFORE UPDATE ON streams BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(StorageError, match="disk full"):
        store.append("s", 1, [b"b"], contents={"aa": b"1"})
    assert (store.head("s"), store.has_contents("s", ["aa"])) == (1, set())
    with sqlite3.connect(tmp_path / "a.db") as other:
        other.execute("DROP TRIGGER full")
    other.close()
    assert store.append("s", 1, [b"b"]) == 2
    store.close()


def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"something else" * 100)
    with pytest.raises(StorageDamaged, match="not a database; restore the file"):
        storage.open(f"sqlite:{tmp_path}/a.db")


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "a.db")
    other.execute("PRAGMA user_version = 3")
    other.close()
    with pytest.raises(StorageError, match="version 3, but this weakfs reads only up to version 2; upgrade"):
        storage.open(f"sqlite:{tmp_path}/a.db")


def test_a_path_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="unable to open"):
        storage.open(f"sqlite:{tmp_path}/missing/a.db")


def test_using_a_closed_storage_raises_an_error(tmp_path: Path) -> None:
    kept = storage.open(f"sqlite:{tmp_path}/a.db")
    kept.close()
    with pytest.raises(StorageError, match="it was closed; open it again"):
        kept.get("a")


@pytest.mark.skipif(sys.platform != "linux", reason="needs strace")
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_process_that_is_killed_at_any_call_loses_nothing_that_it_reported(tmp_path: Path, durability: str) -> None:
    need("strace", is_there=shutil.which("strace") is not None)
    stride = 1 if is_exhaustive() else 40
    results = findings("tests.storage.sqlite_kills", str(tmp_path), durability, str(stride))
    assert results["deaths"]["pwrite64"] >= 100 // stride
    assert results["deaths"]["fdatasync"] >= (20 if durability == "power" else 5) // stride
    assert results["deaths"]["unlink"]


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("manual", 1), ("power", 2)])
def test_durability_maps_to_settings_of_sqlite(tmp_path: Path, durability: str, synchronous: int) -> None:
    from weakfs.storage.engines.sqlite.database import Database

    database = Database(f"{tmp_path}/a.db", durability=durability)
    assert database.rows("PRAGMA synchronous") == [(synchronous,)]
    assert database.rows("PRAGMA journal_mode") == [("wal",)]
    database.close()
    store = storage.open_event_store(f"sqlite:{tmp_path}/a.db?durability={durability}")
    store.append("s", 0, [b"a"])
    store.flush()
    store.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:", "no path"),
        ("sqlite:a?x=1", "unknown option 'x'"),
        ("sqlite:a?durability=x", "invalid durability"),
        ("sqlite://host/a.db", "names a host"),
        ("sqlite:///a%00b", "a NUL in its path"),
    ],
)
def test_a_wrong_url_is_refused(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        storage.open(url)


def test_opening_waits_while_another_connection_locks_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite itself does not wait when it switches to its write-ahead log: it reports that the database is locked."""
    path = str(tmp_path / "s.db")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        other.execute("COMMIT")

    monkeypatch.setattr(database, "BUSY", 0.05)
    monkeypatch.setattr(database, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=wait))
    database.Database(path).close()
    other.close()
    assert len(waits) == 1


def test_values_too_large_for_the_file_are_refused_and_change_nothing(tmp_path: Path) -> None:
    file = database.Database(f"{tmp_path}/a.db")
    file._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1000)
    store = SyncEventStore(AsyncSqliteEventStore(file), run=run_in_place)
    store.append("s", 0, [b"a"])
    for frames, contents in (([b"a" * 1001], {}), ([b"b"], {"ab": b"a" * 1001})):
        with pytest.raises(StorageError, match="too big; split it") as caught:
            store.append("s", 1, frames, contents=contents)
        assert not isinstance(caught.value, StorageDamaged)
    assert store.append("s", 1, [b"b"]) == 2
    store.close()


def copied(path: Path) -> None:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(f"{path}.copy")) as copy:
        source.backup(copy)


REPLACEMENTS: dict[str, Callable[[Path], object]] = {
    "replaced": lambda path: os.rename(f"{path}.copy", path),
    "removed": os.unlink,
    "moved away": lambda path: os.rename(path, f"{path}.moved"),
    "its folder moved away": lambda path: os.rename(path.parent, f"{path.parent}.moved"),
}


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_nothing_is_stored_in_a_file_that_was_replaced_or_removed(tmp_path: Path, replacement: str) -> None:
    path = tmp_path / "folder" / "sessions.db"
    path.parent.mkdir()
    session = Session.open(f"sqlite:{path}", "s")
    files = InMemoryFilesystem(session)
    files.write("/a", "1")
    copied(path)
    files.write("/a", "2")

    REPLACEMENTS[replacement](path)

    for change in (lambda: files.write("/a", "3"), session.refresh, lambda: session.compact(keep=0)):
        with pytest.raises(StorageError, match="was removed or replaced while it was open; open it again"):
            change()
    assert files.read("/a").content == "2"
    with pytest.raises(StorageError, match="was removed or replaced"):
        session.close()


def test_a_replaced_file_can_be_opened_beside_a_session_that_used_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Session.open(f"sqlite:{path}", "s") as session:
        InMemoryFilesystem(session).write("/a", "1")
    copied(path)
    old = Session.open(f"sqlite:{path}", "s")
    os.rename(f"{path}.copy", path)

    with Session.open(f"sqlite:{path}", "s") as session:
        InMemoryFilesystem(session).write("/a", "2")
        with pytest.raises(StorageError, match="was removed or replaced"):
            InMemoryFilesystem(old).write("/a", "3")
        with pytest.raises(StorageError, match="was removed or replaced"):
            old.close()
        InMemoryFilesystem(session).write("/b", "4")

    with Session.open(f"sqlite:{path}", "s") as session:
        assert InMemoryFilesystem(session).read("/a").content == "2"
        assert InMemoryFilesystem(session).read("/b").content == "4"


def write_numbers(session: Session, numbers: range) -> None:
    files = InMemoryFilesystem(session)
    for number in numbers:
        files.write(f"/{number}", f"{number}\n" * 100)


def test_nothing_is_stored_in_a_file_over_which_an_older_copy_was_written(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session = Session.open(f"sqlite:{path}", "s")
    write_numbers(session, range(20))
    copied(path)
    write_numbers(session, range(20, 60))
    session.flush()
    before = session.to_bytes()

    shutil.copyfile(f"{path}.copy", path)

    for change in (lambda: write_numbers(session, range(60, 61)), lambda: session.compact(keep=0)):
        with pytest.raises(StorageDamaged, match=r"an older file was written over it while it was open; close it in"):
            change()
        assert session.to_bytes() == before
    session.close()
    with Session.open(f"sqlite:{path}", "s") as session:
        assert len(session.records) == 20


def test_a_file_may_be_vacuumed_while_a_session_is_open(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Session.open(f"sqlite:{path}", "s") as session:
        with Session.open(f"sqlite:{path}", "large") as large:
            write_numbers(large, range(60))
        write_numbers(session, range(5))
        Session.delete(f"sqlite:{path}", "large")
        session.flush()
        size = path.stat().st_size
        with closing(sqlite3.connect(path)) as other:
            other.execute("VACUUM")
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert path.stat().st_size < size
        write_numbers(session, range(5, 10))
    with Session.open(f"sqlite:{path}", "s") as session:
        assert len(session.records) == 10


def test_a_storage_finds_its_file_after_a_change_of_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with closing(storage.open("sqlite:a.db")) as kept:
        monkeypatch.chdir(tmp_path / "elsewhere")
        kept.set("key", b"value")
        assert kept.get("key") == b"value"


def test_a_file_that_may_not_be_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sessions.db"
    with Session.open(f"sqlite:{path}", "s") as session:
        InMemoryFilesystem(session).write("/a", "1")
    (tmp_path / "empty.db").touch()
    # Root may write every file.
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and allowed(path, mode))
    with Session.open(f"sqlite:{path}") as session:
        assert InMemoryFilesystem(session).read("/a").content == "1"
        with pytest.raises(StorageError, match="readonly"):
            InMemoryFilesystem(session).write("/a", "2")
        assert InMemoryFilesystem(session).read("/a").content == "1"
    with pytest.raises(StorageError, match="nothing has been stored in it"):
        storage.open(f"sqlite:{tmp_path}/empty.db")
