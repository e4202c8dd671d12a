"""Undo, redo, revert and restore: what each undoes, keeps and refuses."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.models.two_sides import check_history
from tests.session.undo.desk import LINES, Desk, in_memory, on_host
from weakfs import (
    InMemoryFilesystem,
    MergeConflict,
    Session,
    SessionError,
    event,
    reducer,
)
from weakfs.session.errors import UnknownSnapshot


@event("test/counted")
@frozen
class Counted:
    by: int


@event("test/count")
@frozen
class Count:
    total: int = 0

    @reducer(on=Counted)
    def on_counted(self, event: Counted) -> Count:
        return Count(self.total + event.by)


def test_a_call_is_undone_and_redone(desk: Desk) -> None:
    desk.write("/a", LINES)
    desk.edit("/a", "line 2", "two")
    assert desk.session.undo().paths == ("/a",)
    assert desk.text("/a") == LINES
    desk.session.redo()
    assert desk.text("/a") == LINES.replace("line 2", "two")


def test_reads_and_failed_calls_are_not_operations(desk: Desk) -> None:
    desk.write("/a", LINES)
    desk.call("read_file", path="/a")
    desk.edit("/a", "not there", "x")
    desk.session.snapshot("here")
    desk.session.undo()
    assert desk.text("/a") is None


def test_several_operations_are_undone_together_and_redone_one_by_one(desk: Desk) -> None:
    desk.write("/a", "1\n")
    desk.write("/a", "2\n")
    desk.write("/b", "3\n")
    done = desk.session.undo(2)
    assert (desk.text("/a"), desk.text("/b")) == ("1\n", None)
    assert len(done.records) == 2
    desk.session.redo()
    assert (desk.text("/a"), desk.text("/b")) == ("2\n", None)
    desk.session.redo()
    assert (desk.text("/a"), desk.text("/b")) == ("2\n", "3\n")


def test_undone_work_cannot_be_redone_after_other_work(desk: Desk) -> None:
    desk.write("/a", "1\n")
    desk.session.undo()
    desk.write("/b", "2\n")
    with pytest.raises(SessionError, match="nothing to redo"):
        desk.session.redo()
    desk.session.undo()
    with pytest.raises(SessionError, match="nothing to undo"):
        desk.session.undo()


def test_too_many_operations_are_refused_and_none_is_undone(desk: Desk) -> None:
    desk.write("/a", "1\n")
    with pytest.raises(SessionError, match="there are only 1 to undo"):
        desk.session.undo(2)
    with pytest.raises(ValueError, match="cannot undo 0"):
        desk.session.undo(0)
    assert desk.text("/a") == "1\n"


def test_a_past_call_is_reverted_and_later_work_stays(desk: Desk) -> None:
    desk.write("/a", LINES)
    early = desk.edit("/a", "line 2", "two")
    desk.edit("/a", "line 7", "seven")
    before = desk.session.seq
    preview = desk.session.revert(early, preview=True)
    assert desk.session.seq == before
    done = desk.session.revert(early)
    assert desk.text("/a") == LINES.replace("line 7", "seven")
    assert (done.changes, done.lines_added, done.lines_removed) == (preview.changes, 1, 1)
    assert "/a" in done.note
    desk.session.undo()
    assert desk.text("/a") == LINES.replace("line 2", "two").replace("line 7", "seven")


def test_a_conflict_changes_nothing_unless_it_is_resolved(desk: Desk) -> None:
    desk.write("/a", LINES)
    early = desk.edit("/a", "line 2", "two")
    desk.edit("/a", "two", "deux")
    before = desk.text("/a")
    assert [entry.path for entry in desk.session.revert(early, preview=True).conflicts] == ["/a"]
    with pytest.raises(MergeConflict) as caught:
        desk.session.revert(early)
    assert desk.text("/a") == before
    (entry,) = caught.value.conflicts
    assert (entry.ours, entry.theirs) == (before, LINES)
    desk.session.revert(early, on_conflict="markers")
    assert "<<<<<<<" in (desk.text("/a") or "")
    desk.session.undo()
    desk.session.revert(early, on_conflict="theirs")
    assert desk.text("/a") == LINES


def test_paths_limit_a_reversion(desk: Desk) -> None:
    call = desk.call(
        "apply_patch", patch="*** Begin Patch\n*** Add File: /d/a\n+1\n*** Add File: /b\n+2\n*** End Patch"
    )
    desk.session.revert(call, paths=["/d"])
    assert (desk.text("/d/a"), desk.text("/b")) == (None, "2\n")


def test_a_call_that_made_a_directory_with_later_files_is_reverted_by_the_names_of_its_files(desk: Desk) -> None:
    call = desk.write("/d/a", "1\n")
    desk.write("/d/b", "2\n")
    with pytest.raises(MergeConflict) as caught:
        desk.session.revert(call)
    assert [(entry.path, entry.kind) for entry in caught.value.conflicts] == [("/d", "deleted"), ("/d/b", "deleted")]
    assert desk.session.revert(call, paths=["/d/a"]).paths == ("/d/a",)
    assert (desk.text("/d/a"), desk.text("/d/b")) == (None, "2\n")


def test_the_files_of_a_moment_are_restored(desk: Desk) -> None:
    desk.write("/a", "1\n")
    desk.session.snapshot("early")
    desk.write("/a", "2\n")
    desk.write("/b", "3\n")
    desk.session.restore("early", paths=["/a"])
    assert (desk.text("/a"), desk.text("/b")) == ("1\n", "3\n")
    desk.session.restore("early")
    assert desk.text("/b") is None
    desk.session.undo(2)
    assert (desk.text("/a"), desk.text("/b")) == ("2\n", "3\n")


def test_a_call_whose_record_may_have_been_dropped_is_reported_as_such() -> None:
    session = Session(session_id="s")
    files = InMemoryFilesystem(session)
    for number in range(3):
        with session.transaction(cause=f"c{number}"):
            files.write(f"/{number}", "x")
    session.compact(keep=1)

    with pytest.raises(SessionError, match=r"no call of session 's' has this id \(records 1 to 2 were dropped\); "):
        session.revert("c0")

    assert session.revert("c2").paths == ("/2",)


def test_a_snapshot_is_restored_after_its_records_were_dropped(desk: Desk) -> None:
    desk.write("/a", "1\n")
    desk.write("/sub/b", "2\n")
    desk.session.snapshot("early")
    desk.call("rm", path="/a")
    desk.call("mv", source="/sub/b", destination="/c")
    for number in range(5):
        desk.write("/d", f"{number}\n")
    desk.session.compact(keep=2)

    def texts() -> dict[str, str | None]:
        return {path: text for path in ("/a", "/sub/b", "/c", "/d") if (text := desk.text(path)) is not None}

    now, early = texts(), {"/a": "1\n", "/sub/b": "2\n"}
    assert desk.session.rollback("early", preview=True).paths == ("/a", "/d", "/sub/b")
    assert desk.session.restore("early", preview=True).paths == ("/a", "/d", "/sub/b")
    assert desk.session.restore("early", paths=["/a"]).paths == ("/a",)
    assert texts() == {**now, "/a": "1\n"}
    desk.session.restore("early")
    assert texts() == early
    desk.session.undo(2)
    assert texts() == now
    desk.session.rollback("early")
    assert texts() == early


def test_a_restore_does_not_change_other_slices() -> None:
    desk = in_memory()
    desk.write("/a", "1\n")
    desk.session.snapshot("early")
    desk.session.install(Count)
    with desk.session.transaction(cause="turn"):
        desk.session.dispatch(Counted(2))
        desk.fs.write("/a", "2\n")
    desk.session.restore("early")
    assert desk.session[Count].latest() == Count(2)
    desk.session.undo()
    desk.session.revert("turn")
    assert desk.session[Count].all() == ()
    assert desk.text("/a") == "1\n"


def test_moves_are_followed() -> None:
    desk = in_memory()
    desk.write("/a", LINES)
    early = desk.edit("/a", "line 2", "two")
    desk.call("mv", source="/a", destination="/b")
    desk.session.revert(early)
    assert (desk.text("/a"), desk.text("/b")) == (None, LINES)


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("c9", SessionError, "cannot revert 'c9': no call of session 's' has this id; pass the id of a call that"),
        ("call-l", SessionError, "no call of session 's' has this id; did you mean 'call-1'?"),
        (99, UnknownSnapshot, "cannot revert records 99 to 99"),
        (0, UnknownSnapshot, "cannot revert records 0 to 0"),
        (range(3, 1), ValueError, "pass a range"),
    ],
)
def test_missing_calls_and_records_cannot_be_reverted(target: Any, error: type[Exception], message: str) -> None:
    desk = in_memory()
    desk.write("/a", "1\n")
    desk.tools.call("write_file", {"path": "/b", "content": "2\n"}, call_id="call-1")
    with pytest.raises(error, match=message):
        desk.session.revert(target)
    with pytest.raises(TypeError, match="pass a sequence of paths"):
        desk.session.revert("c1", paths="/a")
    with pytest.raises(ValueError, match="pass 'keep' or 'replace'"):
        desk.session.revert("c1", foreign="x")  # type: ignore[arg-type]


def test_a_call_that_failed_is_not_reported_as_unknown() -> None:
    desk = in_memory()
    desk.write("/a", "1\n")
    session = desk.session
    with suppress(KeyError), session.transaction(cause="outer"):
        with session.transaction(cause="inner"):
            desk.fs.write("/b", "2\n")
        raise KeyError
    for cause in ("outer", "inner"):
        with pytest.raises(SessionError, match="it failed, and its changes were rolled back at once; pass the id of"):
            session.revert(cause)
    call = desk.call("edit_file", path="/a", old_string="missing", new_string="x")
    with pytest.raises(SessionError, match="it changed nothing that can be undone"):
        session.revert(call)


def test_a_failed_call_of_a_merged_fork_is_not_reported_as_unknown() -> None:
    session = Session(session_id="s")
    fork = session.fork()
    with suppress(KeyError), fork.transaction(cause="failed"):
        InMemoryFilesystem(fork).write("/b", "2\n")
        raise KeyError
    InMemoryFilesystem(fork).write("/c", "3\n")
    session.merge(fork)
    with pytest.raises(SessionError, match="it failed, and its changes were rolled back at once"):
        session.revert("failed")


def test_a_caller_learns_that_a_file_it_read_has_changed(desk: Desk) -> None:
    desk.write("/a", "1\n")
    desk.write("/a", "2\n")
    desk.session.undo()
    result = desk.tools.call("write_file", {"path": "/a", "content": "3\n"}, caller="ann")
    assert (result.status, desk.text("/a")) == ("conflict", "1\n")


def test_undo_and_redo_work_after_saving_and_loading(desk: Desk, tmp_path: Path) -> None:
    desk.write("/a", LINES)
    desk.edit("/a", "line 2", "two")
    desk.session.undo()
    desk.session.save(tmp_path / "s.json")
    again = Session.load(tmp_path / "s.json")
    if isinstance(desk.fs, InMemoryFilesystem):
        again.redo()
        assert InMemoryFilesystem(again).read("/a").content == LINES.replace("line 2", "two")
    check_history(desk.session, tmp_path / "t.json")


def test_a_durable_session_keeps_undone_work_redoable(tmp_path: Path) -> None:
    with Session.open(tmp_path / "stored", "s") as session:
        desk = Desk(session, InMemoryFilesystem(session))
        desk.write("/a", "1\n")
        desk.write("/a", "2\n")
        session.undo()
    with Session.open(tmp_path / "stored", "s") as session:
        files = InMemoryFilesystem(session)
        assert files.read("/a").content == "1\n"
        session.redo()
        assert files.read("/a").content == "2\n"


def test_a_read_is_not_an_operation_and_does_not_prevent_redo(desk: Desk) -> None:
    desk.write("/a", "1\n")
    desk.session.undo()
    assert desk.text("/below") in (None, LINES)
    desk.session.redo()
    assert desk.text("/a") == "1\n"
    desk.session.undo()
    with pytest.raises(SessionError, match="nothing to undo"):
        desk.session.undo()


def test_a_rollback_to_the_very_beginning_is_undone(desk: Desk) -> None:
    desk.write("/a", "1\n")
    desk.session.rollback(0)
    desk.session.undo()
    assert desk.text("/a") == "1\n"
    desk.session.redo()
    assert desk.text("/a") is None


def test_an_undo_skips_a_file_that_a_person_removed(tmp_path: Path) -> None:
    desk = on_host(tmp_path)
    desk.write("/b", "1\n")
    desk.write("/a", "2\n")
    (tmp_path / "root" / "a").unlink()
    assert (desk.session.undo().paths, desk.session.undo().paths) == ((), ("/b",))
    desk.session.redo(2)
    assert (desk.text("/a"), desk.text("/b")) == (None, "1\n")


def test_work_whose_cause_looks_like_a_reversion_is_a_separate_operation(desk: Desk) -> None:
    first = desk.write("/a", "1\n")
    with desk.session.transaction(cause=f"revert {first}"):
        desk.fs.write("/b", "2\n")
    desk.session.revert(first)
    desk.session.undo()
    assert (desk.text("/a"), desk.text("/b")) == ("1\n", "2\n")


@pytest.mark.parametrize("path", ["d/a", "/d/", "d/", "/x/../d/a", "./d", "\\d\\a", "//d//a"])
def test_paths_are_normalized_as_everywhere_else(desk: Desk, path: str) -> None:
    call = desk.write("/d/a", "1\n")
    desk.write("/b", "2\n")
    desk.session.revert(call, paths=[path])
    assert (desk.text("/d/a"), desk.text("/b")) == (None, "2\n")


def test_a_path_above_the_root_is_refused(desk: Desk) -> None:
    call = desk.write("/a", "1\n")
    before = desk.session.seq
    with pytest.raises(PermissionError):
        desk.session.revert(call, paths=["/../a"], preview=True)
    assert (desk.text("/a"), desk.session.seq) == ("1\n", before)


def test_the_records_of_work_in_memory_and_on_the_host_lead_to_its_state(tmp_path: Path) -> None:
    desk = on_host(tmp_path)
    files = InMemoryFilesystem(desk.session)
    with desk.session.transaction(cause="both"):
        files.write("/a", "1\n")
        desk.fs.write("/b", "1\n")
    desk.session.undo()
    assert (files.exists("/a"), desk.text("/b")) == (False, None)
    check_history(desk.session, tmp_path / "s.json")


def test_a_failure_leaves_files_and_session_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk, root = on_host(tmp_path), tmp_path / "root"
    desk.write("/a", "1\n")
    desk.write("/a", "2\n")
    before = desk.session[Count].all(), desk.text("/a")

    def fails(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(type(desk.session), "_apply", fails)
    with pytest.raises(OSError, match="the disk is full"):
        desk.session.undo()
    monkeypatch.undo()
    assert (desk.session[Count].all(), desk.text("/a")) == before
    assert (root / "a").read_text() == "2\n"
    desk.session.undo()
    assert desk.text("/a") == "1\n"
