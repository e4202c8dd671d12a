"""Limits and quotas: each can be reached exactly, to the byte and to the entry, and one unit more is refused."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from weakfs.filesystem import Filesystem, Limits
from weakfs.testing.conformance.harness import FilesystemCases, refused
from weakfs.testing.conformance.operations import write_stream

WRITERS: dict[str, Callable[[Filesystem, str, int], object]] = {
    "write": lambda fs, path, size: fs.write(path, "x" * size),
    "write_bytes": lambda fs, path, size: fs.write_bytes(path, b"x" * size),
    "append": lambda fs, path, size: fs.append(path, "x" * size),
    "write_append": lambda fs, path, size: fs.write(path, "x" * size, mode="append"),
    "write_create": lambda fs, path, size: fs.write(path, "x" * size, mode="create"),
    "write_lines": lambda fs, path, size: fs.write_lines(path, ["x" * (size - 1) + "\n"]),
    "open_wb": lambda fs, path, size: write_stream(fs, path, "wb", "x" * size),
}

MAKERS: dict[str, Callable[[Filesystem, str], object]] = {
    "write": lambda fs, path: fs.write(path, "x"),
    "append": lambda fs, path: fs.append(path, "x"),
    "mkdir": lambda fs, path: fs.mkdir(path),
    "symlink": lambda fs, path: fs.symlink("a.txt", path),
    "move": lambda fs, path: fs.move("/a.txt", path),
    "copy": lambda fs, path: fs.copy("/a.txt", path),
    "open_wb": lambda fs, path: write_stream(fs, path, "wb"),
}

each_writer = pytest.mark.parametrize("writer", WRITERS)
each_maker = pytest.mark.parametrize("maker", MAKERS)


def two_files(fs: Filesystem) -> None:
    fs.write("/d/a.txt", "12345")
    fs.write("/d/b.txt", "12345")


class LimitCases(FilesystemCases):
    @each_writer
    def test_a_file_may_be_as_large_as_the_limit_and_no_larger(self, writer: str) -> None:
        fs = self.make_fs(limits=Limits(max_file_size=10))
        WRITERS[writer](fs, "/d/a.txt", 10)
        assert fs.stat("/d/a.txt").size_bytes == 10
        with refused(fs, OSError, errno.EFBIG):
            WRITERS[writer](fs, "/e/b.txt", 11)

    def test_the_size_of_a_file_is_counted_in_bytes(self) -> None:
        fs = self.make_fs(limits=Limits(max_file_size=10))
        fs.write("/a.txt", "é" * 5)
        with refused(fs, OSError, errno.EFBIG):
            fs.write("/a.txt", "é" * 5 + "x")

    def test_an_append_may_reach_the_limit_and_not_cross_it(self) -> None:
        fs = self.make_fs(limits=Limits(max_file_size=10))
        fs.write("/a.txt", "12345")
        with refused(fs, OSError, errno.EFBIG):
            fs.append("/a.txt", "678901")
        fs.append("/a.txt", "67890")
        with refused(fs, OSError, errno.EFBIG):
            fs.write_bytes("/a.txt", b"1", mode="append")
        assert fs.read("/a.txt").content == "1234567890"

    def test_a_file_that_is_too_large_already_is_read_and_deleted(self) -> None:
        fs = self.make_fs(prepare=lambda writable: writable.write("/a.txt", "x" * 20), limits=Limits(max_file_size=10))
        assert len(fs.read("/a.txt").content) == 20
        with refused(fs, OSError, errno.EFBIG):
            fs.append("/a.txt", "x")
        fs.write("/a.txt", "short")
        assert fs.delete("/a.txt") == 1

    def test_a_file_of_nothing_is_within_every_limit(self) -> None:
        fs = self.make_fs(limits=Limits(max_file_size=0))
        fs.write("/a.txt", "")
        with refused(fs, OSError, errno.EFBIG):
            fs.write("/a.txt", "x")

    @each_maker
    def test_a_path_may_be_as_deep_as_the_limit_and_no_deeper(self, maker: str) -> None:
        fs = self.make_fs(limits=Limits(max_path_depth=3))
        fs.write("/a.txt", "text")
        with refused(fs, OSError, errno.ENAMETOOLONG):
            MAKERS[maker](fs, "/1/2/3/4")
        MAKERS[maker](fs, "/1/2/3")
        assert fs.exists("/1/2/3")

    def test_depth_is_counted_after_the_dots_are_resolved(self) -> None:
        fs = self.make_fs(limits=Limits(max_path_depth=2))
        fs.write("/x/../y/../d/./a.txt", "text")
        assert fs.exists("/d/a.txt")

    @pytest.mark.parametrize("operation", ["move", "copy"])
    def test_the_depth_of_a_directory_includes_its_contents(self, operation: str) -> None:
        fs = self.make_fs(limits=Limits(max_path_depth=4))
        fs.write("/d/e/a.txt", "text")
        with refused(fs, OSError, errno.ENAMETOOLONG):
            getattr(fs, operation)("/d", "/1/2/3")
        getattr(fs, operation)("/d", "/1/2")
        assert fs.read("/1/2/e/a.txt").content == "text"

    @each_maker
    def test_a_name_may_be_as_long_as_the_limit_and_no_longer(self, maker: str) -> None:
        fs = self.make_fs(limits=Limits(max_segment_length=10))
        fs.write("/a.txt", "text")
        with refused(fs, OSError, errno.ENAMETOOLONG):
            MAKERS[maker](fs, "/d/" + "n" * 11)
        with refused(fs, OSError, errno.ENAMETOOLONG):
            MAKERS[maker](fs, "/" + "n" * 11 + "/b")
        MAKERS[maker](fs, "/" + "d" * 10 + "/" + "n" * 10)
        assert fs.exists("/" + "d" * 10 + "/" + "n" * 10)

    def test_the_length_of_a_name_is_counted_in_bytes(self) -> None:
        fs = self.make_fs(limits=Limits(max_segment_length=10))
        fs.write("/" + "é" * 5, "text")
        with refused(fs, OSError, errno.ENAMETOOLONG):
            fs.write("/" + "é" * 5 + "x", "text")

    @pytest.mark.parametrize("path", ["/1/2/3/4", "/" + "n" * 11])
    def test_reading_a_path_beyond_the_limits_reports_it_as_missing(self, path: str) -> None:
        fs = self.make_fs(limits=Limits(max_path_depth=3, max_segment_length=10))
        assert not fs.exists(path)
        for read in (fs.read, fs.stat, fs.list, fs.delete, fs.readlink):
            with refused(fs, FileNotFoundError):
                read(path)

    def test_the_default_limits_are_high_but_finite(self, fs: Filesystem) -> None:
        fs.write("/" + "n" * 255, "text")
        with refused(fs, OSError, errno.ENAMETOOLONG):
            fs.write("/" + "n" * 256, "text")
        fs.write("/d" * 63 + "/a", "text")
        with refused(fs, OSError, errno.ENAMETOOLONG):
            fs.write("/d" * 64 + "/a", "text")
        with refused(fs, OSError, errno.EFBIG):
            fs.write_bytes("/large", b"\0" * (32 * 1024 * 1024 + 1))

    def test_the_strict_preset_is_narrow(self) -> None:
        fs = self.make_fs(limits=Limits.strict())
        fs.write("/" + "n" * 80, "x" * 48_000)
        fs.write("/d" * 15 + "/a", "text")
        with refused(fs, OSError, errno.ENAMETOOLONG):
            fs.write("/" + "n" * 81, "text")
        with refused(fs, OSError, errno.ENAMETOOLONG):
            fs.write("/d" * 16 + "/a", "text")
        with refused(fs, OSError, errno.EFBIG):
            fs.write("/a.txt", "x" * 48_001)

    def test_a_depth_without_limit_is_no_trouble_for_any_operation(self) -> None:
        # Deeper than Python's recursion limit.
        deep = Limits(max_path_depth=None)
        fs = self.make_fs(limits=deep)
        path = "/d" * 1_010 + "/a.txt"
        fs.write(path, "needle")
        fs.append(path, "\n")
        fingerprint = fs.tree().fingerprint
        snapshot = fs.snapshot()
        assert [match.path for match in fs.grep("needle")] == [path]
        assert [match.path for match in fs.glob("*.txt")] == [path]
        assert len(list(fs.walk())) == fs.statistics().node_count == 1_011
        other = self.make_fs(limits=deep)
        other.import_bytes(fs.export_bytes())
        assert other.tree().digest == fs.tree().digest
        fs.move("/d", "/e")
        fs.copy("/e", "/f")
        assert fs.delete("/e", recursive=True) == fs.delete("/f", recursive=True) == 1_011
        fs.restore(snapshot)
        assert fs.tree().fingerprint == fingerprint

    def test_an_import_respects_the_limits(self, fs: Filesystem) -> None:
        fs.write("/1/2/3/a.txt", "x" * 20)
        data = fs.export_bytes()
        for limits, number in [
            (Limits(max_file_size=19), errno.EFBIG),
            (Limits(max_path_depth=3), errno.ENAMETOOLONG),
            (Limits(max_segment_length=4), errno.ENAMETOOLONG),
        ]:
            other = self.make_fs(limits=limits)
            other.write("/old", "kept")
            with refused(other, OSError, number):
                other.import_bytes(data)
        other = self.make_fs(limits=Limits(max_file_size=20, max_path_depth=4, max_segment_length=5))
        other.import_bytes(data)
        assert other.tree().digest == fs.tree().digest

    @each_writer
    def test_the_total_may_reach_the_quota_but_not_exceed_it(self, writer: str) -> None:
        fs = self.make_fs(limits=Limits(max_total_size=10))
        fs.write("/a.txt", "123")
        with refused(fs, OSError, errno.EDQUOT):
            WRITERS[writer](fs, "/d/b.txt", 8)
        WRITERS[writer](fs, "/d/b.txt", 7)
        assert fs.statistics().total_size == 10

    def test_an_append_does_not_cross_the_quota(self) -> None:
        fs = self.make_fs(limits=Limits(max_total_size=10))
        fs.write("/a.txt", "12345")
        fs.write("/b.txt", "1234")
        with refused(fs, OSError, errno.EDQUOT):
            fs.append("/a.txt", "67")
        fs.append("/a.txt", "6")
        assert fs.statistics().total_size == 10

    def test_a_file_that_is_replaced_no_longer_counts(self) -> None:
        fs = self.make_fs(limits=Limits(max_total_size=10))
        fs.write("/a.txt", "1234567890")
        fs.write("/a.txt", "0987654321")
        with refused(fs, OSError, errno.EDQUOT):
            fs.write("/a.txt", "12345678901")
        fs.write("/a.txt", "1")
        fs.write("/b.txt", "123456789")
        assert fs.statistics().total_size == 10

    def test_a_deleted_file_no_longer_counts(self) -> None:
        fs = self.make_fs(limits=Limits(max_total_size=10, max_node_count=2))
        fs.write("/d/a.txt", "1234567890")
        fs.delete("/d", recursive=True)
        fs.write("/e/b.txt", "0987654321")
        assert fs.read("/e/b.txt").content == "0987654321"

    def test_a_copied_directory_counts_in_full(self) -> None:
        fs = self.make_fs(prepare=two_files, limits=Limits(max_total_size=19))
        with refused(fs, OSError, errno.EDQUOT):
            fs.copy("/d", "/e")
        fs = self.make_fs(prepare=two_files, limits=Limits(max_total_size=20))
        fs.copy("/d", "/e")
        assert fs.statistics().total_size == 20

    def test_a_copied_directory_counts_every_node(self) -> None:
        fs = self.make_fs(prepare=two_files, limits=Limits(max_node_count=6))
        with refused(fs, OSError, errno.EDQUOT):
            fs.copy("/d", "/x/e")
        fs.copy("/d", "/e")
        assert fs.statistics().node_count == 6

    def test_a_copy_onto_a_file_counts_the_difference(self) -> None:
        fs = self.make_fs(prepare=two_files, limits=Limits(max_total_size=10, max_node_count=3))
        fs.copy("/d/a.txt", "/d/b.txt")
        assert fs.statistics().total_size == 10
        with refused(fs, OSError, errno.EDQUOT):
            fs.copy("/d/a.txt", "/d/c.txt")

    def test_a_move_costs_nothing(self) -> None:
        fs = self.make_fs(prepare=two_files, limits=Limits(max_total_size=10, max_node_count=3))
        fs.move("/d", "/e")
        fs.move("/e/a.txt", "/e/b.txt")
        assert fs.statistics().total_size == 5

    @pytest.mark.parametrize("maker", ["write", "append", "mkdir", "symlink", "open_wb"])
    def test_implied_parents_count_as_nodes(self, maker: str) -> None:
        make = MAKERS[maker]
        fs = self.make_fs(limits=Limits(max_node_count=4))
        fs.write("/a.txt", "x")
        with refused(fs, OSError, errno.EDQUOT):
            make(fs, "/1/2/3/4")
        make(fs, "/1/2/3")
        assert fs.statistics().node_count == 4
        with refused(fs, OSError, errno.EDQUOT):
            make(fs, "/1/2/other")

    @pytest.mark.parametrize("operation", ["move", "copy"])
    def test_implied_parents_of_a_destination_count_as_nodes(self, operation: str) -> None:
        nodes = 3 if operation == "move" else 4
        fs = self.make_fs(prepare=lambda writable: writable.write("/a.txt", "x"), limits=Limits(max_node_count=nodes))
        with refused(fs, OSError, errno.EDQUOT):
            getattr(fs, operation)("/a.txt", "/1/2/3/b.txt")
        getattr(fs, operation)("/a.txt", "/1/2/b.txt")
        assert fs.statistics().node_count == nodes

    def test_what_exists_may_be_changed_at_the_quota(self) -> None:
        fs = self.make_fs(prepare=two_files, limits=Limits(max_node_count=3))
        fs.write("/d/a.txt", "changed")
        fs.append("/d/b.txt", "more")
        fs.mkdir("/d")
        fs.chmod("/d/a.txt", 0o600)
        assert fs.read("/d/a.txt").content == "changed"

    def test_a_whole_that_is_past_its_quota_may_shrink(self) -> None:
        fs = self.make_fs(prepare=two_files, limits=Limits(max_total_size=4, max_node_count=1))
        fs.write("/d/a.txt", "1")
        assert fs.delete("/d/b.txt") == 1
        fs.chmod("/d/a.txt", 0o600)
        fs.move("/d/a.txt", "/d/c.txt")
        assert fs.statistics().total_size == 1

    def test_equal_contents_are_charged_each(self) -> None:
        fs = self.make_fs(limits=Limits(max_total_size=10))
        fs.write("/a.txt", "12345")
        fs.write("/b.txt", "12345")
        with refused(fs, OSError, errno.EDQUOT):
            fs.write("/c.txt", "12345")

    def test_the_size_of_one_file_is_refused_before_the_quota(self) -> None:
        fs = self.make_fs(limits=Limits(max_file_size=5, max_total_size=8))
        with refused(fs, OSError, errno.EFBIG):
            fs.write("/a.txt", "x" * 20)

    def test_a_quota_of_nothing_holds_nothing(self) -> None:
        fs = self.make_fs(limits=Limits(max_node_count=0))
        with refused(fs, OSError, errno.EDQUOT):
            fs.mkdir("/d")
        fs = self.make_fs(limits=Limits(max_total_size=0))
        fs.write("/d/a.txt", "")
        with refused(fs, OSError, errno.EDQUOT):
            fs.append("/d/a.txt", "x")

    @pytest.mark.parametrize("limits", [Limits(max_total_size=9), Limits(max_node_count=2)], ids=["size", "nodes"])
    def test_an_import_respects_the_quotas(self, fs: Filesystem, limits: Limits) -> None:
        two_files(fs)
        other = self.make_fs(limits=limits)
        other.write("/old", "kept")
        with refused(other, OSError, errno.EDQUOT):
            other.import_bytes(fs.export_bytes())

    @pytest.mark.parametrize("limits", [Limits(max_total_size=9), Limits(max_node_count=2)], ids=["size", "nodes"])
    def test_a_restore_of_a_foreign_snapshot_respects_the_quotas(self, fs: Filesystem, limits: Limits) -> None:
        two_files(fs)
        other = self.make_fs(limits=limits)
        other.write("/old", "kept")
        with refused(other, OSError, errno.EDQUOT):
            other.restore(fs.snapshot(), foreign=True)
