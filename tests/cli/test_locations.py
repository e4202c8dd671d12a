"""Sessions in storage, from the command line."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from weakfs import InMemoryFilesystem, Session
from weakfs.session import SessionClosed
from weakfs.session.history.compaction import compact
from weakfs.session.history.timeline import Timeline
from weakfs.storage import open_event_store


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    session = Session(session_id="s", clock=lambda: 1)
    fs = InMemoryFilesystem(session)
    for number in range(400):
        fs.write(f"/{number % 9}.txt", f"{number}\n")
    session.snapshot("tag")
    session.rollback(100)
    session.save(tmp_path / "s.json")
    return tmp_path / "s.json"


@pytest.mark.parametrize("url", ["folder:{}", "sqlite:{}.db"])
def test_import_and_export_lose_nothing(run: Run, saved: Path, tmp_path: Path, url: str) -> None:
    where = url.format(tmp_path / "store")
    assert run("import", saved, where).out == f"imported s to {where}: 401 records\n"
    assert run("sessions", where).out.startswith("s  ")
    assert run("fsck", where).out == "checked s: 401 records, 1 snapshot: no damage\n"
    assert run("cat", where, "/3.txt").out == "93\n"
    assert run("cat", f"{where}#s", "/3.txt", "--at", "tag").out == "399\n"
    assert run("export", where, tmp_path / "back.json").status == 0
    back, original = Session.load(tmp_path / "back.json"), Session.load(saved)
    assert back.to_bytes() == original.to_bytes()


def test_a_command_closes_the_session_that_it_opened(
    run: Run, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"sqlite:{tmp_path}/store.db"
    run("import", saved, where)
    opened: list[Session] = []

    def recorded(*arguments: Any, **options: Any) -> Session:
        opened.append(open_session(*arguments, **options))
        return opened[-1]

    open_session = Session.open
    monkeypatch.setattr(Session, "open", recorded)
    for command in (("cat", where, "/3.txt"), ("fsck", where), ("cat", where, "/nothing"), ("log", where)):
        run(*command)
    assert len(opened) == 4
    for session in opened:
        with pytest.raises(SessionClosed):
            session.snapshot()


@pytest.mark.parametrize("command", ["export", "fsck"])
def test_a_session_compacted_during_a_command_is_read_again(
    run: Run, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    where = f"sqlite:{tmp_path}/store.db"
    run("import", saved, where)
    open_session, keeps = Session.open, [50, 10]

    def compacted(*arguments: Any, **options: Any) -> Session:
        session = open_session(*arguments, **options)
        if keeps:
            with open_session(where, "s") as other:
                fs = InMemoryFilesystem(other)
                for number in range(300):
                    fs.write("/more.txt", f"{number}\n" * 500)
                other.compact(keep=keeps.pop(0))
        return session

    monkeypatch.setattr(Session, "open", compacted)
    done = run(command, where, *([tmp_path / "back.json"] if command == "export" else []))
    assert (done.status, keeps) == (0, [])
    monkeypatch.undo()
    with Session.open(where, "s") as session:
        if command == "export":
            assert (tmp_path / "back.json").read_bytes() == session.to_bytes()
        else:
            assert done.out == f"checked s: {len(session.records)} records, 1 snapshot: no damage\n"


def test_a_session_in_a_storage_is_compacted(run: Run, saved: Path, tmp_path: Path) -> None:
    where = f"folder:{tmp_path / 'store'}"
    run("import", saved, where)
    assert run("compact", where, "--keep", "5").out == "compacted s: 396 records dropped\n"
    assert run("fsck", where).out == "checked s: 5 records, 1 snapshot: no damage\n"
    assert run("cat", where, "/3.txt").out == "93\n"


@pytest.mark.parametrize(
    ("command", "module"),
    [
        (("compact", "--keep", "5"), "weakfs.session.record_log"),
        (("prune", "--max-records", "5", "--yes"), "weakfs.history.retention.prune_session"),
    ],
    ids=["compact", "prune"],
)
def test_a_session_is_compacted_while_another_process_writes(
    run: Run, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], module: str
) -> None:
    where = f"folder:{tmp_path / 'store'}"
    run("import", saved, where)
    written: list[str] = []

    def compact_while_written(line: Timeline, *arguments: Any) -> int:
        # Only during the first attempt: the second one holds a lease, for which the other process would have to wait.
        if not written:
            written.append("/new.txt")
            with Session.open(where) as other:
                InMemoryFilesystem(other).write("/new.txt", "new\n")
        return compact(line, *arguments)

    monkeypatch.setattr(f"{module}.compact", compact_while_written)
    assert run(command[0], where, *command[1:]).status == 0
    monkeypatch.undo()
    assert len(Session.open(where).records) == 5
    assert run("cat", where, *written).out == "new\n"


def test_a_location_without_a_session_is_an_error(run: Run, tmp_path: Path) -> None:
    outcome = run("log", f"folder:{tmp_path}")
    assert outcome.status == 1
    assert "there is no session" in outcome.err


@pytest.mark.parametrize("location", ["folder:{}/nothing", "sqlite:{}/nothing.db", "sqlite://{}/nothing.db"])
@pytest.mark.parametrize("command", ["ls", "sessions", "fsck"])
def test_reading_a_missing_location_creates_nothing(run: Run, tmp_path: Path, location: str, command: str) -> None:
    outcome = run(command, location.format(tmp_path))
    assert outcome.status == 1
    assert "no such file or directory" in outcome.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["sessions", "fsck", "delete", "export"])
def test_a_saved_session_is_not_taken_for_storage(run: Run, saved: Path, tmp_path: Path, command: str) -> None:
    outcome = run(command, saved, *[tmp_path / "out.json"] * (command == "export"))
    assert outcome.status == 1
    assert outcome.err.endswith(
        "it is a file, and sessions in storage are in a folder; to copy a saved session there: "
        "weakfs import FILE FOLDER\n"
    )


def test_a_session_is_not_imported_into_a_file(run: Run, saved: Path) -> None:
    before = saved.read_bytes()
    assert run("import", saved, saved).err.endswith(": Not a directory; name a folder, or sqlite:PATH\n")
    assert saved.read_bytes() == before


def test_a_session_in_a_storage_has_statistics(run: Run, saved: Path, tmp_path: Path) -> None:
    run("import", saved, tmp_path / "store")
    assert "401" in run("stats", f"folder:{tmp_path / 'store'}").out
    assert "401" in run("stats", f"{tmp_path / 'store'}#s").out


def test_compacting_a_session_in_a_storage_requires_a_number_to_keep(run: Run, saved: Path, tmp_path: Path) -> None:
    run("import", saved, tmp_path / "store")
    outcome = run("compact", f"{tmp_path / 'store'}#s")
    assert outcome.status == 2
    assert "give --keep N" in outcome.err


def test_passwords_in_a_location_are_never_shown(run: Run, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = "postgresql://me:hunter2@nowhere.invalid/db"
    monkeypatch.setattr(Session, "copy_to", lambda *_: None)
    outcomes = [run("import", saved, location)]

    def fail(*_: object, **__: object) -> Session:
        raise OSError("told to fail")

    monkeypatch.setattr(Session, "open", fail)
    outcomes += [run(command, location) for command in ("ls", "fsck", "stats")]
    assert [outcome.status for outcome in outcomes] == [0, 1, 1, 1]
    assert not any("hunter2" in outcome.out + outcome.err for outcome in outcomes)


@pytest.mark.parametrize("name", ["a#b.db", "a%20b.db", "a?b.db"])
def test_a_location_may_have_any_name(run: Run, saved: Path, tmp_path: Path, name: str) -> None:
    where = f"sqlite:{tmp_path}/{name}" if "?" not in name else f"sqlite://{tmp_path}/{name.replace('?', '%3F')}"
    assert run("import", saved, where).status == 0
    assert (tmp_path / name).exists()
    for location in (where, f"{where}#s"):
        assert run("cat", location, "/3.txt").out == "93\n"


def test_a_password_that_contains_a_hash_sign_is_not_shown(run: Run) -> None:
    outcome = run("ls", "postgresql://me:hunt#er2@host/db")
    assert outcome.status == 1
    assert "write %2F, %3F, %23 or %40" in outcome.err
    assert "er2" not in outcome.err


@pytest.mark.parametrize("url", ["folder:{}", "sqlite:{}.db"])
def test_a_session_is_deleted(run: Run, saved: Path, tmp_path: Path, url: str) -> None:
    where = url.format(tmp_path / "store")
    run("import", saved, where)
    with Session.open(where, "other") as other:
        InMemoryFilesystem(other).write("/a", "1")
    several = run("delete", where, "--yes")
    assert several.status == 1
    assert "it holds 'other', 's'" in several.err
    asked = run("delete", f"{where}#s")
    assert asked.status == 2
    assert f"session s of {where}: 3 frames, with all its files and history; pass --yes" in asked.err
    assert run("sessions", where).out.count("\n") == 2
    done = run("delete", f"{where}#s", "--yes")
    assert done.out == f"deleted session s of {where}: 3 frames, with all its files and history\n"
    gone = run("delete", f"{where}#s", "--yes").err
    assert gone.endswith(f"there is no session 's'; see: weakfs sessions {where}\n")
    deleted = json.loads(run("delete", where, "--yes", "--json").out)
    assert deleted == {"type": "deleted", "session_id": "other", "frames": 1}
    empty = run("sessions", where)
    assert (empty.status, empty.out, empty.err) == (0, "", f"weakfs: there are no sessions at {where!r}\n")


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_deleting_asks_for_confirmation_on_a_terminal(saved: Path, tmp_path: Path, answer: str, left: int) -> None:
    where = f"sqlite:{tmp_path}/store.db"
    session = Session.load(saved)
    session.copy_to(where)
    leader, follower = os.openpty()
    os.write(leader, answer.encode() or b"\x04")
    done = subprocess.run(
        [sys.executable, "-m", "weakfs", "delete", where],
        stdin=follower,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(leader)
    os.close(follower)
    assert f"This deletes session s of {where}: 3 frames" in done.stderr
    assert (done.returncode == 0) == (not left)
    with closing(open_event_store(where)) as store:
        assert len(store.streams()) == left


def test_importing_twice_is_an_error(run: Run, saved: Path, tmp_path: Path) -> None:
    where = f"folder:{tmp_path / 'store'}"
    run("import", saved, where)
    outcome = run("import", saved, where)
    assert outcome.status == 1
    assert "a session with that id already exists" in outcome.err


def test_damaged_history_can_be_given_up(run: Run, tmp_path: Path) -> None:
    session = Session.open(tmp_path / "store", "s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", "1" * 1000)
    (journal,) = tmp_path.glob("*/*/*.journal")
    size = journal.stat().st_size
    fs.write("/b", "2" * 1000)
    fs.write("/c", "3" * 1000)
    session.close()
    data = bytearray(journal.read_bytes())
    data[size + 100] ^= 1
    journal.write_bytes(data)
    where = f"folder:{tmp_path / 'store'}"
    damaged = run("fsck", where)
    assert damaged.status == 1
    assert "everything up to frame 1 is intact" in damaged.err
    assert "weakfs fsck --give-up" in damaged.err
    given_up = run("fsck", where, "--give-up")
    assert given_up.out == f"set aside {journal.name}.damaged\nchecked s: 1 record, 0 snapshots: no damage\n"
    assert run("ls", where).out.count("\n") == 1
    # The byte at its end tells processes that have the journal open that it was set aside.
    assert (journal.parent / f"{journal.name}.damaged").read_bytes() == data + b"\0"


def test_each_damaged_frame_is_listed(run: Run, tmp_path: Path) -> None:
    where, path = f"sqlite:{tmp_path}/store.db", tmp_path / "store.db"
    with Session.open(where, "s") as session:
        for number in range(6):
            InMemoryFilesystem(session).write(f"/{number}", str(number))
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE frames SET data = CAST(data || x'20' AS BLOB) WHERE number IN (2, 6)")
        file.execute("DELETE FROM frames WHERE number IN (3, 4)")
        before = file.execute("SELECT * FROM frames").fetchall()
    checked = run("fsck", where)
    assert (checked.status, checked.lines) == (
        1,
        [
            "damaged frame 2: its checksum does not match",
            "damaged frames 3 to 4: they are missing",
            "damaged frame 6: its checksum does not match",
        ],
    )
    message = (
        f"cannot read frame 2 of stream 's' in {where!r}: its checksum does not match; frames up to 1 are intact; "
        "restore the storage from a backup\n"
    )
    assert checked.err == f"weakfs: {message}"
    found = run("fsck", where, "--json").objects
    assert found[1] == {"type": "damaged", "first": 3, "last": 4, "cause": "they are missing"}
    assert [(one["first"], one["last"]) for one in found] == [(2, 2), (3, 4), (6, 6)]
    for command in (
        ["ls", where],
        ["log", where],
        ["cat", where, "/1"],
        ["compact", where, "--keep", "1"],
        ["export", where, tmp_path / "out.json"],
    ):
        outcome = run(*command)
        assert outcome.status == 1
        assert outcome.err.endswith(message)
    assert not (tmp_path / "out.json").exists()
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT * FROM frames").fetchall() == before


def test_damage_can_be_given_up_only_in_a_folder(run: Run, saved: Path, tmp_path: Path) -> None:
    where = f"sqlite:{tmp_path / 'store.db'}"
    run("import", saved, where)
    outcome = run("fsck", where, "--give-up")
    assert outcome.status == 1
    assert "only the journal of a folder can be cut" in outcome.err
