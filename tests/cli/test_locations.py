"""Sessions in storage, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from weakfs import InMemoryFilesystem, Session


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


def test_a_session_in_a_storage_is_compacted(run: Run, saved: Path, tmp_path: Path) -> None:
    where = f"folder:{tmp_path / 'store'}"
    run("import", saved, where)
    assert run("compact", where, "--keep", "5").out == "compacted s: 396 records dropped\n"
    assert run("fsck", where).out == "checked s: 5 records, 1 snapshot: no damage\n"
    assert run("cat", where, "/3.txt").out == "93\n"


def test_a_location_without_a_session_is_an_error(run: Run, tmp_path: Path) -> None:
    outcome = run("log", f"folder:{tmp_path / 'nothing'}")
    assert outcome.status == 1
    assert "there is no session" in outcome.err


def test_importing_twice_is_an_error(run: Run, saved: Path, tmp_path: Path) -> None:
    where = f"folder:{tmp_path / 'store'}"
    run("import", saved, where)
    outcome = run("import", saved, where)
    assert outcome.status == 1
    assert "has a session of that id" in outcome.err
