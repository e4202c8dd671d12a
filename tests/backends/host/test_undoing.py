"""Undoing in a directory that others change too: the session's own changes are undone, whatever others did."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from errno import EBUSY
from pathlib import Path

import pytest

from tests.models.host import exact, left_in_journals, record
from tests.sampling import sample
from weakfs import RollbackIncomplete, Session
from weakfs.backends import HostFilesystem
from weakfs.snapshots import restore
from weakfs.snapshots.undo_journal.log import Frame
from weakfs.snapshots.undo_journal.undo import UndoStep

CALLS = ("mkdir", "rename", "link", "unlink", "symlink", "pwrite", "write", "utime", "rmdir", "chmod", "ftruncate")
# More than the number of such calls in a transaction and its end.
MOMENTS = 110

CHANGED = {"a": "a", "x/y": "new", "moved/b": "changed", "copied/b": "changed", "copied/e/c": "d/e/c"}


def furnish(root: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    for name in ("a", "d/b", "d/e/c"):
        (root / name).write_text(name)


def contents(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    furnish(tmp_path / "root")
    return tmp_path / "root"


def opened(root: Path) -> HostFilesystem:
    return HostFilesystem(root, session=Session(), store=root.parent / "store")


def test_opening_a_root_again_leaves_a_running_transaction_alone(root: Path) -> None:
    fs = opened(root)
    before = record(root)
    with pytest.raises(RuntimeError), fs.session.transaction():
        fs.write("/a", "changed")
        fs.delete("/d", recursive=True)
        other = opened(root)
        command = (
            "import sys; from weakfs.backends import HostFilesystem; HostFilesystem(sys.argv[1], store=sys.argv[2])"
        )
        subprocess.run([sys.executable, "-c", command, str(root), str(root.parent / "store")], check=True)
        assert other.read("/a").content == "changed"
        assert not other.exists("/d")
        raise RuntimeError
    assert exact(record(root)) == exact(before)


def test_entries_of_a_directory_that_others_removed_are_restored_with_it(root: Path) -> None:
    fs = opened(root)
    with pytest.raises(RuntimeError), fs.session.transaction():
        fs.write("/d/e/c", "changed")
        fs.move("/a", "/moved")
        fs.delete("/d/b")
        shutil.rmtree(root / "d")
        raise RuntimeError
    assert {path: seen.content for path, seen in record(root).items() if seen.kind == "file"} == {
        b"a": b"a",
        b"d/b": b"d/b",
        b"d/e/c": b"d/e/c",
    }


def test_a_moved_entry_that_others_removed_does_not_stop_the_rest_of_an_undo(root: Path) -> None:
    fs = opened(root)
    with pytest.raises(RuntimeError), fs.session.transaction():
        fs.write("/d/b", "changed")
        fs.move("/a", "/moved")
        (root / "moved").unlink()
        raise RuntimeError
    assert sorted(path for path in record(root) if path) == [b"d", b"d/b", b"d/e", b"d/e/c"]
    assert fs.read("/d/b").content == "d/b"


def test_an_entry_that_others_put_in_place_of_a_moved_one_is_not_mistaken_for_it(root: Path) -> None:
    fs = opened(root)
    with pytest.raises(RuntimeError), fs.session.transaction():
        fs.move("/d/b", "/b")
        shutil.rmtree(root / "d")
        (root / "b").rename(root / "taken")
        (root / "b").mkdir()
        (root / "b" / "theirs").write_text("theirs")
        raise RuntimeError
    assert not (root / "d" / "b").exists()


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced"])
@pytest.mark.parametrize("is_killed", [False, True])
def test_what_was_moved_before_a_command_replaced_it_is_moved_back(
    root: Path, monkeypatch: pytest.MonkeyPatch, how: str, is_killed: bool
) -> None:
    fs, before, undo = opened(root), record(root), UndoStep.undo

    def undo_whole(step: UndoStep, frame: Frame) -> None:
        if frame["op"] != "tree":
            raise OSError(EBUSY, "something is in the way")
        undo(step, frame)

    with (
        monkeypatch.context() as patch,
        pytest.raises(RollbackIncomplete if is_killed else RuntimeError),
        fs.session.transaction(),
    ):
        fs.move("/a", "/moved")
        fs.move("/d/e", "/x/deep/e")
        fs.move("/x/deep", "/x/deeper")
        fs.move("/x/deeper/e/c", "/x/c")
        with fs.checkout():
            if how == "renamed":
                (root / "moved").rename(root / "d" / "other")
                (root / "x").rename(root / "y")
            else:
                (root / "moved").unlink()
                shutil.rmtree(root / "x")
            if how == "replaced":
                (root / "moved").mkdir()
                (root / "x").write_text("x")
        if is_killed:
            patch.setattr(UndoStep, "undo", undo_whole)
        raise RuntimeError
    if is_killed:
        fs.session.repair()

    assert exact(record(root)) == exact(before)


@pytest.mark.parametrize("removed", [["a"], ["b"], ["a", "b"]], ids=str)
@pytest.mark.parametrize("deleted", [None, "/a", "/b"])
def test_a_linked_file_that_was_changed_before_a_command_replaced_it_is_restored_under_all_names(
    root: Path, removed: list[str], deleted: str | None
) -> None:
    (root / "b").hardlink_to(root / "a")
    fs, before = opened(root), record(root)
    with pytest.raises(RuntimeError), fs.session.transaction():
        if deleted is not None:
            fs.delete(deleted)
        fs.write("/a" if deleted != "/a" else "/b", "changed")
        with fs.checkout():
            for name in removed:
                (root / name).unlink(missing_ok=True)
        raise RuntimeError
    assert exact(record(root)) == exact(before)


def test_a_directory_that_others_swapped_for_a_link_stops_undoing_and_is_not_followed(root: Path) -> None:
    fs = opened(root)
    outside = root.parent / "outside"
    shutil.copytree(root / "d", outside)
    (outside / "e" / "c").write_text("the secret")
    before = record(outside)
    with pytest.raises(RollbackIncomplete, match=r"repair\(\)"), fs.session.transaction():
        fs.write("/d/e/c", "changed")
        (root / "d").rename(root / "away")
        (root / "d").symlink_to(outside)
        raise RuntimeError
    with pytest.raises(RollbackIncomplete):
        fs.write("/a", "refused")
    assert record(outside) == before

    (root / "d").unlink()
    (root / "away").rename(root / "d")
    fs.session.repair()

    assert fs.read("/d/e/c").content == "d/e/c"
    assert record(outside) == before
    fs.write("/a", "works again")


def test_a_half_done_restore_is_no_longer_unfinished_work_after_repair(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = opened(root)
    before, undo = record(root), UndoStep.undo

    def undo_whole(step: UndoStep, frame: Frame) -> None:
        if frame["op"] != "tree":
            raise OSError(EBUSY, "something is in the way")
        undo(step, frame)

    def fail(*_: object) -> None:
        raise OSError(EBUSY, "something is in the way")

    with monkeypatch.context() as patch, pytest.raises(RollbackIncomplete), fs.checkout():
        (root / "a").write_text("changed")
        (root / "new").write_text("new")
        patch.setattr(UndoStep, "undo", undo_whole)
        patch.setattr(restore, "rename_or_create", fail)
        raise RuntimeError
    fs.session.repair()

    assert exact(record(root)) == exact(before)
    fs.write("/a", "works again")
    fs.restore(fs.snapshot())


def test_files_that_others_put_into_a_new_directory_are_removed_with_it(root: Path) -> None:
    fs = opened(root)
    before = record(root)
    with pytest.raises(RuntimeError), fs.session.transaction():
        fs.mkdir("/new/dir")
        (root / "new" / "dir" / "theirs").write_text("theirs")
        os.mkfifo(root / "new" / "fifo")
        raise RuntimeError
    assert exact(record(root)) == exact(before)


def some_changes(fs: HostFilesystem) -> None:
    with fs.session.transaction():
        fs.write("/d/b", "changed")
        fs.write("/x/y", "new")
        fs.move("/d", "/moved")
        fs.copy("/moved", "/copied")
        fs.delete("/moved/e", recursive=True)


def interrupted_at(moment: int, patch: pytest.MonkeyPatch) -> None:
    """Raise an interrupt before one of the system calls that change something."""
    calls = 0

    def watched(real: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **more: object) -> object:
            nonlocal calls
            calls += 1
            if calls == moment + 1:
                raise KeyboardInterrupt
            return real(*given, **more)

        return call

    for name in CALLS:
        patch.setattr(os, name, watched(getattr(os, name)))


@pytest.mark.parametrize("is_to_fail", [True, False])
def test_an_interrupt_at_any_call_leaves_a_transaction_complete_or_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_to_fail: bool
) -> None:
    states: set[str] = set()
    for moment in sample(range(MOMENTS)):
        root = tmp_path / str(moment) / "root"
        furnish(root)
        fs = opened(root)
        before = contents(root)
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt, RollbackIncomplete, RuntimeError):
            interrupted_at(moment, patch)
            with fs.session.transaction():
                some_changes(fs)
                if is_to_fail:
                    raise RuntimeError
        fs.session.repair()
        after = contents(root)

        assert after in (before, CHANGED), f"interrupted at call {moment}"
        assert not is_to_fail or after == before
        states.add("before" if after == before else "changed")
        del fs
        gc.collect()
        opened(root)
        assert contents(root) == after, f"interrupted at call {moment}"
        assert not left_in_journals(root.parent / "store", after_interrupt=True)
    assert states == ({"before"} if is_to_fail else {"before", "changed"})


def test_a_restore_puts_files_into_a_directory_that_its_owner_may_not_enter(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    fs = HostFilesystem(tmp_path / "root", session=Session(), store=tmp_path / "store")
    fs.write("/kept/file", "one")
    snapshot = fs.snapshot()
    fs.delete("/kept/file")
    # It is empty, so its owner can scan it without entering it; without root's privileges, nothing can be put into it.
    (tmp_path / "root" / "kept").chmod(0o400)
    fs.restore(snapshot)
    assert fs.read("/kept/file").content == "one"
    assert fs.stat("/kept").mode == 0o755


def test_the_permission_bits_of_a_linked_file_are_restored_under_all_names_that_a_command_separated(root: Path) -> None:
    (root / "b").hardlink_to(root / "a")
    fs, before = opened(root), record(root)
    with pytest.raises(RuntimeError), fs.session.transaction():
        fs.chmod("/a", 0o600)
        with fs.checkout():
            (root / "b").unlink()
        raise RuntimeError
    assert exact(record(root)) == exact(before)
