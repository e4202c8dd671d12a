"""Damage in SQLite, PostgreSQL and Redis is found: frames, checkpoints and heads are not trusted as they are stored."""

from __future__ import annotations

import os
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import pytest

from tests.sampling import is_exhaustive
from tests.storage.stored_rows import CheckpointRow, Row, StoredRows, stored_rows
from weakfs import InMemoryFilesystem, Session, Toolset, WeakfsError
from weakfs.session import SessionError
from weakfs.storage import Checkpoint, FrameDamaged, StorageDamaged, StorageError, open_event_store
from weakfs.storage.engines.sqlite.database import Database
from weakfs.storage.verification import damage_in

# The PostgreSQL of the tests does not sync.
pytestmark = pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")

# The number of frames in the session, and that of its checkpoint.
FRAMES, CHECKPOINT = 16, 10


def fill(url: str, calls: int = FRAMES, checkpoint: int = CHECKPOINT) -> None:
    """Make a session with one frame for each call."""
    times = count(10**18)
    with Session.open(url, "s", clock=lambda: next(times)) as session:
        tools = Toolset(session, InMemoryFilesystem(session))
        for number in range(1, calls + 1):
            tools.call("write_file", {"path": f"/d/{number % 5}.txt", "content": f"text {number}\n" * (number % 4 + 1)})
            if number == checkpoint:
                session.checkpoint()


def state(url: str) -> bytes:
    """Read everything in the only session, as `weakfs fsck` does."""
    with Session.open(url) as session:
        if session.is_new:
            raise SessionError("there is no session")
        assert sum(1 for _ in session.records) == session.seq
        return session.to_bytes()


@pytest.fixture(params=["sqlite", "postgresql", "redis"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> StoredRows:
    return stored_rows(request.param, request, tmp_path)


@pytest.fixture
def filled(rows: StoredRows) -> StoredRows:
    fill(rows.url)
    return rows


def flipped(data: bytes, chance: random.Random) -> bytes:
    """Return data with one changed bit."""
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def damages(url: str) -> list[str]:
    with closing(open_event_store(url)) as store:
        return [str(damage).partition(" in ")[0] for damage in damage_in(store, "s")]


def test_every_flipped_bit_of_a_frame_is_found_and_the_frame_is_named(filled: StoredRows) -> None:
    right, frames, chance = state(filled.url), filled.frames(), random.Random(5)
    for _ in range(200 if is_exhaustive() else 10):
        number = chance.choice(list(frames))
        data, checksum = frames[number]
        filled.set_frames(frames | {number: Row(flipped(data, chance), checksum)})
        with pytest.raises(FrameDamaged, match=r"its checksum does not match.*restore the storage") as caught:
            state(filled.url)
        assert (caught.value.stream, caught.value.first, caught.value.last) == ("s", number, number)
        assert damages(filled.url) == [f"cannot read frame {number} of stream 's'"]
    filled.set_frames(frames)
    assert (state(filled.url), damages(filled.url)) == (right, [])


def test_every_flipped_bit_of_a_checksum_or_of_a_checkpoint_is_found_or_harmless(filled: StoredRows) -> None:
    right, frames, checkpoint, chance = state(filled.url), filled.frames(), filled.checkpoint(), random.Random(6)
    assert checkpoint.checksum is not None
    for bit in range(0, 32, 5):
        data, checksum = frames[3]
        assert checksum is not None
        filled.set_frames(frames | {3: Row(data, checksum ^ 1 << bit)})
        with pytest.raises(FrameDamaged, match="frame 3"):
            state(filled.url)
    filled.set_frames(frames)
    for _ in range(200 if is_exhaustive() else 6):
        filled.set_checkpoint(checkpoint._replace(data=flipped(checkpoint.data, chance)))
        with pytest.raises(StorageDamaged, match=f"checkpoint after frame {CHECKPOINT} .*: its checksum does not"):
            state(filled.url)
    for number in (checkpoint.number ^ 1 << bit for bit in range(4)):
        filled.set_checkpoint(checkpoint._replace(number=number))
        with pytest.raises(StorageDamaged, match=f"it was stored after frame {CHECKPOINT}"):
            state(filled.url)
    for place in range(len(checkpoint.checksum)):
        changed = bytearray(checkpoint.checksum.encode())
        changed[place] ^= 1
        filled.set_checkpoint(checkpoint._replace(checksum=changed.decode()))
        # With a lower number, it looks like the checksum of an earlier checkpoint.
        with suppress(StorageDamaged):
            assert state(filled.url) == right


def swap(frames: dict[int, Row]) -> dict[int, Row]:
    return frames | {4: frames[5], 5: frames[4]}


def cut(number: int) -> Callable[[dict[int, Row]], dict[int, Row]]:
    return lambda frames: {at: row for at, row in frames.items() if at != number}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (swap, ["frame 4", "frame 5"]),
        (cut(4), ["frame 4"]),
        (cut(FRAMES), [f"frame {FRAMES}"]),
        (lambda frames: cut(FRAMES - 1)(cut(FRAMES)(frames)), [f"frames {FRAMES - 1} to {FRAMES}"]),
        (lambda frames: frames | {7: frames[6]}, ["frame 7"]),
        (lambda frames: {at + (at > 6): row for at, row in frames.items()}, ["frame 7"]),
        (lambda frames: cut(4)(swap(frames)) | {12: frames[11]}, ["frame 4", "frame 5", "frame 12"]),
    ],
    ids=["swapped", "cut", "last cut", "two cut", "twice", "moved on", "several"],
)
def test_frames_that_were_swapped_or_cut_are_named(
    filled: StoredRows, change: Callable[[dict[int, Row]], dict[int, Row]], found: list[str]
) -> None:
    frames = filled.frames()
    filled.set_frames(change(frames))
    with pytest.raises(FrameDamaged):
        state(filled.url)
    assert damages(filled.url)[: len(found)] == [f"cannot read {what} of stream 's'" for what in found]
    filled.set_frames(frames)
    assert damages(filled.url) == []


