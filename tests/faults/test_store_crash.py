"""Processes that are killed during snapshots and compactions: everything that was reported is present and intact."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from tests.faults.crashing import in_a_child
from tests.faults.dying import Death, dying
from tests.faults.syscalls import Call, System
from tests.sampling import share, stride
from tests.snapshots.hosts import files_of, look, snapshot
from weakfs import HostFilesystem
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import FileTree, walk
from weakfs.session.blobs.blob import digest_of
from weakfs.snapshots import Scan, Store
from weakfs.snapshots.git import lock_files

TOP = Path(__file__).parents[2]

KILLS = share(30)

# The files by which git locks others.
LOCKS = [
    "packed-refs.lock",
    "packed-refs.new",
    "refs/weakfs/{first}.lock",
    "refs/weakfs-beside/{first}.lock",
    "objects/info/commit-graph.lock",
    "objects/info/commit-graphs/commit-graph-chain.lock",
]


def started(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.faults.storing", *map(str, arguments)]
    return subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True)


def make_root(root: Path) -> Path:
    for folder in range(4):
        (root / f"d{folder}").mkdir(parents=True)
        for file in range(8):
            (root / f"d{folder}" / f"f{file}").write_bytes(b"%d in %d" % (file, folder) * 300)
    return root


def read_whole(tree: FileTree) -> None:
    for _, node in walk(tree):
        if isinstance(node, tuple):
            assert digest_of(leaf.content_of(node)) == leaf.blob_digest(node)


@pytest.mark.slow
def test_nothing_that_was_reported_is_lost_by_a_kill(tmp_path: Path) -> None:
    root, store = make_root(tmp_path / "root"), Store(tmp_path / "store")
    random = Random(7)
    taken: dict[str, str] = {}
    killed_at_work = 0
    for seed in range(KILLS):
        process = started("churn", store.path, root, seed)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(random.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        lines = [first, *process.stdout.read().splitlines(keepends=True)]
        process.stdout.close()
        killed_at_work += process.wait() == -signal.SIGKILL
        for line in lines:
            # A kill may cut off the last line; then nothing was reported.
            if line.endswith("\n"):
                what, name, *fingerprint = line.split()
                if what == "took":
                    taken[name] = fingerprint[0]
                else:
                    taken.pop(name)
        reader = Store(store.path)
        there = {entry.snapshot_id: entry for entry in reader.list()}
        assert taken.keys() <= there.keys()
        # A snapshot that was recorded but not yet reported, or whose drop was reported but not yet done.
        taken = {name: taken.get(name, "") for name in there}
        for name, fingerprint_then in taken.items():
            tree = reader.tree(there[name])
            assert fingerprint_then in ("", tree.fingerprint)
            taken[name] = tree.fingerprint
            read_whole(tree)
    assert killed_at_work == KILLS
    store.compact()
    assert not [name for name in files_of(Path(store.path)) if "writing" in name]
    for entry in store.list():
        assert store.tree(entry).fingerprint == taken[entry.snapshot_id]
        read_whole(store.tree(entry))


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("work", ["snapshot", "compact"])
def test_a_kill_at_any_call_leaves_the_old_state_or_the_new_one(tmp_path: Path, when: str, work: str) -> None:
    root = make_root(tmp_path / "root")
    store = Store(tmp_path / "store")
    number = died = 0
    while number == 0 or died:
        if number == 0:
            known: Scan | None = None
            for count in range(3):
                (root / "d0" / f"new{count}").write_bytes(os.urandom(20_000))
                _, known = snapshot(store, root, f"s{count}", known)
        name = f"{when}-{number}"
        (root / "d0" / "changing").write_text(f"{work} {name}")
        if work == "compact":
            snapshot(store, root, name)
            snapshot(store, root, f"{name}-dropped")
            store.drop(f"{name}-dropped")
        before = {entry.snapshot_id: store.tree(entry).fingerprint for entry in store.list()}
        died = in_a_child(partial(die, store, root, name, when, work, number))
        reader = Store(store.path)
        after = {entry.snapshot_id: reader.tree(entry).fingerprint for entry in reader.list()}
        assert before.items() <= after.items()
        assert after.keys() - before.keys() <= {name}
        for entry in reader.list()[-2:]:
            read_whole(reader.tree(entry))
        for entry in reader.list()[3:]:
            reader.drop(entry.snapshot_id)
        if work == "compact":
            # Otherwise each attempt has more to do than the last one, and never finishes.
            reader.compact()
        number += stride()
    assert number > 15
    snapshot(store, root, "last")
    store.compact()
    assert len([name for name in files_of(Path(store.path)) if name.startswith("packs")]) == 1
    assert not [name for name in files_of(Path(store.path)) if "writing" in name]


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("kind", ["tree", "git", "tar"])
def test_a_kill_at_any_call_of_a_drop_or_a_compaction_leaves_all_other_snapshots(
    tmp_path: Path, kind: SnapshotKind
) -> None:
    root = make_root(tmp_path / "root")
    # The store that each attempt starts from.
    files = HostFilesystem(root, store=tmp_path / "whole", snapshots=kind)
    (root / "d0" / "only in the first").write_bytes(os.urandom(2000))
    files.snapshot("dropped")
    (root / "d0" / "only in the first").unlink()
    files.snapshot("kept")
    whole = {entry.tag: files.store.tree(entry).fingerprint for entry in files.store.list()}
    store = tmp_path / "store"
    moment, was_killed = 0, True
    while was_killed:
        shutil.copytree(tmp_path / "whole", store)

        def work(_: Callable[[str], None], moment: int = moment) -> None:
            own = Store(store)
            Death(moment).install()
            own.keep_last(1, drop_tagged=True)
            own.compact()

        _, was_killed = dying(work)
        after = Store(store)
        there = {entry.tag: after.tree(entry) for entry in after.list()}
        assert {"kept"} <= there.keys() <= whole.keys()
        for tag, tree in there.items():
            assert tree.fingerprint == whole[tag]
            read_whole(tree)
        after.keep_last(1, drop_tagged=True)
        after.compact()
        (left,) = after.list()
        read_whole(after.tree(left))
        assert len(after.git.refs() if kind == "git" else [left]) == 1
        assert not [name for name in files_of(store) if "writing" in name]
        shutil.rmtree(store)
        moment += stride()
    assert moment > 10


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
def test_git_that_outlives_a_killed_compaction_keeps_the_store_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_root(tmp_path / "root")
    store = HostFilesystem(root, store=tmp_path / "store", snapshots="git").store
    HostFilesystem(root, store=store, snapshots="git").snapshot()
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    for fifo in (begun, ended):
        os.mkfifo(fifo)
    command = tmp_path / "bin" / "git"
    command.parent.mkdir()
    waiting = f'case " $* " in *" gc "*) echo > {begun}; read -r _ < {ended};; esac'
    command.write_text(f'#!/bin/sh\n{waiting}\nexec {shutil.which("git")} "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    child = os.fork()
    if not child:
        try:
            Store(store.path).compact()
        finally:
            os._exit(1)
    begun.read_text()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with open(Path(store.path) / "lock") as lock:
        # What git is about to remove must not be used for a new snapshot.
        try:
            with pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        finally:
            ended.write_text("\n")
        fcntl.flock(lock, fcntl.LOCK_SH)


def die(store: Store, root: Path, name: str, when: str, work: str, number: int) -> None:
    """Do the work, and be killed at one of its system calls."""

    def kill(call: Call) -> None:
        if call.number == number:
            os.kill(os.getpid(), signal.SIGKILL)

    fresh = Store(store.path)
    known = fresh.as_scan(fresh.list()[0])
    system = System(at_once=5000)
    setattr(system, when, kill)
    with system.in_force():
        if work == "compact":
            fresh.compact()
        else:
            with fresh.writer() as writer:
                seen = look(root, known, writer)
                writer.commit(seen, snapshot_id=name, created_ns=0)


def test_the_contents_are_on_the_disk_before_the_snapshot_is_recorded(tmp_path: Path) -> None:
    """What a power failure needs: the order of syncs and names."""
    root, store = make_root(tmp_path / "root"), Store(tmp_path / "store")
    snapshot(store, root, "first")
    (root / "d0" / "new").write_bytes(b"new")
    with System().in_force() as system:
        snapshot(store, root, "second")
    calls = [(call.name, call.arguments) for call in system.calls]
    names = [name for name, _ in calls]
    renamed, linked = names.index("rename"), names.index("link")
    synced = [number for number, name in enumerate(names) if name == "fsync"]
    written = max(number for number, name in enumerate(names) if name == "write")
    # The entry's bytes, the pack's bytes, its name; then the entry's name.
    assert written < renamed < linked
    assert len([number for number in synced if number < renamed]) == 2
    assert len([number for number in synced if renamed < number < linked]) == 1
    assert len([number for number in synced if number > linked]) == 1


def test_a_compaction_removes_the_old_packs_once_the_new_one_is_on_the_disk(tmp_path: Path) -> None:
    root, store = make_root(tmp_path / "root"), Store(tmp_path / "store")
    for number in range(2):
        (root / "d0" / "new").write_bytes(os.urandom(10))
        snapshot(store, root, f"s{number}")
    store.drop("s0")
    with System().in_force() as system:
        store.compact()
    calls = [(call.name, str(call.arguments[0])) for call in system.calls]
    removed = next(at for at, (name, path) in enumerate(calls) if name == "unlink" and path.endswith(".pack"))
    renames = [at for at, (name, _) in enumerate(calls) if name == "rename"]
    syncs = [at for at, (name, _) in enumerate(calls) if name == "fsync"]
    # The new pack, and then the store's new id, each synced before and after it is renamed into place.
    assert len(renames) == 2
    assert syncs[0] < renames[0] < syncs[1] < syncs[2] < renames[1] < syncs[3] < removed


@pytest.mark.slow
def test_several_processes_take_snapshots_concurrently(tmp_path: Path) -> None:
    root, store = make_root(tmp_path / "root"), Store(tmp_path / "store")
    processes = [started("snapshot", store.path, root, 5) for _ in range(share(8))]
    told = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * share(8)
    taken = dict(line.split()[1:] for text in told for line in text.splitlines())
    assert {entry.snapshot_id: store.tree(entry).fingerprint for entry in store.list()} == taken
    assert len(taken) == 5 * share(8)
    store.compact()
    for entry in store.list()[::7]:
        read_whole(store.tree(entry))


@pytest.mark.exhaustive
def test_snapshots_and_compactions_of_several_processes_can_overlap(tmp_path: Path) -> None:
    roots = [make_root(tmp_path / f"root{number}") for number in range(3)]
    store = Store(tmp_path / "store")
    processes = [started("churn", store.path, root, number) for number, root in enumerate(roots)]
    # Each has taken a snapshot, and is working on the next.
    first = [process.stdout.readline() for process in processes if process.stdout is not None]
    reader = Store(store.path)
    for _ in range(20):
        for entry in reader.list()[-3:]:
            # It may be dropped and compacted away while we look, but never be there in part.
            try:
                read_whole(reader.tree(entry))
            except LookupError:
                continue
            except ValueError:
                assert entry.snapshot_id not in {left.snapshot_id for left in reader.list()}
    for process in processes:
        process.send_signal(signal.SIGKILL)
    for process in processes:
        process.communicate()
    # Two may choose the same snapshot to drop; then one of them has failed with an error that names it, and the others
    # continued.
    assert all(line.startswith("took") for line in first)
    for entry in reader.list():
        read_whole(Store(store.path).tree(entry))


@pytest.mark.slow
def test_a_git_snapshot_is_on_the_disk_when_it_is_reported(tmp_path: Path) -> None:
    """Git syncs objects and refs, but no directory, and no file of a new repository."""
    root, folder = make_root(tmp_path / "root"), tmp_path / "store" / "git"
    files = HostFilesystem(root, store=tmp_path / "store", snapshots="git")

    def note_inode(call: Call) -> None:
        if call.name == "fsync":
            synced.add(os.fstat(call.arguments[0]).st_ino)

    synced = set[int]()
    with System(before=note_inode).in_force():
        files.snapshot()
    made = [folder, *folder.rglob("*")]
    assert [path for path in made if path.is_dir() and path.stat().st_ino not in synced] == []
    assert {(folder / name).stat().st_ino for name in ("HEAD", "config")} <= synced

    (root / "d0" / "new").write_bytes(b"new")
    synced.clear()
    with System(before=note_inode).in_force():
        files.snapshot()
    assert {(folder / name).stat().st_ino for name in ("objects/pack", "refs/weakfs")} <= synced

    synced.clear()
    with System(before=note_inode).in_force():
        files.store.compact()
    assert {path.stat().st_ino for path in (folder, folder / "objects/pack")} <= synced
    assert files.store.verify() == {}


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
@pytest.mark.parametrize("age", [3600, -3600])
@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_a_killed_git_has_left_behind_stops_nothing(tmp_path: Path, name: str, age: int) -> None:
    root, folder = make_root(tmp_path / "root"), tmp_path / "store" / "git"
    files = HostFilesystem(root, store=tmp_path / "store", snapshots="git")
    first = files.snapshot()
    (root / "d0" / "new").write_text("new")
    second = files.snapshot()
    lock = folder / name.format(first=quote(first.snapshot_id, safe=""))
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_bytes(b"")
    then = time.time() - age
    os.utime(lock, (then, then))

    files.store.drop(first.snapshot_id)
    third = files.snapshot()
    files.store.compact()

    assert not lock.exists()
    assert [one.snapshot_id for one in files.store.list()] == [second.snapshot_id, third.snapshot_id]
    assert files.store.verify() == {}


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
def test_locks_are_not_removed_while_another_git_of_ours_is_at_work_or_while_they_are_young(tmp_path: Path) -> None:
    root, folder = make_root(tmp_path / "root"), tmp_path / "store" / "git"
    files = HostFilesystem(root, store=tmp_path / "store", snapshots="git")
    files.snapshot()
    lock = folder / "objects" / "info" / "commit-graph.lock"
    lock.write_bytes(b"")
    os.utime(lock, (0, 0))
    with open(tmp_path / "store" / "git-lock") as in_use:
        fcntl.flock(in_use, fcntl.LOCK_SH)
        files.snapshot()
        assert lock.exists()
    os.utime(lock)
    files.snapshot()
    assert lock.exists()
    os.utime(lock, (0, 0))
    files.snapshot()
    assert not lock.exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
@pytest.mark.parametrize("is_dead", [True, False])
def test_a_compaction_waits_for_a_young_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_dead: bool) -> None:
    files = HostFilesystem(make_root(tmp_path / "root"), store=tmp_path / "store", snapshots="git")
    files.snapshot()
    lock = tmp_path / "store" / "git" / "objects" / "info" / "commit-graph.lock"
    lock.write_bytes(b"")

    def time_passes(_: float) -> None:
        if is_dead:
            os.utime(lock, (0, 0))
        else:
            lock.unlink()

    monkeypatch.setattr(lock_files, "time", SimpleNamespace(time=time.time, monotonic=lambda: 0, sleep=time_passes))
    files.store.compact()

    assert not lock.exists()
    assert files.store.verify() == {}
