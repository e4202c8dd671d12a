"""A disk that is really full during snapshots into a repository: the old ones stay intact, and nothing is left over."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path
from threading import Thread

import pytest

from weakfs.backends import HostFilesystem
from weakfs.snapshots import StoreUnwritable

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")


def check(fs: HostFilesystem) -> None:
    command = ["git", "--git-dir", fs.store.git.path, "fsck", "--strict", "--full"]
    subprocess.run(command, env=CLEAN, capture_output=True, check=True)
    assert os.listdir(fs.store.git.imports) == []


@pytest.mark.slow
def test_a_full_disk_at_any_moment_leaves_the_old_snapshots_intact(small_disk: Path, tmp_path: Path) -> None:
    root, ballast = tmp_path / "root", small_disk / "ballast"
    root.mkdir()
    (root / "a.txt").write_text("first")
    fs = HostFilesystem(root, store=small_disk / "store", snapshots="git")
    first = fs.snapshot()
    (root / "a.txt").write_bytes(os.urandom(40_000))
    refusals: set[int | None] = set()
    told: list[str] = []
    taken = 0
    for left in range(0, 40, 2):
        ballast.write_bytes(bytes(4096 * (os.statvfs(small_disk).f_bavail - left)))
        try:
            HostFilesystem(root, store=fs.store.path, snapshots="git").snapshot()
            taken += 1
        except StoreUnwritable as error:
            refusals.add(error.errno)
            told.append(str(error))
        finally:
            ballast.unlink()
        check(fs)
        listed = fs.store.list()
        assert len(listed) == taken + 1
        assert set(fs.store.git.refs().values()) == {entry.extra["commit"] for entry in listed}
        for entry in listed[1:]:
            fs.store.drop(entry.snapshot_id)
        taken = 0
        fs.store.compact()
    assert refusals == {errno.ENOSPC}
    assert all(str(small_disk) in text and "free some space" in text for text in told)
    fs.restore(first)
    assert (root / "a.txt").read_text() == "first"


@pytest.mark.exhaustive
def test_concurrent_compactions_and_snapshots_lose_nothing(tmp_path: Path) -> None:
    roots = [tmp_path / f"root{number}" for number in range(3)]
    for root in roots:
        root.mkdir()
        for number in range(20):
            (root / f"{number}.txt").write_text(f"{root.name} {number}\n" * 50)
    failures: list[BaseException] = []

    def churn(root: Path) -> None:
        try:
            fs = HostFilesystem(root, store=tmp_path / "store", snapshots="git")
            for turn in range(6):
                fs.write("/turn.txt", f"{root.name} {turn}")
                snapshot = fs.snapshot()
                fs.delete("/3.txt")
                fs.restore(snapshot)
                assert fs.read("/3.txt").content == f"{root.name} 3\n" * 50
                if turn % 2:
                    fs.store.drop(snapshot.snapshot_id)
                    fs.compact()
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=churn, args=(root,)) for root in roots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    fs = HostFilesystem(roots[0], store=tmp_path / "store", snapshots="git")
    check(fs)
    assert len(fs.store.list()) == 9
    for entry in fs.store.list():
        memory = fs.store.tree(entry)
        assert memory.file_count == 21
