"""Permission bits: stored with the entry, returned unchanged, and part of a snapshot."""

from __future__ import annotations

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused

__all__ = ["ModeCases"]


class ModeCases(FilesystemCases):
    def test_new_files_and_directories_have_the_usual_bits(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.append("/d/b.txt", "text")
        fs.mkdir("/e/f")
        with fs.open("/g/c.txt", "w") as stream:
            stream.write("text")
        assert [fs.stat(path).mode for path in ("/d/a.txt", "/d/b.txt", "/g/c.txt")] == [0o644] * 3
        assert [fs.stat(path).mode for path in ("/d", "/e", "/e/f", "/g")] == [0o755] * 4

    @pytest.mark.parametrize("mode", [0o600, 0o644, 0o640, 0o755, 0o700, 0o444, 0o555, 0o777])
    def test_bits_are_given_back_as_they_were_set(self, fs: Filesystem, mode: int) -> None:
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
