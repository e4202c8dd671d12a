"""Undo of work that was merged, that failed, or that other processes did."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest

from tests.models.two_sides import check_history
from tests.session.undo.desk import LINES, Desk, in_memory, on_host
from weakfs import InMemoryFilesystem, MergeConflict, Session, SessionError
from weakfs.session import Record


def merged_fork() -> tuple[Desk, Record]:
    """Return a session with a merged fork whose calls are c11 and c12, in parallel with c2 and after c1."""
    desk = in_memory()
    desk.write("/a", LINES)
    fork = desk.session.fork()
    other = Desk(fork, desk.fs.bind(fork))
    other.count = 10
    other.edit("/a", "line 2", "two")
    other.edit("/a", "line 5", "five")
    desk.edit("/a", "line 8", "eight")
    return desk, desk.session.merge(fork)


def test_the_work_of_a_fork_is_reverted_as_a_whole(tmp_path: Path) -> None:
    desk, merge = merged_fork()
    desk.session.revert(merge)
    assert desk.text("/a") == LINES.replace("line 8", "eight")
    desk.session.undo(2)
    assert desk.text("/a") == LINES.replace("line 8", "eight")
    check_history(desk.session, tmp_path / "s.json")


def test_one_call_of_a_merged_fork_is_reverted(tmp_path: Path) -> None:
    desk, merge = merged_fork()
    all_done = desk.text("/a")
    preview = desk.session.revert("c11", preview=True)
    done = desk.session.revert("c11")
    assert desk.text("/a") == LINES.replace("line 5", "five").replace("line 8", "eight")
    assert (done.changes, done.records) == (preview.changes, preview.records)
    assert merge.seq < done.records[0][0]
    desk.session.undo()
    assert desk.text("/a") == all_done
    desk.session.revert(range(*done.records[0]))
    assert desk.text("/a") == LINES.replace("line 5", "five").replace("line 8", "eight")
    check_history(desk.session, tmp_path / "s.json")
    again = Session.load(tmp_path / "s.json")
    again.revert("c12")
    assert InMemoryFilesystem(again).read("/a").content == LINES.replace("line 8", "eight")


def test_records_of_a_fork_and_of_others_are_not_reverted_together() -> None:
    desk, merge = merged_fork()
    before = desk.text("/a")
    desk.write("/b", "1\n")
    with pytest.raises(SessionError, match=rf"revert range\({merge.seq}, {desk.session.seq + 1}\)"):
        desk.session.revert(range(merge.seq + 1, desk.session.seq + 1))
    assert desk.text("/a") == before


def test_calls_of_a_fork_merged_twice_can_be_reverted(tmp_path: Path) -> None:
    desk = in_memory()
    desk.write("/a", LINES)
    fork = desk.session.fork()
    other = Desk(fork, desk.fs.bind(fork))
    other.count = 10
    for number, word in ((2, "two"), (5, "five")):
        other.edit("/a", f"line {number}", word)
        desk.write(f"/{word}", "1\n")
        desk.session.merge(fork)
    desk.session.revert("c12")
    assert desk.text("/a") == LINES.replace("line 2", "two")
    desk.session.revert("c11")
    assert desk.text("/a") == LINES
    check_history(desk.session, tmp_path / "s.json")


# Failed work


@pytest.mark.parametrize("beside", [False, True])
def test_work_that_failed_with_its_outer_transaction_is_not_undone(desk: Desk, beside: bool, tmp_path: Path) -> None:
    desk.write("/a", "1\n")
    inside = "c2"
    with pytest.raises(RuntimeError), desk.session.transaction(cause="turn"):
        assert desk.write("/b", "2\n") == inside
        desk.session.undo()
        desk.write("/a", "3\n")
        if beside:
            thread = Thread(target=desk.write, args=("/c", "4\n"))
            thread.start()
            thread.join()
        raise RuntimeError
    assert (desk.text("/a"), desk.text("/b")) == ("1\n", None)
    # On the host, the undo uses the whole directory.
    beside = desk.text("/c") is not None
    desk.session.undo(1 + beside)
    assert (desk.text("/a"), desk.text("/b"), desk.text("/c")) == (None, None, None)
    desk.session.redo(1 + beside)
    with pytest.raises(SessionError, match="it failed, and its changes were rolled back at once"):
        desk.session.revert(inside)
    assert (desk.text("/a"), desk.text("/b")) == ("1\n", None)
    check_history(desk.session, tmp_path / "s.json")


# Several processes


def shared(path: Path) -> tuple[Desk, Desk]:
    """Open a stored session twice, with the calls c1, c2, ... and c11, c12, ...; what both do is merged."""
    desks: list[Desk] = []
    for count in (0, 10):
        session = Session.open(path / "stored", "s", on_conflict="merge")
        desks.append(Desk(session, InMemoryFilesystem(session)))
        desks[-1].count = count
    return desks[0], desks[1]


def test_a_call_of_another_process_is_reverted(tmp_path: Path) -> None:
    one, two = shared(tmp_path)
    one.write("/a", LINES)
    two.session.refresh()
    one.edit("/a", "line 2", "two")
    two.edit("/a", "line 7", "seven")
    one.session.refresh()
    one.session.revert("c2")
    assert one.text("/a") == LINES.replace("line 7", "seven")
    two.session.refresh()
    two.session.revert("c11")
    assert two.text("/a") == LINES
    check_history(two.session, tmp_path / "s.json")


def test_an_undo_that_is_merged_later_still_undoes_its_operation(tmp_path: Path) -> None:
    one, two = shared(tmp_path)
    for name in "abc":
        one.write(f"/{name}", "1\n")
    two.session.refresh()
    one.write("/d", "1\n")
    assert two.session.undo().paths == ("/c",)
    one.session.refresh()
    # The newest operation is not the one that has already been undone.
    assert [one.session.undo().paths for _ in range(2)] == [("/d",), ("/b",)]
    two.session.refresh()
    assert sorted(two.session.redo(3).paths) == ["/b", "/c", "/d"]
    check_history(two.session, tmp_path / "s.json")


def test_an_operation_whose_undo_conflicted_with_the_work_of_others_is_not_undone(tmp_path: Path) -> None:
    one, two = shared(tmp_path)
    for number in (1, 2):
        one.write("/a", f"{number}\n")
    two.session.refresh()
    one.write("/a", "3\n")
    with pytest.raises(MergeConflict):
        two.session.undo()
    assert two.text("/a") == "3\n"

    two.session.undo()
    two.session.undo()

    assert two.text("/a") == "1\n"
    with pytest.raises(SessionError, match="there are only 2 to redo"):
        two.session.redo(3)
    two.session.redo(2)
    assert two.text("/a") == "3\n"
    check_history(two.session, tmp_path / "s.json")


def test_remaining_records_can_be_undone_after_compaction_and_others_are_refused(tmp_path: Path) -> None:
    desk = merged_fork()[0]
    desk.fs.write("/last", "1\n")
    seen: set[str] = set()
    for keep in range(desk.session.seq, 0, -1):
        session = Session.from_bytes(desk.session.to_bytes())
        files = InMemoryFilesystem(session)
        session.compact(keep=keep)
        try:
            seen.add("reverted" if session.revert("c11").paths else "")
            session.undo()
        except SessionError as error:
            seen.add("no fork" if "do not say where their fork began" in str(error) else "no call")
        assert session.undo().paths == ("/last",)
        assert files.read("/a").content == desk.text("/a")
    assert seen == {"reverted", "no fork", "no call"}


# Directories that are not attached


def test_a_detached_directory_is_named(tmp_path: Path) -> None:
    desk = on_host(tmp_path)
    InMemoryFilesystem(desk.session).write("/m", "1\n")
    with desk.session.transaction(cause="both"):
        InMemoryFilesystem(desk.session).write("/m", "2\n")
        desk.fs.write("/a", "1\n")
    desk.session.save(tmp_path / "s.json")
    again = Session.load(tmp_path / "s.json")
    name = f"host:{tmp_path / 'root'}"
    assert again.undo(preview=True).detached == again.revert("both").detached == (name,)
    assert InMemoryFilesystem(again).read("/m").content == "1\n"
    assert name in again.revert("both", preview=True).note
    assert (tmp_path / "root" / "a").read_text() == "1\n"
    desk.session.rollback(0)
    assert desk.session.undo().detached == ()


def test_work_in_a_detached_directory_is_not_skipped(tmp_path: Path) -> None:
    desk = on_host(tmp_path)
    InMemoryFilesystem(desk.session).write("/m", "1\n")
    desk.write("/a", "1\n")
    again = Session.from_bytes(desk.session.to_bytes())
    done = again.undo()
    assert (done.paths, len(done.detached)) == ((), 1)
    assert InMemoryFilesystem(again).read("/m").content == "1\n"


def test_the_record_of_a_reversion_represents_all_of_it(tmp_path: Path) -> None:
    desk = in_memory()
    desk.write("/a", LINES)
    desk.write("/b", "1\n")
    done = desk.session.revert("c1")
    assert not desk.fs.exists("/a")
    assert done.record is not None
    preview = desk.session.revert(done.record, preview=True)
    again = desk.session.revert(done.record)
    assert (again.paths, again.records) == (preview.paths, preview.records)
    assert desk.text("/a") == LINES
    assert again.record is not None
    desk.session.revert(desk.session.records[again.record - 1])
    assert not desk.fs.exists("/a")
    check_history(desk.session, tmp_path / "s.json")
