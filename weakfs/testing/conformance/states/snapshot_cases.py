"""Snapshots and restores: exact and repeatable, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from weakfs.filesystem import Filesystem, FilesystemSnapshot
from weakfs.reducers.timestamps import as_datetime
from weakfs.testing.conformance.harness import FilesystemCases, refused


def workspace(fs: Filesystem) -> None:
    fs.write("/src/app.py", "print('hello')\n")
    fs.write_bytes("/src/logo.png", b"\x89PNG\r\n\0\xff")
    fs.write("/src/lib/util.py", "x = 1\n")
    fs.write("/.gitignore", "build/\n*.log\n")
    fs.write("/build/out.log", "ignored by git, kept by a snapshot\n")
    fs.write("/vendor/.git/config", "[core]\n")
    fs.mkdir("/empty/inner")
    fs.symlink("src/app.py", "/link")
    fs.chmod("/src/lib/util.py", 0o755)


def change_much(fs: Filesystem) -> None:
    fs.delete("/src", recursive=True)
    fs.write("/src", "a file where a directory was")
    fs.delete("/link")
    fs.mkdir("/link/now/a/directory")
    fs.move("/empty", "/vendor/empty")
    fs.copy("/vendor", "/copy")
    fs.write("/.gitignore", "")


CHANGES: dict[str, Callable[[Filesystem], object]] = {
    "nothing": lambda fs: None,
    "write_a_new_file": lambda fs: fs.write("/new/a.txt", "new"),
    "overwrite": lambda fs: fs.write("/src/app.py", "changed\n"),
    "overwrite_with_the_same_size": lambda fs: fs.write("/src/app.py", "print('world')\n"),
    "append": lambda fs: fs.append("/src/app.py", "more\n"),
    "empty_a_file": lambda fs: fs.write("/src/app.py", ""),
    "delete_a_file": lambda fs: fs.delete("/src/app.py"),
    "delete_a_binary_file": lambda fs: fs.delete("/src/logo.png"),
    "delete_a_directory": lambda fs: fs.delete("/src", recursive=True),
    "delete_an_empty_directory": lambda fs: fs.delete("/empty/inner"),
    "delete_an_ignored_file": lambda fs: fs.delete("/build", recursive=True),
    "change_an_ignored_file": lambda fs: fs.write("/build/out.log", "changed"),
    "write_a_new_ignored_file": lambda fs: fs.write("/build/new.log", "new"),
    "change_a_nested_repository": lambda fs: fs.write("/vendor/.git/config", "[user]\n"),
    "delete_a_nested_repository": lambda fs: fs.delete("/vendor/.git", recursive=True),
    "make_a_directory": lambda fs: fs.mkdir("/made/inner"),
    "fill_an_empty_directory": lambda fs: fs.write("/empty/inner/a.txt", "text"),
    "delete_a_link": lambda fs: fs.delete("/link"),
    "make_a_link": lambda fs: fs.symlink("src", "/other"),
    "chmod_a_file": lambda fs: fs.chmod("/src/app.py", 0o600),
    "chmod_a_directory": lambda fs: fs.chmod("/src", 0o700),
    "move_a_file": lambda fs: fs.move("/src/app.py", "/src/main.py"),
    "move_a_directory": lambda fs: fs.move("/src", "/lib"),
    "move_onto_a_file": lambda fs: fs.move("/src/lib/util.py", "/src/app.py"),
    "copy_a_directory": lambda fs: fs.copy("/src", "/copy"),
    "much": change_much,
}

each_change = pytest.mark.parametrize("change", CHANGES)


class SnapshotCases(FilesystemCases):
    @each_change
    def test_a_restore_undoes(self, fs: Filesystem, change: str) -> None:
        workspace(fs)
        before = fs.tree().fingerprint
        snapshot = fs.snapshot()
        CHANGES[change](fs)
        fs.restore(snapshot)
        assert fs.tree().fingerprint == before

    @each_change
    def test_restoring_a_later_snapshot_redoes(self, fs: Filesystem, change: str) -> None:
        workspace(fs)
        earlier = fs.snapshot()
        CHANGES[change](fs)
        changed = fs.tree().fingerprint
        later = fs.snapshot()
        fs.restore(earlier)
        fs.restore(later)
        assert fs.tree().fingerprint == changed

    @each_change
    def test_a_dry_run_changes_nothing(self, fs: Filesystem, change: str) -> None:
        workspace(fs)
        snapshot = fs.snapshot()
        CHANGES[change](fs)
        changed = fs.tree().fingerprint
        fs.restore(snapshot, dry_run=True)
        assert fs.tree().fingerprint == changed

    @each_change
    def test_a_dry_run_reports_what_the_restore_does(self, fs: Filesystem, change: str) -> None:
        workspace(fs)
        snapshot = fs.snapshot()
        CHANGES[change](fs)
        planned = fs.restore(snapshot, dry_run=True)
        done = fs.restore(snapshot)
        assert (planned.written, planned.removed) == (done.written, done.removed)
        assert (planned.dry_run, done.dry_run) == (True, False)
        assert planned.snapshot_id == done.snapshot_id == snapshot.snapshot_id

    def test_a_snapshot_knows_when_it_was_taken(self, fs: Filesystem) -> None:
        taken = fs.snapshot("kept")
        assert taken.created_at.utcoffset() == timedelta(0)
        assert taken.created_at == as_datetime(taken.created_ns)

    def test_a_report_names_what_was_written_and_what_was_removed(self, fs: Filesystem) -> None:
        for name in ("changed", "deleted", "kept"):
            fs.write(f"/d/{name}.txt", name)
        snapshot = fs.snapshot()
        fs.write("/d/changed.txt", "other")
        fs.delete("/d/deleted.txt")
        fs.write("/d/new.txt", "new")
        report = fs.restore(snapshot)
        assert report.written == ("/d/changed.txt", "/d/deleted.txt")
        assert report.removed == ("/d/new.txt",)
        assert report.changed == 3

    def test_a_restore_with_nothing_to_do_reports_nothing(self, fs: Filesystem) -> None:
        workspace(fs)
        report = fs.restore(fs.snapshot())
        assert (report.written, report.removed, report.changed) == ((), (), 0)

    def test_restored_contents_are_the_same_bytes(self, fs: Filesystem) -> None:
        workspace(fs)
        snapshot = fs.snapshot()
        change_much(fs)
        fs.restore(snapshot)
        assert fs.read("/src/app.py").content == "print('hello')\n"
        assert fs.read_bytes("/src/logo.png").content == b"\x89PNG\r\n\0\xff"
        assert fs.readlink("/link") == "src/app.py"
        assert fs.is_directory("/empty/inner")
        assert not fs.exists("/copy")

    def test_a_snapshot_has_its_tag(self, fs: Filesystem) -> None:
        assert fs.snapshot("before-refactor").tag == "before-refactor"
        assert fs.snapshot(tag="after").tag == "after"
        assert fs.snapshot().tag is None

    def test_every_snapshot_has_its_own_id(self, fs: Filesystem) -> None:
        assert len({fs.snapshot().snapshot_id for _ in range(5)}) == 5

    def test_taking_a_snapshot_changes_nothing(self, fs: Filesystem) -> None:
        workspace(fs)
        before = fs.tree().fingerprint, fs.statistics(), fs.stat("/src/app.py")
        fs.snapshot()
        assert (fs.tree().fingerprint, fs.statistics(), fs.stat("/src/app.py")) == before

    def test_the_empty_filesystem_is_restored(self, fs: Filesystem) -> None:
        snapshot = fs.snapshot()
        workspace(fs)
        fs.restore(snapshot)
        assert fs.list("/") == ()

    def test_a_snapshot_is_restored_more_than_once(self, fs: Filesystem) -> None:
        workspace(fs)
        before = fs.tree().fingerprint
        snapshot = fs.snapshot()
        for change in ("much", "overwrite", "move_a_directory"):
            CHANGES[change](fs)
            fs.restore(snapshot)
            fs.restore(snapshot)
            assert fs.tree().fingerprint == before

    def test_snapshots_are_restored_in_any_order(self, fs: Filesystem) -> None:
        taken: list[tuple[FilesystemSnapshot, str]] = []
        for number in range(6):
            fs.append("/log.txt", f"{number}\n")
            fs.write(f"/d/{number}.txt", str(number))
            if number:
                fs.delete(f"/d/{number - 1}.txt")
            taken.append((fs.snapshot(), fs.tree().fingerprint))
        for index in (2, 5, 0, 3, 3, 1, 4):
            snapshot, fingerprint = taken[index]
            fs.restore(snapshot)
            assert fs.tree().fingerprint == fingerprint
            assert fs.read("/log.txt").content == "".join(f"{number}\n" for number in range(index + 1))

    def test_a_restored_filesystem_can_be_changed(self, fs: Filesystem) -> None:
        workspace(fs)
        snapshot = fs.snapshot()
        change_much(fs)
        fs.restore(snapshot)
        fs.write("/src/app.py", "after\n")
        fs.append("/src/app.py", "more\n")
        assert fs.read("/src/app.py").content == "after\nmore\n"
        fs.restore(snapshot)
        assert fs.read("/src/app.py").content == "print('hello')\n"

    def test_files_that_did_not_change_keep_their_times(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/d/a.txt", "/d/b.txt", "/c.txt")
        before = fs.stat("/d/a.txt"), fs.stat("/c.txt")
        snapshot = fs.snapshot()
        self.write_in_turn(fs, "/d/b.txt", "/new.txt")
        fs.restore(snapshot)
        assert (fs.stat("/d/a.txt"), fs.stat("/c.txt")) == before

    def test_a_snapshot_of_another_filesystem_is_refused(self, fs: Filesystem) -> None:
        workspace(fs)
        other = self.make_fs()
        other.write("/kept.txt", "kept")
        with refused(other, ValueError):
            other.restore(fs.snapshot())
        with refused(other, ValueError):
            other.restore(fs.snapshot(), dry_run=True)

    def test_a_snapshot_of_another_filesystem_is_restored_on_request(self, fs: Filesystem) -> None:
        workspace(fs)
        snapshot = fs.snapshot()
        other = self.make_fs()
        other.write("/gone.txt", "gone")
        other.restore(snapshot, foreign=True)
        assert other.tree().fingerprint == fs.tree().fingerprint
        assert not other.exists("/gone.txt")
        other.write("/src/app.py", "changed there")
        assert fs.read("/src/app.py").content == "print('hello')\n"

    def test_many_snapshots_are_all_kept(self, fs: Filesystem) -> None:
        snapshots: list[FilesystemSnapshot] = []
        for number in range(50):
            fs.write("/a.txt", f"version {number}")
            snapshots.append(fs.snapshot())
        for number in (0, 17, 49):
            fs.restore(snapshots[number])
            assert fs.read("/a.txt").content == f"version {number}"
