"""Kept snapshots do not make changes more expensive. Work is counted in function calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.models.cost import calls_of
from weakfs import InMemoryFilesystem, Session, Toolset

MANY = 1000


def calls_made(work: Callable[[], object]) -> int:
    """Count the functions that are called when `work` is done the second time."""
    work()
    return calls_of(work)


def session_with(snapshots: int) -> tuple[Session, InMemoryFilesystem]:
    session = Session(session_id="s")
    files = InMemoryFilesystem(session)
    files.write("/a.txt", "a\n")
    for _ in range(snapshots):
        session.snapshot()
    return session, files


def tool_call(session: Session, files: InMemoryFilesystem) -> None:
    Toolset(session).call("write_file", {"path": "/a.txt", "content": "b\n"})


def transaction(session: Session, files: InMemoryFilesystem) -> None:
    with session.transaction():
        files.write("/a.txt", "b\n")


def transaction_with_snapshots(session: Session, files: InMemoryFilesystem) -> None:
    with session.transaction():
        session.drop_snapshot(session.snapshot())
        session.snapshot()


def merged_fork(session: Session, files: InMemoryFilesystem) -> None:
    fork = session.fork()
    InMemoryFilesystem(fork).write("/b.txt", "b\n")
    session.merge(fork)


def merged_fork_with_snapshot(session: Session, files: InMemoryFilesystem) -> None:
    fork = session.fork()
    fork.snapshot()
    session.merge(fork)


@pytest.mark.parametrize(
    "change", [tool_call, transaction, transaction_with_snapshots, merged_fork, merged_fork_with_snapshot]
)
def test_a_change_costs_the_same_whatever_snapshots_are_kept(
    change: Callable[[Session, InMemoryFilesystem], None],
) -> None:
    few = session_with(1)
    many = session_with(MANY)
    # Classes get a faster constructor after a number of instances.
    for _ in range(10):
        change(*few)

    assert calls_made(lambda: change(*many)) <= 1.1 * calls_made(lambda: change(*few))


def test_a_transaction_drops_a_snapshot_from_before_it() -> None:
    session, _ = session_with(3)
    first, *others = session.snapshots

    with session.transaction(), session.transaction():
        session.drop_snapshot(first)

    assert session.snapshots == tuple(others)


def test_a_nested_transaction_drops_a_snapshot_that_the_outer_one_took() -> None:
    session, _ = session_with(0)

    with session.transaction():
        taken = session.snapshot()
        with session.transaction():
            session.drop_snapshot(taken)

    assert session.snapshots == ()


def test_a_failed_transaction_keeps_the_snapshot_that_it_dropped() -> None:
    session, _ = session_with(1)
    before = session.snapshots

    with pytest.raises(KeyError), session.transaction():
        session.drop_snapshot(before[0])
        session.snapshot()
        raise KeyError

    assert session.snapshots == before


def test_a_fork_that_is_merged_twice_brings_each_snapshot_once() -> None:
    session, _ = session_with(0)
    fork = session.fork()
    with fork.transaction():
        one = fork.snapshot("one")
    session.merge(fork)
    session.drop_snapshot(one.snapshot_id)

    fork.snapshot("two")
    session.merge(fork)

    assert [snapshot.tag for snapshot in session.snapshots] == ["two"]


def test_finding_a_snapshot_by_its_tag_takes_constant_time() -> None:
    def cost(kept: int) -> int:
        session, _ = session_with(0)
        for number in range(kept):
            session.snapshot(f"tag {number}")

        def work() -> None:
            session.snapshot("wanted")
            session.rollback("wanted")
            session.at("wanted")
            session.drop_snapshot("wanted")

        return calls_made(work)

    assert cost(MANY) <= cost(10) * 1.5


def test_dropping_the_newest_snapshot_of_a_tag_leaves_the_one_before_it() -> None:
    session, _ = session_with(0)
    kept = [session.snapshot("tag") for _ in range(4)]

    session.drop_snapshot(kept[1])
    session.drop_snapshot("tag")
    assert session.rollback("tag").event.snapshot_id == kept[2].snapshot_id
    session.drop_snapshot("tag")
    assert session.rollback("tag").event.snapshot_id == kept[0].snapshot_id
