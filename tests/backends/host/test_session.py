"""A host directory and its session: changes as events, rollback of both, and resuming in another process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attrs import frozen

from weakfs import Session, SessionClosed
from weakfs.backends import HostFilesystem
from weakfs.filesystem import FilesystemSnapshot
from weakfs.reducers import EntryFound, ExternalFsSnapshot, ExternalTrees, FileAppended, FileSpliced, FileWritten


@frozen
class Watch:
    """An empty slice."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src/app.py").write_text("port = 80\n")
    (root / "old.txt").write_text("old\n")
    return root


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, session=Session(), store=tmp_path / "store")


def test_changes_are_recorded_as_the_same_events_as_in_memory(fs: HostFilesystem) -> None:
    fs.write("/new.txt", "a")
    fs.append("/new.txt", "b")
    fs.splice("/new.txt", [(0, 1, b"c")])
    events = [record.event for record in fs.session.records]
    assert [type(event) for event in events] == [FileWritten, FileAppended, FileSpliced]
    assert {event.filesystem for event in events} == {fs.filesystem_id}


def test_the_content_before_the_first_change_of_a_file_is_recorded_once(fs: HostFilesystem, root: Path) -> None:
    fs.append("/src/app.py", "host = 'a'\n")
    fs.append("/src/app.py", "name = 'b'\n")
    found = [record.event for record in fs.session.records if isinstance(record.event, EntryFound)]
    assert [event.path for event in found] == ["/src/app.py"]
    known = (fs.session[ExternalTrees].latest() or ExternalTrees()).known(fs.filesystem_id)
    assert known.found.total_size == len("port = 80\n")
    assert known.tree.total_size == (root / "src/app.py").stat().st_size


def test_a_change_from_outside_is_noticed_when_the_file_is_changed_again(fs: HostFilesystem, root: Path) -> None:
    fs.write("/a.txt", "ours")
    (root / "a.txt").write_text("theirs, longer")
    fs.append("/a.txt", "!")
    assert (root / "a.txt").read_text() == "theirs, longer!"
    known = (fs.session[ExternalTrees].latest() or ExternalTrees()).tree(fs.filesystem_id)
    assert known.digest != fs.tree().digest  # the session has not seen the other files
    assert known.total_size == len("theirs, longer!")


def test_the_cause_of_a_change_is_the_call_that_made_it(fs: HostFilesystem) -> None:
    with fs.session.transaction(cause="call-1"):
        fs.write("/a.txt", "text")
    assert fs.session.records[-1].cause == "call-1"


def test_a_failed_transaction_leaves_the_directory_as_it_was(fs: HostFilesystem, root: Path) -> None:
    before, inode = fs.tree().fingerprint, (root / "src/app.py").stat().st_ino
    times = {path: path.stat().st_mtime_ns for path in (root, root / "src", root / "src/app.py")}
    with pytest.raises(LookupError), fs.session.transaction():
        fs.write("/src/app.py", "broken")
        fs.write("/src/new/deep.txt", "text")
        fs.move("/old.txt", "/src/moved.txt")
        fs.chmod("/src", 0o700)
        fs.delete("/src", recursive=True)
        raise LookupError
    assert fs.tree().fingerprint == before
    assert (root / "src/app.py").stat().st_ino == inode
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_a_nested_transaction_is_undone_alone(fs: HostFilesystem, root: Path) -> None:
    with fs.session.transaction():
        fs.write("/kept.txt", "kept")
        with pytest.raises(LookupError), fs.session.transaction():
            fs.write("/kept.txt", "lost")
            fs.write("/lost.txt", "lost")
            raise LookupError
        fs.append("/kept.txt", "!")
    assert (root / "kept.txt").read_text() == "kept!"
    assert not (root / "lost.txt").exists()


def test_an_outer_transaction_undoes_the_inner_one_that_succeeded(fs: HostFilesystem) -> None:
    before = fs.tree().fingerprint
    with pytest.raises(LookupError), fs.session.transaction():
        with fs.session.transaction():
            fs.write("/inner.txt", "text")
        raise LookupError
    assert fs.tree().fingerprint == before


