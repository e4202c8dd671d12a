"""`weakfs log --records`."""

from __future__ import annotations

from pathlib import Path

from weakfs import InMemoryFilesystem, Session

from .conftest import Run


def test_log_shows_records_with_time_tag_cause_and_path(run: Run, saved: Path) -> None:
    done = run("log", "--records", saved)
    assert done.status == 0
    assert done.lines[0].split() == ["1", "2026-04-30T09:29:33Z", "fs/file_written", "-", "/src/app.py"]
    assert done.lines[6].split()[2:] == ["fs/entry_moved", "call_2", "/src/old.py", "->", "/attic/old.py"]


def test_log_shows_snapshots_where_they_were_taken(run: Run, saved: Path) -> None:
    lines = run("log", "--records", saved).lines
    assert lines[4].split()[1:] == ["snapshot", "before"]
    assert len(lines) == 10


def test_log_selects_a_cause(run: Run, saved: Path) -> None:
    assert [line.split()[0] for line in run("log", "--records", saved, "--cause", "call_1").lines] == ["5"]


def test_log_selects_a_path_and_everything_below_it(run: Run, saved: Path) -> None:
    assert [line.split()[0] for line in run("log", "--records", saved, "--path", "attic").lines] == ["6"]
    assert [line.split()[0] for line in run("log", "--records", saved, "--path", "/src").lines] == [
        "1",
        "2",
        "5",
        "6",
        "8",
    ]


def test_log_of_a_path_includes_changes_to_its_directory(run: Run, tmp_path: Path) -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/docs/a.md", "a")
    files.write("/other.md", "b")
    files.delete("/docs", recursive=True)
    session.rollback(2)
    files.write("/other.md", "c")
    session.rollback(4)
    session.save(tmp_path / "s.json")
    found = run("log", "--records", tmp_path / "s.json", "--path", "/docs/a.md", "--json").objects
    assert [one["seq"] for one in found] == [1, 3, 4]


def test_log_can_be_limited_to_the_newest_records(run: Run, saved: Path) -> None:
    assert [line.split()[0] for line in run("log", "--records", saved, "-n", "2").lines] == ["8", "9"]
    assert run("log", "--records", saved, "--limit", "0").out == ""


def test_log_as_json_prints_one_object_per_line(run: Run, saved: Path) -> None:
    objects = run("log", "--records", saved, "--json").objects
    assert objects[0] == {
        "type": "record",
        "seq": 1,
        "at": "2026-04-30T09:29:33.500000000Z",
        "tag": "fs/file_written",
        "cause": None,
        "event": {"path": "/src/app.py", "content_bytes": 21, "at": 1_777_541_373_000_000_000, "mode": None},
    }
    assert objects[4]["type"] == "snapshot"
    assert (objects[4]["tag"], objects[4]["seq"]) == ("before", 4)
