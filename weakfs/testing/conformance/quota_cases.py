"""Quotas of the whole filesystem: total size and node count, exact to the byte and to the entry."""

from __future__ import annotations

import errno

import pytest

from weakfs.filesystem import Filesystem, Limits

from .harness import FilesystemCases, refused
from .limit_cases import WRITERS

__all__ = ["QuotaCases"]

each_writer = pytest.mark.parametrize("writer", WRITERS)


def two_files(fs: Filesystem) -> None:
    fs.write("/d/a.txt", "12345")
    fs.write("/d/b.txt", "12345")


class QuotaCases(FilesystemCases):
    @each_writer
    def test_the_whole_may_reach_the_quota_and_not_cross_it(self, writer: str) -> None:
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

    @pytest.mark.parametrize("maker", ["write", "append", "mkdir", "symlink", "open"])
    def test_implied_parents_count_as_nodes(self, maker: str) -> None:
        def make(fs: Filesystem, path: str) -> None:
            match maker:
                case "write":
                    fs.write(path, "x")
                case "append":
                    fs.append(path, "x")
                case "mkdir":
                    fs.mkdir(path)
                case "symlink":
                    fs.symlink("x", path)
                case _:
                    with fs.open(path, "w") as stream:
                        stream.write("x")

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
    def test_an_import_keeps_to_the_quotas(self, fs: Filesystem, limits: Limits) -> None:
        two_files(fs)
        other = self.make_fs(limits=limits)
        other.write("/old", "kept")
        with refused(other, OSError, errno.EDQUOT):
            other.import_bytes(fs.export_bytes())

    @pytest.mark.parametrize("limits", [Limits(max_total_size=9), Limits(max_node_count=2)], ids=["size", "nodes"])
    def test_a_restore_of_a_foreign_snapshot_keeps_to_the_quotas(self, fs: Filesystem, limits: Limits) -> None:
        two_files(fs)
        other = self.make_fs(limits=limits)
        other.write("/old", "kept")
        with refused(other, OSError, errno.EDQUOT):
            other.restore(fs.snapshot(), foreign=True)
