"""What is known about entries: `stat`, `statistics`, permission bits, and frozen results."""

from __future__ import annotations

from datetime import timedelta

import pytest

from weakfs.filesystem import Filesystem, Limits
from weakfs.testing.conformance.harness import FilesystemCases, refused


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

    def test_new_files_and_directories_have_the_usual_bits(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.append("/d/b.txt", "text")
        fs.mkdir("/e/f")
        with fs.open("/g/c.txt", "w") as stream:
            stream.write("text")
        assert [fs.stat(path).mode for path in ("/d/a.txt", "/d/b.txt", "/g/c.txt")] == [0o644] * 3
        assert [fs.stat(path).mode for path in ("/d", "/e", "/e/f", "/g")] == [0o755] * 4

    @pytest.mark.parametrize("mode", [0o600, 0o644, 0o640, 0o755, 0o700, 0o444, 0o555, 0o777])
    def test_bits_are_returned_as_they_were_set(self, fs: Filesystem, mode: int) -> None:
        fs.write("/a.txt", "text")
        fs.chmod("/a.txt", mode)
        assert fs.stat("/a.txt").mode == mode
        assert fs.read("/a.txt").content == "text"

    @pytest.mark.parametrize("mode", [0o700, 0o755, 0o750, 0o777])
    def test_a_directory_has_bits_too(self, fs: Filesystem, mode: int) -> None:
        fs.write("/d/a.txt", "text")
        fs.chmod("/d", mode)
        assert fs.stat("/d").mode == mode
        assert fs.stat("/d/a.txt").mode == 0o644

    def test_overwriting_keeps_the_bits(self, fs: Filesystem) -> None:
        fs.write("/run.sh", "old")
        fs.chmod("/run.sh", 0o755)
        fs.write("/run.sh", "new")
        fs.write_bytes("/run.sh", b"newer")
        fs.write_lines("/run.sh", ["newest\n"])
        assert fs.stat("/run.sh").mode == 0o755

    def test_bits_change_nothing_else(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/a.txt", "/b.txt")
        before = fs.stat("/a.txt")
        fs.chmod("/a.txt", 0o600)
        after = fs.stat("/a.txt")
        assert (after.modified_at, after.size_bytes) == (before.modified_at, before.size_bytes)
        assert fs.read("/a.txt").content == "/a.txt"

    def test_a_missing_entry_has_no_bits_to_set(self, fs: Filesystem) -> None:
        with refused(fs, FileNotFoundError):
            fs.chmod("/missing", 0o644)
        with refused(fs, FileNotFoundError):
            fs.chmod("/missing/a.txt", 0o644)

    @pytest.mark.parametrize("mode", [-1, 0o10000, 0o100644, 1 << 40])
    def test_bits_out_of_range_are_refused(self, fs: Filesystem, mode: int) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, ValueError):
            fs.chmod("/a.txt", mode)

    def test_the_fingerprint_sees_every_bit(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        seen = set[object]()
        for path, mode in [("/d/a.txt", 0o644), ("/d/a.txt", 0o600), ("/d/a.txt", 0o755), ("/d", 0o700)]:
            fs.chmod(path, mode)
            seen.add(fs.tree().fingerprint)
        assert len(seen) == 4

    def test_the_digest_sees_whether_a_file_can_be_executed(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        plain = fs.tree().digest
        fs.chmod("/d/a.txt", 0o600)
        fs.chmod("/d", 0o700)
        assert fs.tree().digest == plain
        fs.chmod("/d/a.txt", 0o700)
        assert fs.tree().digest != plain

    def test_a_restore_brings_the_bits_back(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.write("/d/b.txt", "text")
        fs.chmod("/d/a.txt", 0o750)
        fs.chmod("/d", 0o711)
        before = fs.tree().fingerprint
        snapshot = fs.snapshot()
        fs.chmod("/d/a.txt", 0o600)
        fs.chmod("/d/b.txt", 0o666)
        fs.chmod("/d", 0o755)
        fs.restore(snapshot)
        assert fs.tree().fingerprint == before
        assert [fs.stat(path).mode for path in ("/d", "/d/a.txt", "/d/b.txt")] == [0o711, 0o750, 0o644]

    def test_an_archive_carries_the_bits(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.chmod("/d/a.txt", 0o751)
        fs.chmod("/d", 0o711)
        other = self.make_fs()
        other.import_bytes(fs.export_bytes())
        assert [other.stat(path).mode for path in ("/d", "/d/a.txt")] == [0o711, 0o751]
