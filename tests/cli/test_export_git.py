"""`weakfs export-git`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .conftest import Run


def test_a_saved_session_becomes_a_repository(run: Run, saved: Path, tmp_path: Path) -> None:
    done = run("export-git", saved, tmp_path / "repo")
    assert done.lines == [f"9 commits added to main of {tmp_path / 'repo'}"]
    told = subprocess.run(["git", "-C", tmp_path / "repo", "tag"], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["before"]
    [again] = run("export-git", saved, tmp_path / "repo", "--json").objects
    assert again["commits"] == 0


def test_a_refusal_is_reported_in_one_line(run: Run, saved: Path, tmp_path: Path) -> None:
    done = run("export-git", saved, tmp_path)
    assert done.status == 1
    assert done.err.count("\n") == 1
    assert "it is not empty; name another folder" in done.err
