"""Read-only filesystems: everything can be read, and every mutation is refused with `PermissionError`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weakfs.filesystem import Filesystem, FilesystemSnapshot
from weakfs.testing.conformance.harness import FilesystemCases, refused
from weakfs.testing.conformance.operations import write_stream


def workspace(fs: Filesystem) -> None:
    fs.write("/d/a.txt", "one\ntwo\n")
    fs.write("/run.sh", "needle\n")
    fs.mkdir("/empty")
    fs.symlink("run.sh", "/link")


MUTATIONS: dict[str, Callable[[Filesystem], object]] = {
    "write_a_new_file": lambda fs: fs.write("/new.txt", "x"),
    "write_below_a_new_directory": lambda fs: fs.write("/new/a.txt", "x"),
    "overwrite": lambda fs: fs.write("/d/a.txt", "x"),
    "overwrite_with_the_same": lambda fs: fs.write("/run.sh", "needle\n"),
    "create": lambda fs: fs.write("/new.txt", "x", mode="create"),
    "write_append": lambda fs: fs.write("/d/a.txt", "x", mode="append"),
    "write_bytes": lambda fs: fs.write_bytes("/d/a.txt", b"x"),
    "append": lambda fs: fs.append("/d/a.txt", "x"),
    "append_nothing": lambda fs: fs.append("/d/a.txt", ""),
    "write_lines": lambda fs: fs.write_lines("/d/a.txt", ["x\n"]),
    "splice": lambda fs: fs.splice("/d/a.txt", [(0, 3, b"1")]),
    "splice_nothing": lambda fs: fs.splice("/d/a.txt", []),
    "open_w": lambda fs: write_stream(fs, "/d/a.txt", "w"),
    "open_x": lambda fs: write_stream(fs, "/new.txt", "x"),
    "open_a": lambda fs: write_stream(fs, "/d/a.txt", "a"),
    "mkdir": lambda fs: fs.mkdir("/new"),
    "mkdir_of_an_existing_directory": lambda fs: fs.mkdir("/d"),
    "delete_a_file": lambda fs: fs.delete("/d/a.txt"),
    "delete_an_empty_directory": lambda fs: fs.delete("/empty"),
    "delete_a_directory": lambda fs: fs.delete("/d", recursive=True),
    "delete_a_link": lambda fs: fs.delete("/link"),
    "move_a_file": lambda fs: fs.move("/run.sh", "/new.sh"),
    "move_a_directory": lambda fs: fs.move("/d", "/new"),
    "move_onto_itself": lambda fs: fs.move("/run.sh", "/run.sh"),
    "copy_a_file": lambda fs: fs.copy("/run.sh", "/new.sh"),
    "copy_a_directory": lambda fs: fs.copy("/d", "/new"),
    "chmod": lambda fs: fs.chmod("/run.sh", 0o755),
    "chmod_to_the_same": lambda fs: fs.chmod("/run.sh", 0o644),
    "symlink": lambda fs: fs.symlink("run.sh", "/new"),
    "import": lambda fs: fs.import_bytes(fs.export_bytes()),
}


class ReadOnlyCases(FilesystemCases):
    @pytest.mark.parametrize("mutation", MUTATIONS)
    def test_every_mutation_is_refused(self, mutation: str) -> None:
        fs = self.make_fs(prepare=workspace, read_only=True)
        with refused(fs, PermissionError):
            MUTATIONS[mutation](fs)

    @pytest.mark.parametrize("mutation", MUTATIONS)
    def test_the_same_mutation_succeeds_on_a_writable_filesystem(self, mutation: str) -> None:
        fs = self.make_fs(prepare=workspace)
        MUTATIONS[mutation](fs)

    def test_a_restore_is_refused(self) -> None:
        snapshots: list[FilesystemSnapshot] = []

        def take_one(fs: Filesystem) -> None:
            workspace(fs)
            snapshots.append(fs.snapshot())
            fs.write("/later.txt", "text")

        fs = self.make_fs(prepare=take_one, read_only=True)
        with refused(fs, PermissionError):
            fs.restore(snapshots[0])

    def test_a_refused_mutation_says_that_the_filesystem_is_read_only(self) -> None:
        fs = self.make_fs(prepare=workspace, read_only=True)
        with pytest.raises(PermissionError, match="read-only"):
            fs.write("/new.txt", "text")
        with pytest.raises(PermissionError, match="read-only"):
            fs.delete("/missing.txt")

    def test_a_filesystem_says_that_it_is_read_only(self) -> None:
        assert self.make_fs(read_only=True).read_only
        assert not self.make_fs().read_only

    def test_everything_is_read(self) -> None:
        fs = self.make_fs(prepare=workspace, read_only=True)
        assert fs.read("/d/a.txt", offset=1).content == "two\n"
        assert fs.read_bytes("/d/a.txt", limit=3).content == b"one"
        assert fs.read_lines("/d/a.txt") == ("one\n", "two\n")
        with fs.open("/d/a.txt") as stream:
            assert stream.read() == "one\ntwo\n"
        assert fs.exists("/d")
        assert fs.is_file("/run.sh")
        assert fs.is_directory("/empty")
        assert fs.stat("/d/a.txt").size_bytes == 8
        assert [entry.name for entry in fs.list("/")] == ["d", "empty", "link", "run.sh"]
        assert fs.readlink("/link") == "run.sh"

    def test_everything_is_searched_and_counted(self) -> None:
        fs = self.make_fs(prepare=workspace, read_only=True)
        assert [match.path for match in fs.glob("*.sh")] == ["/run.sh"]
        assert [match.path for match in fs.grep("needle")] == ["/run.sh"]
        assert fs.statistics().file_count == 3
        writable = self.make_fs(prepare=workspace)
        assert fs.tree().fingerprint == writable.tree().fingerprint

    def test_everything_is_exported(self) -> None:
        fs = self.make_fs(prepare=workspace, read_only=True)
        other = self.make_fs()
        other.import_bytes(fs.export_bytes())
        assert other.tree().fingerprint == fs.tree().fingerprint
