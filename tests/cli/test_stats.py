"""`weakfs stats`."""

from __future__ import annotations

from pathlib import Path

from weakfs import InMemoryFilesystem, Session

from .conftest import TRANSCRIPTS, WORKSPACE, Run


def test_stats_count_what_a_session_holds(run: Run, saved: Path) -> None:
    [counted] = run("stats", saved, "--json").objects
    tree = InMemoryFilesystem(Session.load(saved)).tree()
    assert counted["session"]["records"] == 9
    assert counted["session"]["snapshots"] == 1
    assert counted["session"]["file_bytes"] == saved.stat().st_size
    assert counted["files"] == {
        "files": 5,
        "directories": 3,
        "bytes": tree.total_size,
        "digest": tree.digest,
        "fingerprint": tree.fingerprint,
    }
    assert counted["events"]["fs/file_written"] == 5
    assert counted["calls_by_status"] == {}


def test_stats_count_tool_calls_by_status(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    run("run", TRANSCRIPTS / "shop.jsonl", "--mount", WORKSPACE, "--save", file)
    [counted] = run("stats", file, "--json").objects
    assert sum(counted["calls_by_status"].values()) == 106
    assert counted["calls_by_status"]["ok"] == 91


def test_stats_are_printed_as_a_table(run: Run, saved: Path) -> None:
    done = run("stats", saved)
    assert done.status == 0
    assert done.lines[0] == "session"
    assert ["records", "9"] in [line.split() for line in done.lines]
    assert "  fs/file_written    5" in done.lines
    assert all(line == line.rstrip() for line in done.lines)


def test_stats_of_an_empty_session(run: Run, tmp_path: Path) -> None:
    Session(session_id="empty").save(tmp_path / "s.json")
    [counted] = run("stats", tmp_path / "s.json", "--json").objects
    assert counted["session"]["first_record"] is None
    assert run("stats", tmp_path / "s.json").status == 0
