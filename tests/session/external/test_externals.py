"""External filesystems: they take part in the snapshots, rollbacks and transactions of a session."""

from __future__ import annotations

import gc
import weakref
from threading import Thread

import pytest

from tests.session.external.fakes import FakeExternal
from tests.session.ledger import Added, Noted, make_session, notes_of, total_of
from weakfs import MergeConflict, Session
from weakfs.session import UnknownSnapshot


def attached(*externals: FakeExternal) -> Session:
    session = make_session()
    for external in externals:
        session.attach(external)
    return session


def test_a_snapshot_takes_one_of_every_attached_filesystem() -> None:
    disk, box = FakeExternal("disk"), FakeExternal("box")
    session = attached(disk, box)

    session.snapshot("s")

    assert disk.calls == box.calls == ["snapshot"]


def test_a_rollback_to_a_snapshot_restores_every_filesystem_with_the_slices() -> None:
    disk, box = FakeExternal("disk", {"/a": "1"}), FakeExternal("box", {"/b": "1"})
    session = attached(disk, box)
    session.dispatch(Added(1))
    session.snapshot("s")
    session.dispatch(Added(10))
    disk.write("/a", "2")
    disk.write("/new", "x")
    box.write("/b", "2")

    session.rollback("s")

    assert total_of(session) == 1
    assert disk.files == {"/a": "1"}
    assert box.files == {"/b": "1"}


def test_rolling_back_to_before_a_filesystem_was_attached_leaves_it_alone() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = make_session()
    session.snapshot("s")
    session.attach(disk)
    disk.write("/a", "2")

    session.rollback("s")

    assert disk.files == {"/a": "2"}


def test_a_rollback_that_needs_a_detached_filesystem_is_refused_and_names_it() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)
    session.dispatch(Added(1))
    with session.transaction():
        fork_snapshot = session.snapshot("with disk")
    fork = session.fork()

    with pytest.raises(Exception, match="disk"):
        fork.rollback(fork_snapshot)

    assert total_of(fork) == 1
    assert len(fork.records) == 1


def test_undoing_a_rollback_also_restores_the_filesystems() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)
    session.snapshot("s")
    session.dispatch(Added(1))
    disk.write("/a", "2")
    record = session.rollback("s")
    assert (total_of(session), disk.files) == (0, {"/a": "1"})

    session.rollback(record.seq - 1)

    assert (total_of(session), disk.files) == (1, {"/a": "2"})


def test_a_snapshot_fails_completely_if_one_filesystem_fails() -> None:
    disk, box = FakeExternal("disk"), FakeExternal("box")
    session = attached(disk, box)
    box.fail("snapshot")

    with pytest.raises(OSError, match="no space left on box"):
        session.snapshot("s")

    assert session.snapshots == ()
    with pytest.raises(UnknownSnapshot):
        session.rollback("s")


def test_a_successful_transaction_keeps_external_writes() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)

    with session.transaction():
        disk.write("/a", "2")
        session.dispatch(Added(1))

    assert disk.files == {"/a": "2"}
    assert [journal.closed for journal in disk.begun] == [True]
    assert disk.journals == []


def test_a_failed_transaction_undoes_external_writes() -> None:
    disk, box = FakeExternal("disk", {"/a": "1"}), FakeExternal("box", {"/b": "1"})
    session = attached(disk, box)

    with pytest.raises(LookupError), session.transaction():
        session.dispatch(Added(1))
        session.dispatch(Noted("tried"))
        disk.write("/a", "2")
        disk.write("/new", "x")
        box.write("/b", "2")
        raise LookupError

    assert (disk.files, box.files) == ({"/a": "1"}, {"/b": "1"})
    assert (total_of(session), notes_of(session)) == (0, ["tried"])
    assert disk.journals == box.journals == []


def test_a_failed_transaction_without_records_still_undoes_external_writes() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)

    with pytest.raises(LookupError), session.transaction():
        disk.write("/a", "2")
        raise LookupError

    assert disk.files == {"/a": "1"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupted_transaction_undoes_external_writes(error: type[BaseException]) -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)

    with pytest.raises(error), session.transaction():
        disk.write("/a", "2")
        raise error

    assert disk.files == {"/a": "1"}