def test_the_first_frame_cut_off_is_found(filled: StoredRows) -> None:
    filled.set_frames(cut(1)(filled.frames()))
    with pytest.raises(WeakfsError):
        state(filled.url)


def test_a_stream_without_its_frames_is_not_a_new_session(rows: StoredRows) -> None:
    fill(rows.url, calls=3)
    rows.set_frames({})
    with pytest.raises(StorageDamaged, match="frames 1 to 3 of session 's' are missing"):
        state(rows.url)
    assert damages(rows.url) == ["cannot read frames 1 to 3 of stream 's'"]


@pytest.mark.parametrize("number", [FRAMES + 1, FRAMES + 64, FRAMES - 1, 0])
def test_a_changed_number_of_the_newest_frame_is_found(filled: StoredRows, number: int) -> None:
    filled.set_head(number)
    with pytest.raises(StorageDamaged):
        state(filled.url)
    assert len(damages(filled.url)) == 1
    filled.set_head(FRAMES)
    assert damages(filled.url) == []


def test_a_frame_of_another_stream_is_found(rows: StoredRows) -> None:
    with closing(open_event_store(rows.url)) as store:
        store.append("other", 0, [b"a"])
    other = rows.frames() if "redis" not in rows.url else {1: Row(b"a", 1)}
    with closing(open_event_store(rows.url)) as store:
        store.delete("other")
        store.append("s", 0, [b"a"])
    assert rows.frames()[1].checksum != other[1].checksum
    rows.set_frames(other)
    assert damages(rows.url) == ["cannot read frame 1 of stream 's'"]


def test_frames_of_earlier_versions_are_read_between_those_with_checksums(filled: StoredRows) -> None:
    right, frames = state(filled.url), filled.frames()
    filled.set_frames(frames | {number: Row(frames[number].data, None) for number in (1, 2, 9, FRAMES)})
    assert state(filled.url) == right
    with Session.open(filled.url) as session:
        InMemoryFilesystem(session).write("/more", "more")
    after = filled.frames()
    assert after[FRAMES].checksum is None
    assert after[FRAMES + 1].checksum is not None
    assert damages(filled.url) == []


def test_a_checkpoint_that_an_earlier_version_replaced_is_read(rows: StoredRows) -> None:
    """Such a version leaves the checksum of the checkpoint before it."""
    with closing(open_event_store(rows.url)) as store:
        store.append("s", 0, [b"1", b"2", b"3"])
        store.put_checkpoint("s", Checkpoint(2, b"state"))
        _, _, old = rows.checkpoint()
        for checksum in (old, None):
            rows.set_checkpoint(CheckpointRow(3, b"later state", checksum))
            assert store.get_checkpoint("s") == (3, b"later state")
        store.put_checkpoint("s", Checkpoint(3, b"state"))
        assert store.get_checkpoint("s") == (3, b"state")
        for number, checksum in ((3, "3"), (3, "x y"), (3, ""), (2, rows.checkpoint().checksum)):
            rows.set_checkpoint(CheckpointRow(number, b"state", checksum))
            with pytest.raises(StorageDamaged, match=f"the checkpoint after frame {number} of stream 's'"):
                store.get_checkpoint("s")


