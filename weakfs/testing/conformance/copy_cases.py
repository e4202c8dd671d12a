"""Copying: the copy equals the source and is independent of it; see `relocation_cases` for what moving does as well."""

from __future__ import annotations

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases

__all__ = ["CopyCases"]


class CopyCases(FilesystemCases):
    def test_a_file_is_copied(self, fs: Filesystem) -> None:
        fs.write_bytes("/a.bin", b"\xff\0text")
        fs.copy("/a.bin", "/b.bin")
        assert fs.read_bytes("/a.bin").content == fs.read_bytes("/b.bin").content == b"\xff\0text"

    def test_a_copied_file_is_changed_alone(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.copy("/a.txt", "/b.txt")
        fs.write("/b.txt", "changed")
        assert fs.read("/a.txt").content == "text"
        fs.write("/a.txt", "other")
        fs.chmod("/a.txt", 0o755)
        assert fs.read("/b.txt").content == "changed"
        assert fs.stat("/b.txt").mode == 0o644

    def test_a_copied_directory_is_changed_alone(self, fs: Filesystem) -> None:
        fs.write("/d/e/a.txt", "text")
        fs.copy("/d", "/copy")
        fs.write("/copy/e/a.txt", "changed")
        fs.write("/copy/e/new.txt", "new")
        fs.delete("/d/e", recursive=True)
        assert not fs.exists("/d/e")
        assert fs.read("/copy/e/a.txt").content == "changed"

    def test_a_copy_is_counted_in_full(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "12345")
        fs.write("/d/e/b.txt", "123")
        fs.copy("/d", "/f")
        statistics = fs.statistics()
        assert (statistics.total_size, statistics.file_count, statistics.directory_count) == (16, 4, 4)

    def test_a_copied_directory_has_the_digest_of_its_source(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "a")
        fs.write("/d/e/b.txt", "b")
        fs.copy("/d", "/copy")
        alone, copied = self.make_fs(), self.make_fs()
        for name in ("a.txt", "e/b.txt"):
            alone.write(f"/{name}", fs.read(f"/d/{name}").content)
            copied.write(f"/{name}", fs.read(f"/copy/{name}").content)
        assert alone.tree().fingerprint == copied.tree().fingerprint