def test_a_conflict_at_the_end_undoes_external_writes() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)

    with pytest.raises(MergeConflict), session.transaction():
        session.dispatch(Added(1))
        disk.write("/a", "2")
        other = Thread(target=session.dispatch, args=(Added(2),))
        other.start()
        other.join()

    assert disk.files == {"/a": "1"}
    assert total_of(session) == 2


def test_an_inner_failure_undoes_only_the_inner_external_writes() -> None:
    disk = FakeExternal("disk", {"/a": "1", "/b": "1"})
    session = attached(disk)

    with session.transaction():
        disk.write("/a", "2")
        with pytest.raises(LookupError), session.transaction():
            disk.write("/a", "3")
            disk.write("/b", "3")
            raise LookupError
        assert disk.files == {"/a": "2", "/b": "1"}

    assert disk.files == {"/a": "2", "/b": "1"}


def test_an_outer_failure_undoes_the_inner_external_writes_too() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)

    with pytest.raises(LookupError), session.transaction():
        with session.transaction():
            disk.write("/a", "2")
        raise LookupError

    assert disk.files == {"/a": "1"}


def test_a_rollback_inside_a_failed_transaction_is_undone_outside_too() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)
    session.snapshot("s")
    disk.write("/a", "2")

    with pytest.raises(LookupError), session.transaction():
        session.rollback("s")
        assert disk.files == {"/a": "1"}
        raise LookupError

    assert disk.files == {"/a": "2"}


def test_a_fork_does_not_use_the_filesystems_of_its_session() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)
    fork = session.fork()

    with pytest.raises(LookupError), fork.transaction():
        disk.write("/a", "2")
        raise LookupError
    fork.snapshot("s")

    assert disk.files == {"/a": "2"}
    assert disk.calls == []


def test_attaching_a_filesystem_twice_is_refused() -> None:
    session = attached(FakeExternal("disk"))

    with pytest.raises(ValueError, match="'disk' is already attached"):
        session.attach(FakeExternal("disk"))


def test_dispatching_does_not_call_the_filesystems() -> None:
    disk = FakeExternal("disk")
    session = attached(disk)

    session.dispatch(Added(1))
    session[Noted].append(Noted("n"))
    session.at(0)

    assert disk.calls == []


def test_a_rollback_is_refused_if_a_filesystem_has_no_snapshot_of_the_record() -> None:
    session = attached(FakeExternal("disk"))
    session.dispatch(Added(1))

    with pytest.raises(UnknownSnapshot, match="disk"):
        session.rollback(0)

    assert total_of(session) == 1
    assert len(session.records) == 1


def test_a_rollback_inside_a_transaction_does_not_count_for_other_records_with_its_number() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)
    session.snapshot("s")
    with session.transaction():
        session.dispatch(Noted("inside"))
        disk.write("/a", "inside")
        session.rollback("s")
        other = Thread(target=session.dispatch, args=(Noted("aside"),))
        other.start()
        other.join()
    disk.write("/a", "later")

    with pytest.raises(UnknownSnapshot, match="disk"):
        session.rollback(1)

    assert disk.files == {"/a": "later"}


def test_a_rollback_to_before_one_in_a_merged_transaction_is_refused() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)
    session.snapshot("s")
    with session.transaction():
        session.dispatch(Noted("inside"))
        disk.write("/a", "2")
        session.rollback("s")
        meanwhile = Thread(target=session.dispatch, args=(Noted("meanwhile"),), daemon=True)
        meanwhile.start()
        meanwhile.join()
    inside = next(record.seq for record in session.records if record.event == Noted("inside"))
    before = len(session.records)

    with pytest.raises(UnknownSnapshot, match="disk"):
        session.rollback(inside)

    assert disk.files == {"/a": "1"}
    assert len(session.records) == before


def test_snapshots_kept_to_undo_a_rollback_are_dropped_with_its_record() -> None:
    disk = FakeExternal("disk", {"/a": "1"})
    session = attached(disk)
    session.snapshot("s")
    kept = [weakref.ref(snapshot) for snapshot in disk.taken]
    session.dispatch(Added(1))
    session.rollback("s")
    kept += [weakref.ref(snapshot) for snapshot in disk.taken[1:]]
    disk.taken.clear()

    session.drop_snapshot("s")
    session.compact(keep=0)
    gc.collect()

    assert [snapshot() for snapshot in kept] == [None, None]
