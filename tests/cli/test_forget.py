"""`weakfs forget`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.forked_command import run_command
from tests.history.forgetting.files import files_with
from weakfs import HostFilesystem, InMemoryFilesystem, Session

SECRET = "sk-live-9f8e7d6c"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    session = Session(session_id="mine")
    InMemoryFilesystem(session).write("/a.txt", f"key={SECRET}\n")
    session.save(tmp_path / "mine.json")
    return tmp_path / "mine.json"


def test_forget_removes_a_text_from_a_session_file_and_never_prints_it(saved: Path) -> None:
    done = run_command("forget", str(saved), "--text", "-", "--yes", given=SECRET + "\n")

    assert done.returncode == 0
    assert "none contains it" in done.stdout
    assert SECRET not in done.stdout + done.stderr + saved.read_text()
    assert InMemoryFilesystem(Session.load(saved)).read("/a.txt").content == "key=[forgotten.....]\n"


def test_forget_removes_a_path_from_storage(saved: Path, tmp_path: Path) -> None:
    where = f"sqlite:{tmp_path}/sessions.db"
    Session.load(saved).copy_to(where)

    done = run_command("forget", where, "/a.txt", "--yes", "--json")

    assert done.returncode == 0
    assert json.loads(done.stdout)["found_in"] == []
    assert SECRET.encode() not in (tmp_path / "sessions.db").read_bytes()


def test_forget_with_preview_changes_nothing(saved: Path) -> None:
    before = saved.read_bytes()
    done = run_command("forget", str(saved), "--text", SECRET, "--preview")

    assert done.returncode == 0
    assert "would change 1 record" in done.stdout
    assert saved.read_bytes() == before


def test_forget_asks_for_confirmation(saved: Path) -> None:
    before = saved.read_bytes()
    done = run_command("forget", str(saved), "--text", SECRET)

    assert done.returncode == 2
    assert "pass --yes" in done.stderr
    assert saved.read_bytes() == before


def test_forget_needs_a_path_or_a_text(saved: Path) -> None:
    assert run_command("forget", str(saved)).returncode == 2
    assert run_command("forget", str(saved), "/a.txt", "--text", SECRET).returncode == 2


def test_forgetting_a_text_that_does_not_occur_changes_nothing(saved: Path) -> None:
    before = saved.read_bytes()
    done = run_command("forget", str(saved), "--text", "never written", "--yes")

    assert "nothing to forget" in done.stdout
    assert saved.read_bytes() == before


def test_forget_drops_the_snapshots_of_a_directory(tmp_path: Path) -> None:
    root, store = tmp_path / "root", tmp_path / "store"
    root.mkdir()
    session = Session(session_id="mine")
    fs = HostFilesystem(root, session=session, store=store)
    fs.write("/a.txt", f"key={SECRET}\n")
    fs.snapshot()
    fs.write("/a.txt", "key=none\n")
    fs.snapshot()
    session.save(tmp_path / "mine.json")
    words = ["forget", str(tmp_path / "mine.json"), "--text", SECRET, "--root", str(root), "--store", str(store)]

    assert "would drop the snapshot" in run_command(*words, "--preview").stdout
    done = run_command(*words, "--yes")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("dropped the snapshot") == 1
    assert files_with(SECRET, tmp_path) == ()
    assert run_command("forget", str(tmp_path / "mine.json"), "--text", SECRET, "--store", str(store)).returncode == 2