def test_a_reducer_that_raises_leaves_the_directory_as_it_was(fs: HostFilesystem) -> None:
    def refuse(value: object, event: object) -> object:
        raise LookupError("refused")

    fs.session[Watch].register(FileWritten, refuse)
    before = fs.tree().fingerprint
    with pytest.raises(LookupError):
        fs.write("/src/app.py", "broken")
    assert fs.tree().fingerprint == before


def test_a_closed_session_refuses_changes(fs: HostFilesystem) -> None:
    before = fs.tree().fingerprint
    fs.session.close("it was cancelled")
    with pytest.raises(SessionClosed):
        fs.write("/a.txt", "text")
    assert fs.tree().fingerprint == before


def test_a_rollback_restores_the_directory_and_can_be_undone(fs: HostFilesystem, root: Path) -> None:
    fs.session.snapshot("start")
    fs.write("/src/app.py", "port = 8080\n")
    os.remove(root / "old.txt")
    changed = fs.tree().fingerprint
    rolled = fs.session.rollback("start")
    assert (root / "src/app.py").read_text() == "port = 80\n"
    assert (root / "old.txt").read_text() == "old\n"
    fs.session.rollback(rolled.seq - 1)
    assert fs.tree().fingerprint == changed


def test_a_rollback_to_a_record_undoes_later_changes_made_through_the_session(fs: HostFilesystem, root: Path) -> None:
    fs.write("/src/app.py", "first\n")
    seq = fs.session.seq
    fs.write("/src/app.py", "second\n")
    fs.delete("/old.txt")
    fs.write("/made/new.txt", "text")
    (root / "by_others.txt").write_text("stays")
    fs.session.rollback(seq)
    assert (root / "src/app.py").read_text() == "first\n"
    assert (root / "old.txt").read_text() == "old\n"
    assert not (root / "made").exists()
    assert (root / "by_others.txt").read_text() == "stays"
    fs.session.rollback(0)
    assert (root / "src/app.py").read_text() == "port = 80\n"


def test_every_snapshot_is_recorded_and_survives_a_rollback(fs: HostFilesystem) -> None:
    taken = [fs.snapshot("one"), fs.snapshot("two")]
    fs.session.rollback(0)
    kept = [one for one in fs.session[ExternalFsSnapshot].all() if one.tag]
    assert [one.snapshot_id for one in kept] == [one.snapshot_id for one in taken]
    assert [one.kind for one in kept] == ["tree", "tree"]


@pytest.mark.parametrize("embed", [False, True])
def test_a_loaded_session_rolls_the_same_root_back_without_the_store(root: Path, tmp_path: Path, embed: bool) -> None:
    first = HostFilesystem(root, session=Session(), store=tmp_path / "one")
    first.session.snapshot("start")
    first.write("/src/app.py", "changed\n")
    first.delete("/old.txt")
    first.session.save(tmp_path / "session.json", embed=embed)
    assert (tmp_path / "session.json.blobs").exists() is not embed

    session = Session.load(tmp_path / "session.json")
    HostFilesystem(root, session=session, store=tmp_path / "two")
    session.rollback("start")
    assert (root / "src/app.py").read_text() == "port = 80\n"
    assert (root / "old.txt").read_text() == "old\n"


def test_a_snapshot_is_refused_on_another_root_unless_asked_for(fs: HostFilesystem, tmp_path: Path) -> None:
    other_root = tmp_path / "other"
    other_root.mkdir()
    other = HostFilesystem(other_root, store=tmp_path / "elsewhere")
    snapshot = fs.snapshot()
    with pytest.raises(ValueError, match="foreign=True"):
        other.restore(snapshot)
    other.restore(snapshot, foreign=True)
    assert other.tree().fingerprint == fs.tree().fingerprint