def test_nothing_is_changed_by_a_session_with_a_damaged_frame(filled: StoredRows, tmp_path: Path) -> None:
    """A session that read the frame before the damage goes on; what reads the frame raises an error."""
    with Session.open(filled.url) as session, Session.open(filled.url) as behind:
        fs = InMemoryFilesystem(session)
        fs.write("/new", "new")
        frames = filled.frames()
        damaged = frames | {
            number: Row(frames[number].data.replace(b"a", b"b"), frames[number].checksum) for number in (3, FRAMES + 1)
        }
        filled.set_frames(damaged)

        reads: list[Callable[[], object]] = [
            lambda: session.at(2),
            lambda: session.records[0],
            lambda: session.save(tmp_path / "s.json"),
            lambda: session.copy_to(tmp_path / "copy"),
        ]
        for read in reads:
            with pytest.raises(FrameDamaged, match=r"frame 3 .*does not match"):
                read()
        before = behind.fork("copy")
        reads = [behind.refresh, lambda: InMemoryFilesystem(behind).write("/other", "other")]
        for read in reads:
            with pytest.raises(FrameDamaged, match=f"frame {FRAMES + 1} .*; frames up to {FRAMES} are intact"):
                read()
        assert InMemoryFilesystem(behind).tree() == InMemoryFilesystem(before).tree()
        assert filled.frames() == damaged

        fs.write("/newer", "newer")
        assert filled.frames().keys() == {*range(1, FRAMES + 3)}
        filled.set_frames(filled.frames() | frames)
        assert behind.refresh() > 0
        assert InMemoryFilesystem(behind).read("/newer").content == "newer"


def test_compacting_a_session_with_a_damaged_frame_changes_nothing(filled: StoredRows) -> None:
    with Session.open(filled.url) as session:
        frames, checkpoint, before = filled.frames(), filled.checkpoint(), len(session.records)
        damaged = frames | {FRAMES: Row(flipped(frames[FRAMES].data, random.Random(1)), frames[FRAMES].checksum)}
        filled.set_frames(damaged)
        with pytest.raises(FrameDamaged, match=f"frame {FRAMES} "):
            session.compact(keep=2)
        assert (filled.frames(), filled.checkpoint(), len(session.records)) == (damaged, checkpoint, before)
        filled.set_frames(frames)
        session.compact(keep=2)
    assert damages(filled.url) == []


def test_a_session_that_is_open_replaces_a_damaged_checkpoint(filled: StoredRows) -> None:
    with Session.open(filled.url) as session:
        checkpoint = filled.checkpoint()
        filled.set_checkpoint(checkpoint._replace(data=flipped(checkpoint.data, random.Random(2))))
        with pytest.raises(StorageDamaged, match="its checksum does not match"):
            Session.open(filled.url)
        InMemoryFilesystem(session).write("/new", "new")
        session.checkpoint()
        right = session.to_bytes()
    assert filled.checkpoint().number == FRAMES + 1
    assert (state(filled.url), damages(filled.url)) == (right, [])


@pytest.mark.slow
def test_no_flipped_bit_of_a_sqlite_file_goes_unnoticed(tmp_path: Path) -> None:
    """What is read is the same, or an error is raised. That includes a session that is no longer found."""
    path = tmp_path / "a.db"
    fill(f"sqlite:{path}", calls=60, checkpoint=30)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    right, whole, chance = state(f"sqlite:{path}"), path.read_bytes(), random.Random(7)
    found = Counter[str]()
    for turn in range(4000 if is_exhaustive() else 300):
        damaged = tmp_path / f"{turn}.db"
        damaged.write_bytes(flipped(whole, chance))
        try:
            assert state(f"sqlite:{damaged}") == right
            found["same"] += 1
        except WeakfsError as error:
            found[type(error).__name__] += 1
    assert found["FrameDamaged"] > sum(found.values()) / 3
    assert found["SessionFileError"] == 0


def test_damage_in_the_index_of_names_is_found_by_a_check(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    fill(f"sqlite:{path}", calls=2)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        statement = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_streams_1'"
        ((page,),) = file.execute(statement).fetchall()
        ((size,),) = file.execute("PRAGMA page_size").fetchall()
    data = bytearray(path.read_bytes())
    # The low byte of the number of its cells.
    data[(page - 1) * size + 4] ^= 0x80
    path.write_bytes(data)
    with closing(open_event_store(f"sqlite:{path}")) as store:
        assert "restore the file from a backup" in str(damage_in(store, "s")[0])


def test_a_file_of_version_1_is_read_without_write_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    fill(f"sqlite:{path}", calls=12)
    right = state(f"sqlite:{path}")
    with closing(sqlite3.connect(path)) as file:
        for table in ("frames", "checkpoints"):
            file.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        file.execute("PRAGMA user_version = 1")
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and allowed(path, mode))
    assert state(f"sqlite:{path}") == right
    monkeypatch.undo()
    assert state(f"sqlite:{path}") == right
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchall() == [(2,)]


def test_a_version_that_knows_no_checksums_cannot_append_to_a_file_with_them(tmp_path: Path) -> None:
    """A process of version 1 that had the file open executes this statement. It gets an error, and changes nothing."""
    fill(f"sqlite:{tmp_path}/a.db", calls=2)
    with closing(Database(f"{tmp_path}/a.db")) as database, pytest.raises(StorageError, match="4 columns"):
        database.many("INSERT INTO frames VALUES (?, ?, ?)", [(1, 3, b"")])
