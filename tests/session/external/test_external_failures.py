"""If an external filesystem cannot be restored, all return to their previous state, or the error names the others."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.session.external.fakes import FakeExternal, FakeJournal
from tests.session.ledger import Added, Noted, Total, make_session, notes_of, total_of
from weakfs import RollbackIncomplete, Session
from weakfs.session import RolledBack


def three_disks() -> tuple[Session, FakeExternal, FakeExternal, FakeExternal]:
    """Make a session with three filesystems, a snapshot of them as they were, and changes since."""
    disks = tuple(FakeExternal(name, {"/a": f"{name} old", "/b": f"{name} old"}) for name in ("one", "two", "three"))
    session = make_session()
    for disk in disks:
        session.attach(disk)
    session.snapshot("s")
    session.dispatch(Added(1))
    for disk in disks:
        disk.write("/a", f"{disk.filesystem_id} new")
        disk.write("/b", f"{disk.filesystem_id} new")
    one, two, three = disks
    return session, one, two, three


def is_new(disk: FakeExternal) -> bool:
    return disk.files == {"/a": f"{disk.filesystem_id} new", "/b": f"{disk.filesystem_id} new"}


def is_old(disk: FakeExternal) -> bool:
    return disk.files == {"/a": f"{disk.filesystem_id} old", "/b": f"{disk.filesystem_id} old"}


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_if_one_restore_fails_all_filesystems_return_to_their_state_before(failing: int) -> None:
    session, *disks = three_disks()
    disks[failing].fail("restore")

    with pytest.raises(OSError, match=f"no space left on {disks[failing].filesystem_id}"):
        session.rollback("s")

    assert [is_new(disk) for disk in disks] == [True] * 3
    assert total_of(session) == 1
    assert len(session.records) == 1


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_nothing_is_restored_if_the_current_state_cannot_be_saved(failing: int) -> None:
    session, *disks = three_disks()
    disks[failing].fail("snapshot")

    with pytest.raises(OSError, match="no space left"):
        session.rollback("s")

    assert [is_new(disk) for disk in disks] == [True] * 3
    assert total_of(session) == 1


def test_everything_works_after_a_failed_rollback() -> None:
    session, one, two, three = three_disks()
    two.fail("restore")
    with pytest.raises(OSError, match="no space left"):
        session.rollback("s")

    session.dispatch(Added(1))
    session.rollback("s")

    assert [is_old(disk) for disk in (one, two, three)] == [True] * 3
    assert total_of(session) == 0


def test_if_undoing_a_restore_also_fails_the_state_of_each_filesystem_is_named() -> None:
    session, _, two, _ = three_disks()
    two.fail("restore", times=2)

    with pytest.raises(RollbackIncomplete) as caught:
        session.rollback("s")

    states = caught.value.states
    assert set(states) == {"one", "two", "three"}
    assert "unchanged" in states["one"]
    assert "no space left on two" in states["two"]
    assert states["three"] == "untouched"
    assert "session.repair()" in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)


def test_further_writes_are_refused_until_repaired() -> None:
    session, one, two, three = three_disks()
    two.fail("restore", times=2)
    with pytest.raises(RollbackIncomplete):
        session.rollback("s")

    for step in (
        lambda: session.dispatch(Added(1)),
        lambda: session[Total].seed(Total(1)),
        lambda: session[Total].clear(),
        lambda: session.snapshot(),
        lambda: session.drop_snapshot("s"),
        lambda: session.rollback(0),
        lambda: session.transaction().__enter__(),
        lambda: session.compact(keep=0),
        lambda: session.replay([]),
    ):
        with pytest.raises(RollbackIncomplete, match=r"two.*session\.repair\(\)"):
            step()
    assert total_of(session) == 1

    session.repair()

    assert [is_new(disk) for disk in (one, two, three)] == [True] * 3
    assert session.dispatch(Added(1)).seq == 2


def test_reading_works_while_writes_are_refused() -> None:
    session, _, two, _ = three_disks()
    two.fail("restore", times=2)
    with pytest.raises(RollbackIncomplete):
        session.rollback("s")

    assert total_of(session) == 1
    assert session.at(0)[Total].latest() == Total(0)
    assert [snapshot.tag for snapshot in session.snapshots] == ["s"]
    assert len(session.records) == 1


def test_a_failed_repair_says_so_and_can_be_repeated() -> None:
    session, _, two, _ = three_disks()
    two.fail("restore", times=4)
    with pytest.raises(RollbackIncomplete):
        session.rollback("s")

    for _ in range(2):
        with pytest.raises(RollbackIncomplete, match=r"two: .*no space left on two"):
            session.repair()
        with pytest.raises(RollbackIncomplete):
            session.dispatch(Added(1))
    session.repair()

    assert is_new(two)
    session.dispatch(Added(1))


def test_repairing_an_intact_session_does_nothing() -> None:
    session, one, two, three = three_disks()
    calls = [list(disk.calls) for disk in (one, two, three)]

    session.repair()

    assert [disk.calls for disk in (one, two, three)] == calls
    session.dispatch(Added(1))


@pytest.mark.parametrize("failing", [("one",), ("two",), ("one", "three"), ("one", "two", "three")])
def test_a_transaction_that_cannot_be_undone_outside_names_every_filesystem(failing: tuple[str, ...]) -> None:
    session, *disks = three_disks()
    broken = [disk for disk in disks if disk.filesystem_id in failing]

    with pytest.raises(RollbackIncomplete) as caught, session.transaction():
        session.dispatch(Added(10))
        session.dispatch(Noted("tried"))
        for disk in disks:
            disk.write("/a", "half done")
        for disk in broken:
            disk.fail("undo")
        raise LookupError

    assert {name for name, state in caught.value.states.items() if "no space left" in state} == set(failing)
    assert set(caught.value.states) == {"one", "two", "three"}
    assert [is_new(disk) for disk in disks] == [disk not in broken for disk in disks]
    assert isinstance(caught.value.__context__, LookupError)
    assert (total_of(session), notes_of(session)) == (1, ["tried"])
    with pytest.raises(RollbackIncomplete):
        session.dispatch(Added(1))

    session.repair()

    assert [is_new(disk) for disk in disks] == [True] * 3
    session.dispatch(Added(1))


def test_an_outer_undo_that_succeeds_leaves_nothing_to_repair() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = make_session()
    session.attach(disk)

    with pytest.raises(RollbackIncomplete), session.transaction():
        disk.write("/a", "outer")
        with session.transaction():
            disk.write("/a", "inner")
            disk.fail("undo")
            raise LookupError

    assert disk.files == {"/a": "1"}
    session.repair()
    assert disk.files == {"/a": "1"}
    session.dispatch(Added(1))


def test_an_outer_undo_that_fails_is_repaired_to_before_the_outer_transaction() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = make_session()
    session.attach(disk)

    with pytest.raises(RollbackIncomplete), session.transaction():
        disk.write("/a", "outer")
        with session.transaction():
            disk.write("/a", "inner")
            disk.fail("undo", times=2)
            raise LookupError

    with pytest.raises(RollbackIncomplete):
        session.dispatch(Added(1))
    session.repair()
    assert disk.files == {"/a": "1"}


def test_an_inner_undo_that_failed_is_repaired_inside_the_outer_transaction() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = make_session()
    session.attach(disk)

    with session.transaction():
        disk.write("/a", "outer")
        with pytest.raises(RollbackIncomplete), session.transaction():
            disk.write("/a", "inner")
            disk.fail("undo")
            raise LookupError
        session.repair()
        assert disk.files == {"/a": "outer"}
        session.dispatch(Added(1))

    assert disk.files == {"/a": "outer"}
    assert total_of(session) == 1


def test_a_transaction_that_cannot_begin_everywhere_begins_nowhere() -> None:
    session, one, two, three = three_disks()
    two.fail("begin")

    with pytest.raises(OSError, match="no space left on two"), session.transaction():
        raise AssertionError("not reached")

    assert one.journals == three.journals == []
    session.dispatch(Added(1))
    assert total_of(session) == 2


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_a_journal_that_cannot_be_closed_does_not_undo_finished_work(error: BaseException) -> None:
    session, one, two, three = three_disks()
    one.fail("close", error=error)

    try:
        with session.transaction():
            session.dispatch(Added(10))
            for disk in (one, two, three):
                disk.write("/a", "done")
    except (OSError, KeyboardInterrupt):
        pass  # refusing is right; half of the work is not

    done = [disk.files["/a"] == "done" for disk in (one, two, three)]
    assert done == [total_of(session) == 11] * 3
    assert sum(record.event == Added(10) for record in session.records) == 1


def test_an_interrupted_restore_does_not_leave_filesystems_half_restored() -> None:
    session, one, two, three = three_disks()
    two.fail("restore", error=KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        session.rollback("s")

    assert [is_new(disk) for disk in (one, two, three)] == [True] * 3
    assert total_of(session) == 1


def test_an_interrupted_undo_still_undoes_the_others_and_can_be_repaired() -> None:
    session, one, two, three = three_disks()

    with pytest.raises((KeyboardInterrupt, RollbackIncomplete)), session.transaction():
        session.dispatch(Added(10))
        session.dispatch(Noted("tried"))
        for disk in (one, two, three):
            disk.write("/a", "half done")
        two.fail("undo", error=KeyboardInterrupt())
        raise LookupError

    assert (total_of(session), notes_of(session)) == (1, ["tried"])
    session.repair()
    assert [is_new(disk) for disk in (one, two, three)] == [True] * 3


@pytest.mark.parametrize("why", ["cause", "reducer"])
def test_a_rollback_that_cannot_be_recorded_leaves_the_filesystems_as_they_were(why: str) -> None:
    def fail(note: Noted | None, event: RolledBack) -> Noted:
        raise ArithmeticError

    session, *disks = three_disks()
    if why == "reducer":
        session[Noted].register(RolledBack, fail)

    with pytest.raises((TypeError, ArithmeticError)):
        session.rollback("s", cause=5 if why == "cause" else None)  # type: ignore[arg-type]  # the point of this test

    assert [is_new(disk) for disk in disks] == [True] * 3
    assert total_of(session) == 1
    assert len(session.records) == 1


@pytest.mark.parametrize("shared", [False, True])
def test_undoing_a_transaction_outside_sees_the_session_without_it(shared: bool) -> None:
    session = make_session()
    seen: list[int] = []

    class Looking(FakeJournal):
        def undo(self) -> None:
            seen.append(total_of(session))
            session.dispatch(Noted("undone"))
            super().undo()

    class Disk(FakeExternal):
        def begin(self) -> FakeJournal:
            return Looking(self)

    session.attach(Disk())
    with suppress(LookupError), session.transaction(shared=shared):
        session.dispatch(Added(5))
        raise LookupError

    assert seen == [0]
    assert total_of(session) == 0
    assert [record.event for record in session.records].count(Noted("undone")) == 1
