"""Snapshots of kind git: several at the same time, and failures."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from errno import EDQUOT
from pathlib import Path
from typing import Any

import pytest

from tests.backends.host.gits import damage, fill, git, state
from tests.sampling import share
from weakfs.backends import HostFilesystem
from weakfs.reducers import FileTree
from weakfs.snapshots import Store
from weakfs.snapshots.git import GitUnavailable, command

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, store=tmp_path / "store", snapshots="git")


def test_eight_threads_take_snapshots_concurrently(tmp_path: Path) -> None:
    store = tmp_path / "store"
    roots = []
    for number in range(8):
        roots.append(tmp_path / f"root{number}")
        roots[-1].mkdir()
        fill(roots[-1])
        (roots[-1] / "own").write_text(str(number))
    filesystems = [HostFilesystem(root, store=store, snapshots="git") for root in roots]
    with ThreadPoolExecutor(8) as pool:
        snapshots = list(pool.map(lambda fs: [fs.snapshot() for _ in range(3)], filesystems))
    assert git(filesystems[0], "fsck", "--strict", "--full") == ""
    assert len(filesystems[0].store.list()) == 24
    for root, fs, taken in zip(roots, filesystems, snapshots, strict=True):
        before = state(root)
        damage(root)
        fs.restore(taken[-1])
        assert state(root) == before


def entries(tree: FileTree) -> dict[str, Any]:
    return dict(tree.children)


SCRIPT = """
import sys
from weakfs.backends import HostFilesystem
from weakfs import Session
root, store, number = sys.argv[1:]
# All of one id: they contend for the ids of snapshots as well.
fs = HostFilesystem(root, session=Session(session_id="same"), store=store, snapshots="git")
for turn in range(int(number)):
    fs.write("/turn.txt", str(turn) * 1000)
    print(fs.snapshot().snapshot_id, flush=True)
"""


def start(root: Path, store: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, str(root), str(store), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_several_processes_take_snapshots_concurrently(tmp_path: Path) -> None:
    roots = [tmp_path / f"root{number}" for number in range(share(8))]
    for root in roots:
        root.mkdir()
        fill(root)
        (root / "own").write_text(root.name)
    running = [start(root, tmp_path / "store", 2) for root in roots]
    said = [process.communicate()[0].split() for process in running]
    assert all(process.returncode == 0 for process in running)
    store = Store(tmp_path / "store")
    assert len({snapshot_id for ids in said for snapshot_id in ids}) == 2 * len(roots) == len(store.list())
    for root, ids in zip(roots, said, strict=True):
        for snapshot_id in ids:
            stored = store.get(snapshot_id)
            assert stored.extra["commit"] in store.git.refs().values()
            assert entries(store.tree(stored))["own"][0].join() == root.name.encode()


def test_a_permanently_locked_ref_is_named_however_long_its_path_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "OPTIONS", (*command.OPTIONS, "-c", "core.filesRefLockTimeout=0"))
    root = tmp_path / "root"
    fill(root)
    fs = HostFilesystem(root, store=tmp_path / ("s" * 250) / ("t" * 250) / "store", snapshots="git")
    fs.snapshot()
    repository = fs.store.git
    name, commit = next(iter(repository.refs().items()))
    Path(repository.path, f"{name}.lock").touch()
    with pytest.raises(FileExistsError, match="that name is taken"):
        repository.add_refs({name: commit})


def wait_for_the_last_of_its_programs(imports: str) -> None:
    """Wait for the `git fast-import` of a killed process: it holds a lock until it notices the kill."""
    for name in os.listdir(imports):
        if not name.endswith(".git"):
            with suppress(FileNotFoundError), open(os.path.join(imports, name), "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_kill_loses_no_snapshot_that_was_reported(root: Path, tmp_path: Path, delay: float) -> None:
    fill(root)
    # More snapshots than can be reported through the pipe: the process does not end by itself.
    process = start(root, tmp_path / "store", 1_000_000)
    assert process.stdout is not None
    reported = [process.stdout.readline().strip()]
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(delay or 0.001)
    process.kill()
    reported += process.communicate()[0].split("\n")[:-1]
    fs = HostFilesystem(root, store=tmp_path / "store", snapshots="git")
    wait_for_the_last_of_its_programs(fs.store.git.imports)
    fs.store.compact()
    for turn, snapshot_id in enumerate(reported):
        leaf = entries(fs.store.tree(fs.store.get(snapshot_id)))["turn.txt"]
        assert leaf[0].join() == str(turn).encode() * 1000
    assert os.listdir(fs.store.git.imports) == []
    assert git(fs, "fsck", "--strict", "--full") == ""


def test_leftovers_of_a_broken_snapshot_are_removed(fs: HostFilesystem, root: Path) -> None:
    fill(root)
    fs.snapshot()
    (root / "new.bin").write_bytes(os.urandom(1 << 20))
    with pytest.raises(RuntimeError), fs.store.git_writer() as sink:
        sink.add(os.urandom(1 << 21))
        assert os.listdir(fs.store.git.imports) != []
        raise RuntimeError
    assert os.listdir(fs.store.git.imports) == []
    assert git(fs, "fsck", "--strict", "--full") == ""


def test_a_snapshot_that_does_not_fit_is_refused_and_the_others_stay_intact(root: Path, tmp_path: Path) -> None:
    fs = HostFilesystem(root, store=Store(tmp_path / "store", max_bytes=4 << 20), snapshots="git")
    fill(root)
    before = state(root)
    kept = fs.snapshot()
    (root / "large.bin").write_bytes(os.urandom(8 << 20))
    with pytest.raises(OSError, match="drop snapshots and compact it") as caught:
        fs.snapshot()
    assert caught.value.errno == EDQUOT
    assert [entry.snapshot_id for entry in fs.store.list()] == [kept.snapshot_id]
    assert len(fs.store.git.refs()) == 1
    (root / "large.bin").unlink()
    damage(root)
    fs.restore(kept)
    assert state(root) == before


def test_without_git_the_error_says_so(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = HostFilesystem(root, store=tmp_path / "store", snapshots="git")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitUnavailable, match=r"no executable git .* install git 2.29 or newer, or .*snapshots='tree'"):
        fs.snapshot()
    assert HostFilesystem(root, store=tmp_path / "store").snapshot().kind == "tree"


def test_a_git_without_sha256_support_is_reported(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo git version 2.11.0 && exit\n'
        'echo "error: unknown option \\`object-format=sha256\'" >&2\nexit 129\n'
    )
    (tmp_path / "git").chmod(0o755)
    fs = HostFilesystem(root, store=tmp_path / "store", snapshots="git")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(GitUnavailable, match=r"git version 2\.11\.0 cannot create .* SHA-256 .* install git 2\.29"):
        fs.snapshot()
