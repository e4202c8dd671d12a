"""Information about an entry and about the whole filesystem: `stat`, `statistics`, and frozen results."""

from __future__ import annotations

from datetime import timedelta

import pytest

from weakfs.filesystem import Filesystem, Limits

from .harness import FilesystemCases, refused

__all__ = ["StatCases"]


class StatCases(FilesystemCases):
    def test_a_file_is_described(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "café")
        stat = fs.stat("/d/a.txt")
        assert (stat.path, stat.is_file, stat.is_directory) == ("/d/a.txt", True, False)
        assert (stat.size_bytes, stat.mode, stat.is_symlink, stat.target) == (5, 0o644, False, None)

    @pytest.mark.parametrize("path", ["/d", "/"])
    def test_a_directory_is_described(self, fs: Filesystem, path: str) -> None:
        fs.write("/d/a.txt", "text")
        stat = fs.stat(path)
        assert (stat.path, stat.is_file, stat.is_directory) == (path, False, True)
        assert (stat.size_bytes, stat.is_symlink, stat.target) == (0, False, None)

    @pytest.mark.parametrize("path", ["/missing", "/missing/a.txt", "/d/missing"])
    def test_a_missing_entry_is_not_described(self, fs: Filesystem, path: str) -> None:
        fs.mkdir("/d")
        with refused(fs, FileNotFoundError):
            fs.stat(path)
        assert not fs.exists(path)

    def test_times_are_in_utc(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        for path in ("/d/a.txt", "/d"):
            stat = fs.stat(path)
            assert stat.created_at is not None
            assert stat.created_at.utcoffset() == stat.modified_at.utcoffset() == timedelta(0)

    def test_a_later_write_has_a_later_time(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/a.txt", "/b.txt")
        assert fs.stat("/a.txt").modified_at < fs.stat("/b.txt").modified_at
        before = fs.stat("/a.txt").modified_at
        fs.append("/a.txt", "more")
        assert fs.stat("/a.txt").modified_at > before

    def test_reading_changes_no_time(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/d/a.txt", "/d/b.txt")
        before = fs.stat("/d/a.txt"), fs.stat("/d")
        fs.read("/d/a.txt")
        fs.list("/d")
        fs.grep("a")
        fs.glob("*")
        fs.tree().digest  # noqa: B018 - computing a digest is a read as well
        assert (fs.stat("/d/a.txt"), fs.stat("/d")) == before

    def test_an_empty_filesystem_counts_nothing(self, fs: Filesystem) -> None:
        statistics = fs.statistics()
        assert statistics.total_size == statistics.file_count == 0
        assert statistics.directory_count == statistics.node_count == 0

    def test_the_whole_is_counted(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "12345")
        fs.write("/d/e/b.txt", "é")
        fs.mkdir("/d/empty")
        statistics = fs.statistics()
        assert (statistics.total_size, statistics.file_count) == (7, 2)
        assert (statistics.directory_count, statistics.node_count) == (3, 5)

    def test_a_link_is_counted_as_a_file(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "12345")
        fs.symlink("a.txt", "/link")
        statistics = fs.statistics()
        assert (statistics.file_count, statistics.directory_count, statistics.node_count) == (2, 0, 2)

    def test_the_counts_follow_every_change(self, fs: Filesystem) -> None:
        def counted() -> tuple[int, int, int]:
            statistics = fs.statistics()
            return statistics.total_size, statistics.file_count, statistics.directory_count

        fs.write("/d/a.txt", "12345")
        assert counted() == (5, 1, 1)
        fs.append("/d/a.txt", "678")
        assert counted() == (8, 1, 1)
        fs.copy("/d", "/e")
        assert counted() == (16, 2, 2)
        fs.write("/d/a.txt", "1")
        assert counted() == (9, 2, 2)
        fs.move("/e/a.txt", "/d/a.txt")
        assert counted() == (8, 1, 2)
        fs.move("/d", "/e/d")
        assert counted() == (8, 1, 2)
        fs.delete("/e", recursive=True)
        assert counted() == (0, 0, 0)

    def test_equal_contents_are_counted_each(self, fs: Filesystem) -> None:
        for name in "abc":
            fs.write(f"/{name}", "same")
        assert fs.statistics().total_size == 12

    def test_a_filesystem_knows_its_limits(self) -> None:
        limits = Limits(max_file_size=10, max_node_count=5)
        assert self.make_fs(limits=limits).limits == limits

    def test_results_are_frozen(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        results: list[tuple[object, str]] = [
            (fs.read("/a.txt"), "content"),
            (fs.read_bytes("/a.txt"), "content"),
            (fs.stat("/a.txt"), "size_bytes"),
            (fs.list("/")[0], "name"),
            (fs.write("/b.txt", "text"), "bytes_written"),
            (fs.glob("*")[0], "path"),
            (fs.grep("text")[0], "line_content"),
            (fs.statistics(), "total_size"),
            (fs.snapshot(), "tag"),
        ]
        for result, field in results:
            before = getattr(result, field)
            with pytest.raises(AttributeError):
                setattr(result, field, "changed")
            assert getattr(result, field) == before
