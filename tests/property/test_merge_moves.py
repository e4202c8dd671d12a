"""Merges of random edits, moves, copies and deletions on two sides: their algebra, and a comparison with git."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from attrs import define

from tests.models.git_merges import Files, GitMerges
from tests.models.random_worker import Worker, text
from tests.models.two_sides import check_history
from tests.sampling import is_exhaustive
from weakfs import InMemoryFilesystem, MergeConflict, Session
from weakfs.filesystem import Filesystem
from weakfs.reducers import FileTree, diff
from weakfs.reducers.merging import file_merge
from weakfs.reducers.merging.tree_merge import merge_by_path
from weakfs.session.conflicts.conflict_types import ConflictEntry


@define
class Case:
    """Two sides that are to be merged."""

    session: Session
    fs: InMemoryFilesystem
    fork: Session
    base: Filesystem
    workers: tuple[Worker, Worker]

    @property
    def notes(self) -> set[str]:
        return self.workers[0].notes | self.workers[1].notes

    @property
    def sides(self) -> tuple[Filesystem, Filesystem]:
        return self.workers[0].fs, self.workers[1].fs


def case(seed: int, most: int = 3, *, swapped: bool = False) -> Case:
    """Make files, and two sides that change them; `swapped` exchanges what the sides do."""
    random = Random(seed)
    session = Session(session_id="s", clock=lambda: 0)
    fs = InMemoryFilesystem(session)
    for directory in ("/src", "/src/lib", "/docs", ""):
        for _ in range(random.randint(1, 3)):
            fs.write(f"{directory}/{random.choice('abcdefgh')}", text(random))
    fork, base = session.fork(), session.fork()
    before = frozenset(entry.path for entry in fs.walk())
    places: list[Filesystem] = [fs, fs.bind(fork)]
    if swapped:
        places.reverse()
    one, other = (
        Worker(name, Random(f"{seed} {name}"), place, before) for name, place in zip("ot", places, strict=True)
    )
    for worker in (one, other):
        worker.work(random.randint(1, most))
    return Case(session, fs, fork, fs.bind(base), (other, one) if swapped else (one, other))


def outcome(made: Case) -> str | set[tuple[str, frozenset[str]]]:
    """Merge, and return the digest, or the kind and paths of each conflict."""
    try:
        made.session.merge(made.fork)
    except MergeConflict as conflict:
        return {(entry.kind, frozenset(entry.paths)) for entry in conflict.conflicts}
    return made.fs.tree().fingerprint


@pytest.mark.parametrize("seed", range(300))
def test_a_merge_is_the_same_from_either_side(seed: int) -> None:
    here, there = outcome(case(seed)), outcome(case(seed, swapped=True))
    assert isinstance(here, str) == isinstance(there, str)
    if isinstance(here, str):
        assert here == there


@pytest.mark.parametrize("seed", range(300))
def test_moves_matter_only_if_both_sides_changed_an_entry(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = outcome(case(seed))
    by_path = merge_by_path
    monkeypatch.setattr(file_merge, "merge_by_path", lambda *trees: (by_path(*trees)[0], True))
    assert outcome(case(seed)) == quick


@pytest.mark.parametrize("seed", range(200))
def test_ours_and_theirs_are_exchanged_if_the_sides_are(seed: int) -> None:
    here, there = case(seed), case(seed, swapped=True)
    here.session.merge(here.fork, on_conflict="ours")
    there.session.merge(there.fork, on_conflict="theirs")
    assert not diff(here.fs.tree(), there.fs.tree())


@pytest.mark.parametrize("seed", range(100))
def test_merging_with_an_unchanged_side_gives_the_other(seed: int) -> None:
    random = Random(seed)
    made = case(seed)
    base = made.session.fork()
    idle = made.session.fork()
    worker = Worker("x", random, made.fs.bind(base), frozenset())
    worker.work(4)
    wanted = worker.fs.tree()
    made.session.merge(base)
    assert made.fs.tree().fingerprint == wanted.fingerprint
    made.session.merge(idle)
    assert made.fs.tree().fingerprint == wanted.fingerprint


@pytest.mark.parametrize("seed", range(200))
def test_every_resolution_leaves_no_conflict_and_a_replayable_history(seed: int, tmp_path: Path) -> None:
    for number, on_conflict in enumerate(("ours", "theirs")):
        made = case(seed, 6)
        before = [fs.tree() for fs in made.sides]
        report = made.session.merge(made.fork, on_conflict=on_conflict, preview=True)  # type: ignore[call-overload]
        assert [fs.tree() for fs in made.sides] == before
        made.session.merge(made.fork, on_conflict=on_conflict)  # type: ignore[call-overload]
        assert report.conflicts == ()
        changes = file_merge.changes(before[0], made.fs.tree())
        assert list(report.changes) == changes
        check_history(made.session, tmp_path / f"{number}.json")


@pytest.mark.parametrize("seed", range(150))
def test_merges_of_merges_can_be_replayed(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    made = case(seed, 2)
    forks = [made.fork]
    for round_ in range(5):
        fork = random.choice(forks)
        Worker(f"f{round_}", random, made.fs.bind(fork), frozenset()).work(1)
        Worker(f"s{round_}", random, made.fs, frozenset()).work(1)
        if random.random() < 0.5:
            forks.append(made.session.fork())
        inner = fork.fork()
        Worker(f"i{round_}", random, made.fs.bind(inner), frozenset()).work(1)
        fork.merge(inner, on_conflict=random.choice(("ours", "theirs")))
        made.session.merge(fork, on_conflict=random.choice(("ours", "theirs")))
    check_history(made.session, tmp_path / "s.json")
    again = made.session.replayed()[FileTree].latest()
    assert again is not None
    assert again.fingerprint == made.fs.tree().fingerprint


# Git


def files_of(fs: Filesystem) -> Files:
    return {
        entry.path: (fs.stat(entry.path).mode, fs.read_bytes(entry.path).content)
        for entry in fs.walk()
        if not entry.is_directory
    }


def contents(files: Files) -> Counter[tuple[int, bytes]]:
    return Counter(files.values())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_everything_that_git_merges_is_merged_to_the_same_files(tmp_path: Path) -> None:
    """Where git merges cleanly, so do we, with the same files, except in the cases of docs/explanation/merging.md."""
    count = 2000 if is_exhaustive() else 150
    git = GitMerges(tmp_path / "git")
    commits: list[tuple[str, Files, str | None]] = []
    conflicts: dict[int, MergeConflict] = {}
    notes: dict[int, set[str]] = {}
    merged: dict[int, Files] = {}
    for seed in range(count):
        made = case(seed)
        notes[seed] = made.notes
        commits.append((f"b{seed}", files_of(made.base), None))
        for name, fs in zip("ot", made.sides, strict=True):
            commits.append((f"{name}{seed}", files_of(fs), f"b{seed}"))
        try:
            made.session.merge(made.fork)
        except MergeConflict as conflict:
            conflicts[seed] = conflict
        else:
            merged[seed] = files_of(made.fs)
            commits.append((f"m{seed}", merged[seed], f"b{seed}"))
    git.add(commits)
    trees = git.trees()
    counted: Counter[str] = Counter()
    unexplained: list[str] = []
    for seed in range(count):
        of_git, of_ours = git.merge(f"o{seed}", f"t{seed}"), trees.get(f"m{seed}")
        if of_git is None or of_git == of_ours:
            counted["as git" if (of_git is None) == (of_ours is None) else "only git conflicts"] += 1
            continue
        reason = reason_of(notes[seed], conflicts.get(seed), merged.get(seed), git.files(of_git))
        counted[reason or "unexplained"] += 1
        if reason is None:
            unexplained.append(f"seed {seed}: {notes[seed]}")
    assert not unexplained
    assert counted["as git"] + counted["only git conflicts"] > 0.9 * count


def is_moved_directory(entry: ConflictEntry) -> bool:
    """Return whether one side moved a directory that the other deleted.

    For git, a directory without files does not exist.
    """
    return entry.kind == "moved_deleted" and entry.base is None and entry.ours is None and entry.theirs is None


def differences(one: Files, other: Files) -> set[str]:
    return {path for path, _ in one.items() ^ other.items()}


def reason_of(notes: set[str], conflict: MergeConflict | None, merged: Files | None, of_git: Files) -> str | None:
    """Return why a merge differs from git's, or `None` if nothing explains it."""
    if "name reused" in notes:
        return "name reused"
    if conflict is not None:
        inside = all(entry.kind == "deleted" or is_moved_directory(entry) for entry in conflict.conflicts)
        if inside and "directory deleted" in notes:
            return "directory deleted"
        return "cycle" if any(entry.kind == "cycle" for entry in conflict.conflicts) else None
    if notes >= {"backed up", "directory moved"}:
        return "copied"
    if merged is not None and "copied" in notes and any("copy" in path for path in differences(merged, of_git)):
        # Git took the copy for the file that was moved, and applied the other side's changes to it.
        return "copied"
    if merged is not None and contents(of_git) < contents(merged):
        return "git loses a file"
    if merged is not None and contents(merged) == contents(of_git):
        return next((note for note in ("copied", "directory moved") if note in notes), None)
    return None
