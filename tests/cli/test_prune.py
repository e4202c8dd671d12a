"""`weakfs prune`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.forked_command import run_command
from weakfs import HostFilesystem, InMemoryFilesystem, Session
from weakfs.snapshots import Store


def weakfs(*words: str) -> subprocess.CompletedProcess[str]:
    return run_command("prune", *words)


def fill(session: Session) -> Session:
    fs = InMemoryFilesystem(session)
    for version in range(6):
        fs.write("/a", f"{version}" * 1_000)
        session.snapshot("release" if version == 1 else None)
    return session


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    fill(Session(session_id="mine")).save(tmp_path / "mine.json")
    return tmp_path / "mine.json"


def test_a_dry_run_says_what_would_be_dropped_and_changes_nothing(saved: Path) -> None:
    before = saved.read_bytes()
    done = weakfs(str(saved), "--max-records", "2", "--max-snapshots", "1", "--dry-run")

    assert done.returncode == 0
    assert "would free 2,000 bytes: 4 records, 4 snapshots" in done.stdout
    assert "release" in done.stdout
    assert saved.read_bytes() == before


def test_a_session_file_is_pruned(saved: Path) -> None:
    done = weakfs(str(saved), "--max-bytes", "2K", "--yes", "--json")

    assert done.returncode == 0
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["freed"], report["bytes"], report["preview"]) == (4_000, 2_000, False)
    session = Session.load(saved)
    assert [one.tag for one in session.snapshots] == ["release"]
    session.rollback("release")
    assert InMemoryFilesystem(session).read("/a").content == "1" * 1_000


def test_a_limit_that_cannot_be_met_has_its_own_exit_status(saved: Path) -> None:
    done = weakfs(str(saved), "--max-bytes", "1K", "--yes")
    assert done.returncode == 3
    assert "by 976 bytes" in done.stdout
    assert "--tagged" in done.stdout
    assert weakfs(str(saved), "--max-bytes", "1K", "--tagged", "--yes").returncode == 0


def test_a_dry_run_without_limits_shows_the_size_of_each_snapshot(saved: Path) -> None:
    done = weakfs(str(saved), "--dry-run")
    assert done.returncode == 0
    assert done.stdout.startswith("nothing to drop")
    assert "release" in done.stdout
    assert "6,000 bytes in all" in done.stdout


def test_it_asks_first(saved: Path) -> None:
    before = saved.read_bytes()
    done = weakfs(str(saved), "--max-records", "0")
    assert done.returncode == 2
    assert "pass --yes" in done.stderr
    assert saved.read_bytes() == before


@pytest.mark.parametrize("where", ["folder:{}/s", "{}/s", "sqlite:{}/s.db"])
def test_a_session_in_storage_is_pruned(tmp_path: Path, where: str) -> None:
    url = where.format(tmp_path)
    fill(Session.open(url, "mine")).close()

    assert weakfs(url, "--max-records", "1", "--yes").returncode == 0
    with Session.open(url, "mine") as session:
        assert len(session.records) == 1


def test_the_snapshots_of_a_directory_are_pruned(tmp_path: Path) -> None:
    root, store = tmp_path / "root", tmp_path / "store"
    root.mkdir()
    fs = HostFilesystem(root, store=store)
    for version in range(4):
        fs.write("/a", f"{version}" * 1_000)
        fs.snapshot()

    done = weakfs(str(root), "--store", str(store), "--max-snapshots", "1", "--yes")

    assert done.returncode == 0, done.stderr
    assert "freed 3," in done.stdout
    assert len(Store(store).list()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "no limit is given; pass --max-bytes, --max-age, --max-records or --max-snapshots, or --dry-run"),
        (["--max-bytes", "10X"], "is not a size"),
        (["--max-age", "1y"], "is not a duration"),
        (["--store", "x", "--max-records", "1"], "omit the option"),
    ],
)
def test_wrong_limits_are_named(saved: Path, words: list[str], says: str) -> None:
    done = weakfs(str(saved), *words)
    assert done.returncode in (1, 2)
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_records_of_a_directory_are_refused(tmp_path: Path) -> None:
    done = weakfs(str(tmp_path), "--max-records", "1")
    assert done.returncode == 2
    assert "--max-records" in done.stderr
