"""SQL queries: what the tables contain, and that a query only reads and always ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.history.sql import COLUMNS

SECOND = 1_000_000_000


@pytest.fixture
def session() -> Session:
    ticks = iter(range(0, 10**15, SECOND))
    session = Session(session_id="asked", clock=ticks.__next__)
    tools = Toolset(session)
    tools.call("write_file", {"path": "/a.py", "content": "one\ntwo\n"}, call_id="c1", caller="ann")
    tools.call("edit_file", {"path": "/a.py", "old_string": "two", "new_string": "2\n3"}, call_id="c2", caller="bob")
    tools.call("edit_file", {"path": "/a.py", "old_string": "none", "new_string": "x"}, call_id="c3")
    tools.call("mv", {"source": "/a.py", "destination": "/b.py"}, call_id="c4")
    session.snapshot("moved")
    return session


def test_calls_have_numbers_times_and_outcomes(session: Session) -> None:
    asked = session.sql("SELECT number, id, tool, status, error_code, caller, duration_ms > 0 FROM calls")
    assert asked.columns[:3] == ("number", "id", "tool")
    assert asked.rows == (
        (1, "c1", "write_file", "ok", None, "ann", 1),
        (2, "c2", "edit_file", "ok", None, "bob", 1),
        (3, "c3", "edit_file", "not_found", "edit_target_not_found", None, 1),
        (4, "c4", "mv", "ok", None, None, 1),
    )


def test_arguments_are_json_that_a_query_can_look_into(session: Session) -> None:
    assert session.sql("SELECT json_extract(arguments, '$.path') FROM calls WHERE id = 'c2'").rows == (("/a.py",),)


def test_changes_name_the_call_the_file_and_its_lines(session: Session) -> None:
    asked = session.sql("SELECT call_number, change, path, source, added, removed, size_before, size FROM changes")
    assert asked.rows == (
        (1, "added", "/a.py", None, 2, 0, None, 8),
        (2, "changed", "/a.py", None, 2, 1, 8, 8),
        (4, "moved", "/b.py", "/a.py", 0, 0, 8, 8),
    )


def test_changes_of_a_merged_fork_are_listed_once(session: Session) -> None:
    fork = session.fork()
    InMemoryFilesystem(fork).write("/new.txt", "x\n")
    session.merge(fork)
    assert session.sql("SELECT change, path FROM changes WHERE path = '/new.txt'").rows == (("added", "/new.txt"),)


def test_a_rollback_is_a_separate_change(session: Session) -> None:
    seq = session.seq
    InMemoryFilesystem(session).write("/gone.txt", "x\n")
    session.rollback(seq)
    asked = session.sql(
        "SELECT tag, change, added, removed FROM changes JOIN records ON seq = record WHERE changes.path = '/gone.txt'"
    )
    assert asked.rows == (("fs/file_written", "added", 1, 0), ("session/rolled_back", "removed", 0, 1))


def test_files_are_those_of_the_present(session: Session) -> None:
    files = InMemoryFilesystem(session)
    files.symlink("b.py", "/link")
    files.mkdir("/empty")
    files.write_bytes("/data.bin", b"\xff\0")
    asked = session.sql("SELECT path, kind, size, mode, target, text FROM files ORDER BY path")
    assert asked.rows == (
        ("/b.py", "file", 8, "0644", None, "one\n2\n3\n"),
        ("/data.bin", "file", 2, "0644", None, None),
        ("/empty", "directory", None, "0755", None, None),
        ("/link", "link", 0, "0777", "b.py", None),
    )


def test_lines_name_the_call_that_wrote_them(session: Session) -> None:
    InMemoryFilesystem(session).write_bytes("/data.bin", b"\xff\0")
    asked = session.sql("SELECT path, number, text, call_id, tool, caller FROM lines")
    assert asked.rows == (
        ("/b.py", 1, "one", "c1", "write_file", "ann"),
        ("/b.py", 2, "2", "c2", "edit_file", "bob"),
        ("/b.py", 3, "3", "c2", "edit_file", "bob"),
    )


def test_files_of_a_directory_of_the_host_name_their_filesystem(session: Session, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    host = HostFilesystem(tmp_path / "work", session=session, store=tmp_path / "store")
    host.write("/there.txt", "x")
    host.snapshot("kept")
    asked = session.sql("SELECT path FROM files WHERE filesystem IS NOT NULL")
    assert asked.rows == (("/there.txt",),)
    assert session.sql("SELECT tag, kind FROM snapshots WHERE filesystem IS NOT NULL").rows == (("kept", "tree"),)


def test_snapshots_name_their_record(session: Session) -> None:
    assert session.sql("SELECT tag, record FROM snapshots").rows == (("moved", session.seq),)


def test_records_have_their_tag_and_their_plain_fields(session: Session) -> None:
    asked = session.sql("SELECT cause, path, json_extract(event, '$.content_bytes') FROM records WHERE seq = 1")
    assert asked.rows == (("c1", "/a.py", 8),)


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE calls",
        "DELETE FROM calls",
        "INSERT INTO calls (id) VALUES ('x')",
        "CREATE TABLE mine (x)",
        "ATTACH 'other.db' AS other",
        "PRAGMA query_only",
        "VACUUM INTO 'copy.db'",
        "BEGIN",
        "SELECT load_extension('evil')",
        "SELECT 1; SELECT 2",
        "SELECT missing FROM calls",
        "SELECT * FROM sqlite_master WHERE zeroblob(1000000000) IS NULL",
        "",
        "-- nothing",
        "nonsense",
        "SELECT '\ud800'",
    ],
)
def test_a_query_that_writes_is_refused(
    session: Session, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"cannot run the query: .*; (give|the tables are)"):
        session.sql(text)
    assert [*tmp_path.iterdir()] == []


def test_an_endless_query_is_stopped(session: Session) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t"
    with pytest.raises(TimeoutError, match="longer timeout"):
        session.sql(endless, timeout=0)


def test_rows_beyond_the_limit_are_cut_and_this_is_reported(session: Session) -> None:
    asked = session.sql("SELECT number FROM calls", max_rows=2)
    assert (asked.rows, asked.truncated) == (((1,), (2,)), True)
    assert not session.sql("SELECT number FROM calls", max_rows=4).truncated


def test_parameters_are_values_and_never_sql(session: Session) -> None:
    assert session.sql("SELECT id FROM calls WHERE caller = ?", ["ann"]).rows == (("c1",),)
    assert session.sql("SELECT id FROM calls WHERE caller = :who", {"who": "' OR 1"}).rows == ()


@pytest.mark.parametrize("table", COLUMNS)
def test_every_table_of_an_empty_session_is_empty(table: str) -> None:
    assert session_rows(Session(session_id="empty"), table) == ()


@pytest.mark.parametrize("table", COLUMNS)
def test_a_query_changes_nothing(session: Session, table: str) -> None:
    before = session.to_bytes()
    assert session_rows(session, table)
    assert session.to_bytes() == before


def session_rows(session: Session, table: str) -> tuple[object, ...]:
    return session.sql(f"SELECT * FROM {table}").rows
