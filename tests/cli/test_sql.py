"""`weakfs sql`."""

from __future__ import annotations

from pathlib import Path

from weakfs import Session
from weakfs.history.sql import COLUMNS

from .conftest import Run


def test_rows_are_aligned_below_their_columns(run: Run, saved: Path) -> None:
    done = run("sql", saved, "SELECT path, size FROM files WHERE kind = 'file' AND path LIKE '%.p_%' ORDER BY path")
    assert (done.status, done.err) == (0, "")
    assert done.lines == ["path           size", "/attic/old.py  6", "/logo.png      6", "/src/app.py    23"]


def test_control_characters_do_not_reach_a_terminal(run: Run, saved: Path) -> None:
    assert "\x1b" not in run("sql", saved, "SELECT path, text FROM files").out


def test_json_and_csv(run: Run, saved: Path) -> None:
    query = "SELECT seq, cause, x'00ff' AS raw FROM records WHERE cause IS NOT NULL ORDER BY seq"
    assert run("sql", saved, query, "--json").objects[0] == {"seq": 5, "cause": "call_1", "raw": "00ff"}
    assert run("sql", saved, "SELECT seq, cause FROM records WHERE seq = 5", "--csv").lines == ["seq,cause", "5,call_1"]


def test_a_limit_that_cuts_the_result_is_reported(run: Run, saved: Path) -> None:
    done = run("sql", saved, "SELECT seq FROM records", "-n", "3")
    assert len(done.lines) == 4
    assert done.err == "weakfs: only the first 3 rows are shown; to see more, give a larger --limit\n"


def test_without_a_query_the_tables_are_listed(run: Run, saved: Path) -> None:
    assert [line.split()[0] for line in run("sql", saved).lines] == [*COLUMNS]


def test_a_bad_query_says_why(run: Run, saved: Path) -> None:
    done = run("sql", saved, "SELECT nope FROM calls")
    assert (done.status, done.out) == (1, "")
    assert "no such column: nope; the tables are calls" in done.err


def test_a_location_is_queried_like_a_file(run: Run, tmp_path: Path) -> None:
    with Session.open(tmp_path / "sessions", "one") as session:
        session.snapshot("kept")
    done = run("sql", f"{tmp_path / 'sessions'}#one", "SELECT tag FROM snapshots", "--csv")
    assert done.lines == ["tag", "kept"]