def test_a_new_object_finds_a_snapshot_by_its_entry_in_the_slice_alone(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    before = fs.tree().fingerprint
    fs.snapshot("kept")
    entry = fs.session[ExternalFsSnapshot].all()[-1]
    fs.delete("/src", recursive=True)
    again = HostFilesystem(root, store=tmp_path / "store")
    again.restore(
        FilesystemSnapshot(
            entry.snapshot_id, entry.filesystem_id, entry.created_ns, entry.kind, entry.ref, entry.root_path
        )
    )
    assert again.tree().fingerprint == before


def test_two_objects_over_one_root_are_one_filesystem_to_their_session(fs: HostFilesystem, root: Path) -> None:
    reader = HostFilesystem(root, session=fs.session, read_only=True)
    assert reader.external is fs.external
    before = fs.tree().fingerprint
    with pytest.raises(LookupError), fs.session.transaction():
        fs.write("/a.txt", "text")
        assert reader.read("/a.txt").content == "text"
        raise LookupError
    assert reader.tree().fingerprint == before


def test_a_filesystem_that_is_opened_inside_transactions_is_undone_with_each_of_them(
    root: Path, tmp_path: Path
) -> None:
    session = Session()
    with pytest.raises(LookupError), session.transaction():
        with pytest.raises(LookupError), session.transaction():
            HostFilesystem(root, session=session, store=tmp_path / "store").write("/old.txt", "inner")
            raise LookupError
        assert (root / "old.txt").read_text() == "old\n"
        HostFilesystem(root, session=session).write("/old.txt", "outer")
        raise LookupError
    assert (root / "old.txt").read_text() == "old\n"


def test_a_filesystem_snapshot_is_restored_from_the_session_if_the_store_is_gone(root: Path, tmp_path: Path) -> None:
    first = HostFilesystem(root, session=Session(), store=tmp_path / "one")
    before = first.tree().fingerprint
    first.snapshot("start")
    first.delete("/src", recursive=True)
    first.session.save(tmp_path / "session.json")

    session = Session.load(tmp_path / "session.json")
    again = HostFilesystem(root, session=session, store=tmp_path / "two")
    again.restore(session[ExternalFsSnapshot].all()[0])
    assert again.tree().fingerprint == before


@pytest.mark.parametrize("path", ["/d/new", "/d/e/new", "/d/made/new"])
def test_an_existing_directory_is_not_undone_with_an_entry_created_in_it(tmp_path: Path, path: str) -> None:
    (tmp_path / "root/d/e").mkdir(parents=True)
    (tmp_path / "root/d/e").chmod(0o750)
    (tmp_path / "root/d/kept").write_text("kept")
    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    before = files.tree().fingerprint
    files.write(path, "new")

    files.session.rollback(0)

    assert files.tree().fingerprint == before
    files.session.rollback(files.session.seq - 1)
    assert files.read(path).content == "new"


@pytest.mark.parametrize("change", ["chmod", "delete", "move", "chmod above"])
@pytest.mark.parametrize("path", ["/d/e/kept", "/d/e/new"])
@pytest.mark.parametrize("how", ["undo", "rollback"])
def test_the_permission_bits_of_a_directory_are_restored_after_a_change_of_an_entry_in_it(
    tmp_path: Path, path: str, change: str, how: str
) -> None:
    (tmp_path / "root/d/e").mkdir(parents=True)
    (tmp_path / "root/d/e/kept").write_text("kept")
    (tmp_path / "root/d/e").chmod(0o750)
    (tmp_path / "root/d").chmod(0o2775)
    session = Session()
    files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
    before = files.tree().fingerprint
    with session.transaction():
        files.write(path, "new")
        match change:
            case "chmod":
                files.chmod("/d/e", 0o700)
            case "chmod above":
                files.chmod("/d", 0o700)
            case "delete":
                files.delete("/d", recursive=True)
            case _:
                files.move("/d", "/moved")
    after = files.tree().fingerprint

    # Each change is an operation of its own.
    if how == "undo":
        session.undo(2)
    else:
        session.rollback(0)

    assert files.tree().fingerprint == before
    if how == "undo":
        session.redo(2)
    else:
        session.rollback(session.seq - 1)
    assert files.tree().fingerprint == after


def test_a_mode_that_others_set_is_what_an_undo_restores(fs: HostFilesystem, root: Path) -> None:
    fs.write("/src/app.py", "port = 8080\n")
    (root / "src").chmod(0o700)
    fs.delete("/src", recursive=True)

    fs.session.undo()

    assert fs.stat("/src").mode == 0o700
