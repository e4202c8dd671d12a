"""Files that other programs changed: kept or replaced by undo and rollback, and reported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.models.host import record
from tests.models.two_sides import check_history
from tests.session.undo.desk import LINES, on_host
from weakfs import HostFilesystem, MergeConflict, SessionError
from weakfs.snapshots.directory.directory import HostDirectory


def test_an_edit_by_a_person_is_kept_and_named(tmp_path: Path) -> None:
    desk, root = on_host(tmp_path), tmp_path / "root"
    desk.write("/a", LINES)
    desk.edit("/a", "line 2", "two")
    (root / "a").write_text((root / "a").read_text().replace("line 7", "seven"))
    (root / "new").write_text("mine\n")
    assert desk.session.undo(preview=True).foreign == desk.session.undo().foreign == ("/a",)
    assert (root / "a").read_text() == LINES.replace("line 7", "seven")
    (root / "newer").write_text("mine\n")
    assert desk.session.redo().foreign == ("/newer",)
    assert (root / "a").read_text() == LINES.replace("line 2", "two").replace("line 7", "seven")
    assert {entry.name for entry in root.iterdir()} == {"a", "new", "newer"}


def test_an_edit_by_a_person_in_the_same_lines_is_a_conflict(tmp_path: Path) -> None:
    desk, root = on_host(tmp_path), tmp_path / "root"
    desk.write("/a", LINES)
    desk.edit("/a", "line 2", "two")
    (root / "a").write_text(LINES.replace("line 2", "zwei"))
    with pytest.raises(MergeConflict):
        desk.session.undo()
    assert (root / "a").read_text() == LINES.replace("line 2", "zwei")
    desk.session.undo(foreign="replace")
    assert (root / "a").read_text() == LINES
    desk.session.redo()
    assert (root / "a").read_text() == LINES.replace("line 2", "zwei")


def test_a_restore_replaces_changes_by_a_person_and_can_be_undone(tmp_path: Path) -> None:
    desk, root = on_host(tmp_path), tmp_path / "root"
    desk.write("/a", "1\n")
    desk.session.snapshot("early")
    (root / "new").write_text("mine\n")
    done = desk.session.restore("early")
    assert (done.foreign, [entry.name for entry in root.iterdir()]) == (("/new",), ["a"])
    desk.session.undo()
    assert (root / "new").read_text() == "mine\n"
    desk.write("/a", "2\n")
    assert desk.session.restore("early", foreign="keep").paths == ("/a",)
    assert (root / "new").read_text() == "mine\n"


def test_changes_by_a_person_are_not_kept_if_their_records_were_dropped(tmp_path: Path) -> None:
    desk, root = on_host(tmp_path), tmp_path / "root"
    desk.write("/a", "1\n")
    desk.session.snapshot("early")
    (root / "new").write_text("mine\n")
    desk.session.snapshot()
    desk.write("/a", "2\n")
    desk.session.compact(keep=1)
    for go_back in (desk.session.restore, desk.session.rollback):
        with pytest.raises(
            SessionError, match="the records that show which changes are theirs were dropped; pass foreign='replace'"
        ):
            go_back("early", foreign="keep")
    assert host_texts(root) == {"a": "2\n", "new": "mine\n"}
    desk.session.restore("early", foreign="replace")
    assert host_texts(root) == {"a": "1\n"}


def test_a_rollback_names_changes_by_a_person_and_can_be_undone(tmp_path: Path) -> None:
    desk, root = on_host(tmp_path), tmp_path / "root"
    desk.write("/a", "1\n")
    desk.session.snapshot("early")
    desk.write("/a", "2\n")
    (root / "new").write_text("mine\n")
    before = desk.session.seq
    preview = desk.session.rollback("early", preview=True)
    assert (preview.foreign, preview.paths, desk.session.seq) == (("/new",), ("/a", "/new"), before)
    event = desk.session.rollback("early").event
    assert (event.foreign, host_texts(root)) == (("/new",), {"a": "1\n"})
    check_history(desk.session, tmp_path / "s.json")
    desk.session.undo()
    assert host_texts(root) == {"a": "2\n", "new": "mine\n"}


@pytest.mark.parametrize("target", ["early", 1])
def test_a_rollback_keeps_or_replaces_changes_by_a_person(target: str | int, tmp_path: Path) -> None:
    desk, root = on_host(tmp_path), tmp_path / "root"
    desk.write("/a", LINES)
    desk.session.snapshot("early")
    target = target if isinstance(target, str) else desk.session.seq
    desk.edit("/a", "line 2", "two")
    (root / "a").write_text(LINES.replace("line 2", "two").replace("line 7", "seven"))
    (root / "new").write_text("mine\n")
    kept = {"a": LINES.replace("line 7", "seven"), "new": "mine\n"}
    preview = desk.session.rollback(target, foreign="keep", preview=True)
    assert (preview.foreign, preview.paths) == (("/a", "/new"), ("/a",))
    assert (preview.bytes_added, preview.bytes_removed) == (len("line 2\n"), len("two\n"))
    assert desk.session.rollback(target, foreign="keep").event.foreign == preview.foreign
    assert host_texts(root) == kept
    desk.session.undo()
    assert host_texts(root) == {**kept, "a": kept["a"].replace("line 2", "two")}
    desk.session.rollback(target, foreign="replace")
    assert host_texts(root) == {"a": LINES}
    desk.session.undo()
    assert host_texts(root) == {**kept, "a": kept["a"].replace("line 2", "two")}
    check_history(desk.session, tmp_path / "s.json")


def test_lines_that_a_person_changed_too_are_kept(tmp_path: Path) -> None:
    desk, root = on_host(tmp_path), tmp_path / "root"
    desk.write("/a", LINES)
    desk.session.snapshot("early")
    desk.edit("/a", "line 2", "two")
    desk.edit("/a", "line 7", "seven")
    (root / "a").write_text(LINES.replace("line 2", "deux").replace("line 7", "seven"))
    desk.session.rollback("early", foreign="keep")
    assert (root / "a").read_text() == LINES.replace("line 2", "deux")
    with pytest.raises(ValueError, match="pass 'keep' or 'replace'"):
        desk.session.rollback("early", foreign="x")  # type: ignore[call-overload]


def host_texts(root: Path) -> dict[str, str]:
    return {entry.name: entry.read_text() for entry in root.iterdir()}


def test_undoing_a_command_keeps_earlier_changes_by_a_person(tmp_path: Path) -> None:
    desk, root = on_host(tmp_path), tmp_path / "root"
    desk.write("/a", "1\n")
    (root / "new").write_text("mine\n")
    assert isinstance(desk.fs, HostFilesystem)
    with desk.session.transaction(cause="sh"), desk.fs.checkout():
        (root / "a").unlink()
        (root / "made").write_text("2\n")
    desk.session.revert("sh")
    assert {entry.name: entry.read_text() for entry in root.iterdir()} == {"a": "1\n", "new": "mine\n"}


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("how", ["undo", "revert", "command"])
def test_a_change_made_before_a_call_on_a_fork_is_kept_when_the_call_is_undone(
    tmp_path: Path, how: str, is_known: bool
) -> None:
    path = tmp_path / "root" / "a"
    path.parent.mkdir()
    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    session = files.session
    if is_known:
        files.write("/a", "ours\n")
    path.write_text("theirs\n")
    fork = session.fork()
    bound = files.bind(fork)
    with fork.transaction(cause="call"):
        if how == "command":
            with bound.checkout():
                path.write_text("of the call\n")
        else:
            bound.write("/a", "of the call\n")
    session.merge(fork)

    done = session.undo() if how != "revert" else session.revert("call")

    assert path.read_text() == "theirs\n"
    assert done.paths == ("/a",)
    session.undo() if how == "revert" else session.redo()
    assert path.read_text() == "of the call\n"


def test_changes_between_merges_of_one_fork_are_kept_when_each_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "root" / "a"
    path.parent.mkdir()
    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    session = files.session
    fork = session.fork()
    bound = files.bind(fork)
    for number in (1, 2):
        path.write_text(f"theirs {number}\n")
        bound.write("/a", f"of the fork {number}\n")
        bound.write(f"/{number}", "new\n")
        session.merge(fork)
    session.undo()
    assert path.read_text() == "theirs 2\n"
    assert sorted(one.name for one in path.parent.iterdir()) == ["1", "a"]


@pytest.mark.parametrize("by_others", ["nothing", "an empty directory", "a directory with a file"])
@pytest.mark.parametrize("known", ["a file", "a directory", "a nested directory"])
@pytest.mark.parametrize("call", ["write", "move"])
def test_what_others_did_above_a_path_is_kept_when_a_call_is_undone(
    tmp_path: Path, known: str, by_others: str, call: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    files = HostFilesystem(root, store=tmp_path / "store")
    files.write("/source", "source\n")
    files.write({"a file": "/top", "a directory": "/top/old", "a nested directory": "/top/d/old"}[known], "ours\n")
    if known == "a file":
        (root / "top").unlink()
    else:
        shutil.rmtree(root / "top")
    if by_others != "nothing":
        (root / "top").mkdir(mode=0o700)
    if by_others == "a directory with a file":
        (root / "top" / "theirs").write_text("theirs\n")
    before = {path: seen.essence for path, seen in record(root).items()}
    if call == "write":
        files.write("/top/d/new", "new\n")
    else:
        files.move("/source", "/top/d/new")
    after = {path: seen.essence for path, seen in record(root).items()}
    files.session.undo()
    assert {path: seen.essence for path, seen in record(root).items()} == before
    files.session.redo()
    assert {path: seen.essence for path, seen in record(root).items()} == after


@pytest.mark.parametrize("number", range(1, 9))
def test_a_directory_that_others_move_away_for_a_moment_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    files = HostFilesystem(root, store=tmp_path / "store")
    files.write("/top/old", "ours\n")
    status, asked = HostDirectory.status, 0

    def missing_once(self: HostDirectory, segments: tuple[str, ...]) -> object:
        nonlocal asked
        asked += segments == ("top",)
        return None if segments == ("top",) and asked == number else status(self, segments)

    with monkeypatch.context() as patch:
        patch.setattr(HostDirectory, "status", missing_once)
        files.write("/top/new", "new\n")
    files.session.undo()
    assert [path.name for path in (root / "top").iterdir()] == ["old"]
