"""Undoing random calls: the results of undo, redo and revert, compared with replays without the call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tests.models.random_worker import Worker, text
from tests.models.two_sides import check_history, texts
from weakfs import HostFilesystem, InMemoryFilesystem, MergeConflict, OverlayFilesystem, Session, SessionError
from weakfs.filesystem import Filesystem
from weakfs.reducers import FileTree, diff

Make = Callable[[Session], Filesystem]
CALLS = 8


def worked(seed: int, make: Make = InMemoryFilesystem, *, apart: bool = False) -> tuple[Session, Filesystem]:
    """Make random calls "c0", "c1", ...; with `apart`, each has a directory of its own."""
    random = Random(seed)
    session = Session(session_id="s", clock=lambda: 0)
    fs = make(session)
    for directory in [f"/d{number}" for number in range(CALLS)] if apart else ["/src", "/src/lib", "/docs", ""]:
        for _ in range(random.randint(1, 3)):
            fs.write(f"{directory}/{random.choice('abcdefgh')}", text(random))
    before = frozenset(entry.path for entry in fs.walk())
    for number in range(CALLS):
        with session.transaction(cause=f"c{number}"):
            worker = Worker("w", Random(f"{seed} {number}"), fs, before)
            if apart:
                for entry in fs.list(f"/d{number}"):
                    worker.edit(entry.path)
            else:
                worker.work(random.randint(1, 2))
    return session, fs


def over_files(session: Session) -> OverlayFilesystem:
    lower = InMemoryFilesystem(Session(clock=lambda: 0))
    for directory in ("/src", "/src/lib", "/docs"):
        for name in "abc":
            lower.write(f"{directory}/{name}", "".join(f"{name} {number}\n" for number in range(9)))
    return OverlayFilesystem(lower, session)


def same(one: FileTree, other: FileTree) -> bool:
    return not diff(one, other)


def has_changes(session: Session, number: int) -> bool:
    """Return whether the files after call "c{number}" differ from those before it."""
    made = [record.seq for record in session.records if record.cause == f"c{number}"]
    if not made:
        return False
    before, after = (InMemoryFilesystem(session.at(seq)).tree() for seq in (made[0] - 1, made[-1]))
    return not same(before, after)


@pytest.mark.parametrize("seed", range(60))
def test_undoing_everything_and_redoing_it_changes_nothing(seed: int, tmp_path: Path) -> None:
    session, fs = worked(seed)
    trees = [fs.tree()]
    while True:
        preview = session.undo(preview=True)
        assert same(fs.tree(), trees[-1])
        done = session.undo()
        assert (done.changes, done.records) == (preview.changes, preview.records)
        assert done.record == session.seq
        trees.append(fs.tree())
        if done.records[0][0] == 1:
            break
    while len(trees) > 1:
        trees.pop()
        session.redo()
        assert same(fs.tree(), trees[-1])
    check_history(session, tmp_path / "s.json")


@pytest.mark.slow
@pytest.mark.parametrize("changes_below", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_everything_over_a_lower_layer_is_undone_and_redone(seed: int, changes_below: bool, tmp_path: Path) -> None:
    """The work is a mix of calls, failures, rollbacks and discards; others may change the lower layer meanwhile."""
    random, session = Random(seed), Session(session_id="s", clock=lambda: 0)
    fs = over_files(session)
    for number in range(10):
        kind = random.random()
        if kind < 0.15 and session.seq:
            session.rollback(random.randint(0, session.seq))
        elif kind < 0.22:
            fs.discard()
        elif kind < 0.3 and changes_below:
            fs.lower.append(random.choice(["/src/a", "/src/b", "/docs/a"]), f"below {number}\n")
        else:
            with suppress(ZeroDivisionError), session.transaction(cause=f"c{number}"):
                before = frozenset(entry.path for entry in fs.walk())
                Worker("w", Random(f"{seed} {number}"), fs, before).work(random.randint(1, 2))
                assert 1 / random.randint(0, 6)
    trees = [fs.tree()]
    with pytest.raises(SessionError, match="nothing to undo"):
        while session.undo():
            trees.append(fs.tree())
    assert changes_below or same(fs.tree(), fs.lower.tree())
    while len(trees) > 1:
        trees.pop()
        session.redo()
        assert changes_below or same(fs.tree(), trees[-1])
    check_history(session, tmp_path / "s.json")


@pytest.mark.parametrize("seed", range(60))
def test_reverting_twice_changes_nothing(seed: int, tmp_path: Path) -> None:
    session, fs = worked(seed)
    for number in range(CALLS):
        before, seq = fs.tree(), session.seq
        if not has_changes(session, number):
            with pytest.raises(SessionError):
                session.revert(f"c{number}")
            assert (fs.tree(), session.seq) == (before, seq)
            continue
        found = session.revert(f"c{number}", preview=True)
        if found.conflicts:
            with pytest.raises(MergeConflict) as caught:
                session.revert(f"c{number}")
            assert caught.value.conflicts == found.conflicts
            assert (fs.tree(), session.seq) == (before, seq)
            continue
        done = session.revert(f"c{number}")
        if done.record is None:
            assert fs.tree() is before
            continue
        session.revert(range(seq + 1, done.record + 1))
        assert same(fs.tree(), before)
    check_history(session, tmp_path / "s.json")


@pytest.mark.parametrize("seed", range(40))
def test_reverting_an_independent_call_equals_a_replay_without_it(seed: int) -> None:
    for number in range(0, CALLS, 3):
        session, fs = worked(seed, apart=True)
        if not has_changes(session, number):
            continue
        without = Session(session_id="s", clock=lambda: 0, registry=session.registry)
        for record in session.records:
            if record.cause != f"c{number}":
                without.dispatch(record.event, cause=record.cause)
        session.revert(f"c{number}")
        assert same(fs.tree(), InMemoryFilesystem(without).tree())


@pytest.mark.parametrize("seed", range(20))
def test_a_host_directory_is_undone_like_memory(seed: int, tmp_path: Path) -> None:
    def host(session: Session) -> HostFilesystem:
        (tmp_path / "root").mkdir()
        return HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")

    session, fs = worked(seed)
    hosted, disk = worked(seed, host)
    for number in [*range(CALLS), *range(CALLS)]:
        if not has_changes(session, number):
            continue
        outcomes: list[object] = []
        for one in (session, hosted):
            try:
                outcomes.append(one.revert(f"c{number}").changes)
            except MergeConflict as conflict:
                outcomes.append({entry.path for entry in conflict.conflicts})
        if outcomes[0] != outcomes[1]:
            # Moves are followed in memory only: in external files, they are deletions and additions.
            return
        assert texts(fs) == texts(disk)
    check_history(hosted, tmp_path / "s.json")
