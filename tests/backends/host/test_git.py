"""Snapshots of kind git: they are ordinary commits, and exact."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.backends.host.gits import CLEAN, damage, fill, fill_with_what_git_refuses, git, in_repository, state
from tests.snapshots.hosts import model
from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.reducers import ExternalFsSnapshot
from weakfs.session import UnknownSnapshot
from weakfs.snapshots.git.reserved_names import is_refused

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, store=tmp_path / "store", snapshots="git")


def test_a_snapshot_is_a_commit_whose_tree_has_the_digest_of_the_files(fs: HostFilesystem, root: Path) -> None:
    fill(root)
    snapshot = fs.snapshot("before")
    assert snapshot.kind == "git"
    assert snapshot.git_dir == fs.store.git.path
    assert git(fs, "rev-parse", f"{snapshot.ref}^{{tree}}").strip() == fs.tree().digest == model(root).digest
    assert git(fs, "fsck", "--strict", "--full") == ""
    assert git(fs, "show", f"{snapshot.ref}:src/c.py") == "y = 2\n"
    message = git(fs, "log", "--format=%an %cn %B", snapshot.ref)
    assert message.startswith("weakfs weakfs snapshot ")
    assert snapshot.snapshot_id in message
    assert "tag: before" in message


def test_git_agrees_on_the_files(fs: HostFilesystem, root: Path, tmp_path: Path) -> None:
    fill(root)
    snapshot = fs.snapshot()
    env = {**CLEAN, "GIT_DIR": str(tmp_path / "other"), "GIT_WORK_TREE": str(root), "GIT_CONFIG_GLOBAL": os.devnull}

    def other(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], env=env, check=True, capture_output=True, text=True).stdout.strip()

    other("init", "--quiet", "--object-format=sha256")
    (tmp_path / "other/info").mkdir(exist_ok=True)
    (tmp_path / "other/info/attributes").write_text("* -text -eol -filter -ident -working-tree-encoding\n")
    other("add", "--all", "--force")
    assert other("write-tree") == git(fs, "rev-parse", f"{snapshot.ref}^{{tree}}").strip()


CHANGES = {
    "a_file_becomes_a_directory": ("rm a.txt", "mkdir a.txt", "echo x > a.txt/x"),
    "a_directory_becomes_a_file": ("rm -r src", "echo x > src"),
    "a_directory_becomes_a_link": ("mv src other", "ln -s other src"),
    "a_file_becomes_a_link": ("rm a.txt", "ln -s run.sh a.txt"),
    "a_file_becomes_a_fifo": ("rm a.txt", "mkfifo a.txt"),
    "a_directory_becomes_empty": ("rm -r src/deep/er/*",),
    "a_file_becomes_a_program": ("chmod +x a.txt",),
    "only_bits_that_git_does_not_have_change": ("chmod 600 a.txt",),
    "everything_goes": ("rm -rf * .git*",),
    "a_directory_moves": ("mv src/deep elsewhere",),
    "a_file_becomes_a_repository": ("mv src .git",),
    "odd_names_change": ("echo x > 'new\nline'", "rm '\"quoted'", "echo y > '\"\n'"),
    "nothing": (),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_later_snapshot_is_stored_as_a_difference_and_is_complete(
    fs: HostFilesystem, root: Path, change: str
) -> None:
    fill(root)
    first = fs.snapshot()
    before = state(root)
    for command in CHANGES[change]:
        subprocess.run(["sh", "-ec", command], cwd=root, check=True)
    held = model(root)
    second = fs.snapshot()
    after = state(root)
    if change != "a_file_becomes_a_repository":
        assert git(fs, "rev-parse", f"{second.ref}^{{tree}}").strip() == held.digest
    assert git(fs, "fsck", "--strict", "--full") == ""
    fs.restore(first)
    assert state(root) == before
    fs.restore(second)
    assert state(root) == after


def test_entries_that_git_cannot_store_are_restored_as_well(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    snapshot = fs.snapshot()
    assert git(fs, "fsck", "--strict", "--full") == ""
    names = git(fs, "ls-tree", "-r", "-z", "--name-only", snapshot.ref).split("\0")
    assert "private/key" in names
    assert "vendor/lib/kept.c" in names
    assert not any(is_refused(part) for name in names for part in name.split("/"))
    damage(root)
    fs.restore(snapshot)
    assert state(root) == before


def test_a_nested_repository_is_restored_to_before_its_later_commits(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    nested = root / "vendor/lib"
    before = state(root)
    snapshot = fs.snapshot()
    (nested / "kept.c").write_bytes(b"int y;\n")
    in_repository(nested, "commit", "--quiet", "--all", "--message=two")
    in_repository(nested, "gc", "--quiet")
    fs.restore(snapshot)
    assert state(root) == before
    in_repository(nested, "fsck", "--strict")
    in_repository(nested, "diff", "--quiet", "HEAD")


def test_compaction_keeps_only_objects_that_the_remaining_snapshots_need(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    kept = fs.snapshot()
    (root / "large.bin").write_bytes(os.urandom(3 << 20))
    dropped = fs.snapshot()
    (account,) = (one for one in fs.store.account() if one.snapshot.snapshot_id == dropped.snapshot_id)
    assert 3 << 20 < account.frees < 4 << 20
    damage(root)
    size = fs.store.disk_size()
    fs.store.drop(dropped.snapshot_id)
    fs.store.compact()
    assert fs.store.disk_size() < size - (2 << 20)
    assert git(fs, "log", "--all", "--format=%H").split() == [
        commit for _, commit in fs.store.git.refs().items() if commit in git(fs, "log", "--all", "--format=%H")
    ]
    with pytest.raises(UnknownSnapshot):
        fs.store.get(dropped.snapshot_id)
    again = HostFilesystem(root, store=fs.store.path, snapshots="git")
    again.restore(kept)
    assert state(root) == before
    later = again.snapshot()
    assert git(again, "fsck", "--strict", "--full") == ""
    assert git(again, "rev-parse", f"{later.ref}^{{tree}}") == git(again, "rev-parse", f"{kept.ref}^{{tree}}")


def test_contents_that_are_in_use_survive_a_compaction(fs: HostFilesystem, root: Path) -> None:
    fill(root)
    snapshot = fs.snapshot()
    (root / "a.txt").write_bytes(b"seen, and then changed\n")
    fs.tree()
    fs.store.drop(snapshot.snapshot_id)
    fs.compact()
    before = model(root).fingerprint
    damage(root)
    fs.restore(snapshot)
    assert (root / "a.txt").read_bytes() == b"text\n"
    assert model(root).fingerprint != before


def test_running_git_gc_loses_nothing(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    snapshot = fs.snapshot()
    git(fs, "gc", "--quiet", "--prune=now", "--aggressive")
    damage(root)
    HostFilesystem(root, store=fs.store.path, snapshots="git").restore(snapshot)
    assert state(root) == before


def test_large_files_are_restored(fs: HostFilesystem, root: Path) -> None:
    content = os.urandom(1 << 20) * 9 + b"end"
    (root / "large.bin").write_bytes(content)
    snapshot = fs.snapshot()
    (root / "large.bin").unlink()
    fs.restore(snapshot)
    assert (root / "large.bin").read_bytes() == content


def test_a_snapshot_is_restored_by_another_process_that_loads_the_session(root: Path, tmp_path: Path) -> None:
    fill_with_what_git_refuses(root)
    before = state(root)
    session = Session()
    HostFilesystem(root, session=session, store=tmp_path / "store", snapshots="git").snapshot("tagged")
    session.save(tmp_path / "session.json")
    damage(root)
    loaded = Session.load(tmp_path / "session.json")
    taken = loaded[ExternalFsSnapshot].latest()
    assert taken is not None
    assert (taken.kind, taken.tag, taken.git_dir) == ("git", "tagged", str(tmp_path / "store/git"))
    fs = HostFilesystem(root, session=loaded, store=tmp_path / "store")
    assert fs.restore(taken, dry_run=True).changed > 10
    fs.restore(taken)
    assert state(root) == before


def test_a_snapshot_is_restored_into_memory(fs: HostFilesystem, root: Path) -> None:
    fill_with_what_git_refuses(root)
    snapshot = fs.snapshot()
    memory = InMemoryFilesystem()
    memory.restore(snapshot, foreign=True)
    assert memory.tree().fingerprint == model(root).fingerprint
    assert memory.read("/dir/.git").content == "gitdir: of dir/.git\n"


def test_a_dropped_snapshot_is_named_in_the_error(fs: HostFilesystem, root: Path) -> None:
    fs.snapshot()
    taken = fs.session[ExternalFsSnapshot].latest()
    assert taken is not None
    fs.store.drop(taken.snapshot_id)
    # Another session has not seen the files itself.
    with pytest.raises(UnknownSnapshot, match=r"dropped or never taken"):
        HostFilesystem(root, store=fs.store.path).restore(taken)
