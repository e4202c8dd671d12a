"""Snapshots of directories that contain git repositories: git's files are files like any others."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.models.host import assert_restored, record
from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.backends.host.snapshot_kinds import SnapshotKind

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
kinds = pytest.mark.parametrize("kind", ["tree", "git", "tar"])


def git(folder: Path, *arguments: str) -> str:
    """Run git without the user's configuration."""
    settings = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "gc.auto=0")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *settings, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def commit(folder: Path, words: str) -> str:
    """Commit a change, and return the commit."""
    (folder / "file.txt").write_text(words)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", words)
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create a repository inside a repository inside a repository, each with ignored files."""
    root = tmp_path / "root"
    for folder in (root, root / "vendor" / "inner", root / "vendor" / "inner" / "innermost"):
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")
        (folder / ".gitignore").write_text("*.log\nbuild/\n")
        (folder / ".gitattributes").write_text("* text=auto eol=crlf ident\n")
        (folder / "noise.log").write_text("ignored")
        (folder / "build" / "empty").mkdir(parents=True)
        (folder / "windows.txt").write_bytes(b"a\r\nb\n$Id$\n")
    for folder in (root / "vendor" / "inner" / "innermost", root / "vendor" / "inner", root):
        commit(folder, "one")
    return root


@kinds
def test_commits_made_after_the_snapshot_are_gone_and_repositories_are_whole(
    tmp_path: Path, root: Path, kind: SnapshotKind
) -> None:
    inner = root / "vendor" / "inner"
    fs = HostFilesystem(root, session=Session(), store=tmp_path / "store", snapshots=kind)
    heads = [git(folder, "rev-parse", "HEAD") for folder in (root, inner)]
    states = [git(folder, "status", "--porcelain", "--ignored") for folder in (root, inner)]
    before = record(root)
    snapshot = fs.snapshot()
    for folder in (inner, root):
        commit(folder, "two")
        git(folder, "checkout", "-q", "-b", "other")
        commit(folder, "three")
        git(folder, "pack-refs", "--all")
    git(root, "gc", "-q", "--prune=now")
    git(inner, "stash", "list")
    (inner / "noise.log").write_text("changed and ignored")
    shutil.rmtree(root / "build")
    shutil.rmtree(inner / "innermost" / ".git")
    between = record(root)

    fs.restore(snapshot)

    assert_restored(before, between, record(root))
    assert [git(folder, "rev-parse", "HEAD") for folder in (root, inner)] == heads
    assert [git(folder, "status", "--porcelain", "--ignored") for folder in (root, inner)] == states
    for folder in (root, inner, inner / "innermost"):
        git(folder, "fsck", "--strict")
        assert git(folder, "branch", "--format=%(refname:short)").split() == ["main"]


@kinds
def test_a_created_repository_and_a_removed_one_are_both_undone(tmp_path: Path, root: Path, kind: SnapshotKind) -> None:
    fs = HostFilesystem(root, session=Session(), store=tmp_path / "store", snapshots=kind)
    before = record(root)
    snapshot = fs.snapshot()
    shutil.rmtree(root / "vendor" / "inner" / ".git")
    (root / "vendor" / "inner" / ".git").write_text("gitdir: ../../.git\n")
    (root / "made").mkdir()
    git(root / "made", "init", "-q")
    commit(root / "made", "new")
    shutil.rmtree(root / ".git" / "objects")
    between = record(root)
    after_first = fs.snapshot()

    fs.restore(snapshot)
    assert_restored(before, between, record(root))
    git(root, "fsck", "--strict")
    changed = record(root)
    fs.restore(after_first)

    assert_restored(between, changed, record(root))


@kinds
def test_permission_bits_and_time_of_the_root_are_restored(tmp_path: Path, kind: SnapshotKind) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("a")
    root.chmod(0o2751)
    os.utime(root, ns=(5, 1_000_000_007))
    before = record(root)
    fs = HostFilesystem(root, session=Session(), store=tmp_path / "store", snapshots=kind)
    snapshot = fs.snapshot()
    root.chmod(0o700)
    (root / "file").unlink()
    between = record(root)

    fs.restore(snapshot)

    assert_restored(before, between, record(root))
