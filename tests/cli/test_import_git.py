"""`weakfs import-git`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.git_import.repositories import Writer, git
from weakfs import Session

from .conftest import Run


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    writer = Writer(tmp_path / "project.git")
    first = writer.commit({b"a": (b"100644", b"a")})
    writer.commit({b"b": (b"100644", b"b" * 3_000), b"sub": (b"160000", b"1" * 40)}, parents=[first])
    return writer.finish()


def test_a_repository_becomes_a_session_file(run: Run, repository: Path, tmp_path: Path) -> None:
    done = run("import-git", repository, tmp_path / "s.json")
    assert done.status == 0
    assert done.lines[0] == f"imported 2 commits of main to {tmp_path / 's.json'}: project"
    assert any(line.startswith("left out /sub in ") for line in done.lines)
    assert done.lines[-1] == "an export of the session will have other commit ids"
    assert Session.load(tmp_path / "s.json").session_id == "project"


def test_the_commits_are_exported_again(run: Run, repository: Path, tmp_path: Path) -> None:
    git(repository, "update-ref", "refs/heads/main", "main~1")
    run("import-git", repository, tmp_path / "s.json")
    run("export-git", tmp_path / "s.json", tmp_path / "again.git")
    assert git(tmp_path / "again.git", "rev-parse", "main") == git(repository, "rev-parse", "main")


def test_a_repository_becomes_a_session_in_storage(run: Run, repository: Path, tmp_path: Path) -> None:
    where = f"sqlite:{tmp_path}/s.db#mine"
    [*_, told] = run("import-git", repository, where, "--max-file-size", "1K", "--json").objects
    assert (told["session_id"], told["commits"], told["left_out"], told["is_exact"]) == ("mine", 2, 2, False)
    again = run("import-git", repository, where)
    assert (again.status, "name another" in again.err) == (1, True)


def test_a_file_is_never_replaced(run: Run, repository: Path, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("mine")
    done = run("import-git", repository, tmp_path / "s.json")
    assert (done.status, "already exists" in done.err) == (2, True)
    assert (tmp_path / "s.json").read_text() == "mine"


def test_a_failed_import_leaves_nothing(run: Run, repository: Path, tmp_path: Path) -> None:
    done = run("import-git", repository, f"folder:{tmp_path}/s", "--branch", "none")
    assert (done.status, "there is no branch 'none'" in done.err) == (1, True)
    assert run("sessions", f"folder:{tmp_path}/s").out.count("project") == 0
    assert run("import-git", tmp_path, tmp_path / "s.json").status == 1
    assert not (tmp_path / "s.json").exists()


def test_an_import_that_fails_midway_leaves_nothing(run: Run, repository: Path, tmp_path: Path) -> None:
    tree = git(repository, "rev-parse", "main^{tree}").strip()
    for pack in list((repository / "objects/pack").glob("*.pack")):
        data = pack.read_bytes()
        for one in (pack, pack.with_suffix(".idx")):
            one.unlink()
        git(repository, "unpack-objects", "-q", given=data)
    (repository / "objects" / tree[:2] / tree[2:]).unlink()

    done = run("import-git", repository, f"folder:{tmp_path}/s")

    assert (done.status, "is missing" in done.err) == (1, True)
    assert "project" not in run("sessions", f"folder:{tmp_path}/s").out
